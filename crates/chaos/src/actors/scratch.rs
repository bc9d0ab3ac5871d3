//! Traffic of all types, with expiry and whole databases that are swapped and emptied: only errors
//! are checked.

use crate::actor::act;
use crate::trouble::wrong;
use crate::world::World;

/// Databases that no other actor uses.
const DATABASES: [&str; 2] = ["1", "2"];

/// Sends commands until the run is over.
pub fn scribble(world: &World, number: usize) {
    act(world, &format!("scribbler {number}"), number % 2 == 1, |connection| {
        let (key, other) = (format!("k{}", fastrand::u32(0..200)), format!("k{}", number));
        let value = "v".repeat(fastrand::usize(0..2000));
        let requests: [&[&str]; 19] = [
            &["SET", &key, &value],
            &["SET", &key, &value, "PX", "5"],
            &["GET", &key],
            &["DEL", &key, &other],
            &["HSET", &key, "a", &value, "b", "2"],
            &["HPEXPIRE", &key, "5", "FIELDS", "1", "a"],
            &["RPUSH", &key, "3", "1", &value, "2"],
            &["SORT", &key, "ALPHA", "STORE", &other],
            &["SADD", &key, "1", "2", &value],
            &["ZADD", &key, "1", "one", "2", &value],
            &["ZUNIONSTORE", &other, "2", &key, &other],
            &["XADD", &key, "*", "f", &value],
            &["RENAME", &key, &other],
            &["COPY", &key, &other, "REPLACE"],
            &["MSET", &key, "1", &other, "2"],
            &["KEYS", "k1*"],
            &["SWAPDB", "1", "2"],
            &["FLUSHDB", "ASYNC"],
            &["RANDOMKEY"],
        ];
        // SELECT comes first, since FLUSHDB may follow.
        let select: &[&str] = &["SELECT", DATABASES[fastrand::usize(0..2)]];
        let others = (0..10).map(|_| requests[fastrand::usize(0..requests.len())]);
        let batch: Vec<&[&str]> = std::iter::once(select).chain(others).collect();
        for (request, reply) in batch.iter().zip(connection.ask_all(&batch)?) {
            let text = reply.bytes().unwrap_or_default();
            let is_expected = ["WRONGTYPE", "ERR no such key", "ERR source and"]
                .iter()
                .any(|start| text.starts_with(start.as_bytes()));
            if reply.is_error() && !is_expected {
                return wrong(format!("{} is {reply}", request[0]));
            }
        }
        world.met("scribbled batches", 1);
        Ok(())
    });
}
