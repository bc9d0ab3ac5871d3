//! Client-side caching: a client that keeps values until it is notified of a change never keeps a
//! value that is older than a write whose reply was sent before the client's last request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use test_support::Value;

use crate::actor::act;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::trouble::{Trouble, expect, wrong};
use crate::world::World;

/// Keys, each with one writer that counts up.
pub const KEYS: usize = 4;

/// The last version of each key whose write got its reply.
#[derive(Default)]
pub struct Versions([AtomicU64; KEYS]);

fn name(key: usize) -> String {
    format!("cached:{key}")
}

/// Writes versions of a key until the run is over.
pub fn write(world: &World, versions: &Versions, key: usize) {
    let name = name(key);
    let mut begun = 0_u64;
    act(world, &format!("cache writer {key}"), key % 2 == 1, |connection| {
        begun += 1;
        let version = begun.to_string();
        let script = "return redis.call('SET', KEYS[1], ARGV[1])";
        let reply = match fastrand::u32(0..4) {
            0 => connection.ask(&["EVAL", script, "1", &name, &version])?,
            1 => {
                let requests: [&[&str]; 4] =
                    [&["MULTI"], &["DEL", &name], &["SET", &name, &version], &["EXEC"]];
                let replies = connection.ask_all(&requests)?;
                replies[3].elements().last().cloned().unwrap_or_else(|| replies[3].clone())
            }
            _ => connection.ask(&["SET", &name, &version])?,
        };
        if reply.bytes() != Some(b"OK") {
            return wrong(format!("SET {name} {version} is {reply}"));
        }
        versions.0[key].store(begun, Ordering::SeqCst);
        world.met("versions written", 1);
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..20_000)));
        Ok(())
    });
}

/// Reads keys, and keeps their values, until the run is over.
pub fn keep(world: &World, versions: &Versions, number: usize) {
    let request: &[&str] = match number % 2 {
        0 => &["CLIENT", "TRACKING", "ON"],
        _ => &["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "cached:"],
    };
    let mut kept = BTreeMap::new();
    act(world, &format!("cache {number}"), true, |connection| {
        if connection.is_new() {
            kept.clear();
            let reply = connection.ask(request)?;
            expect(&reply, "OK")?;
        }
        read_and_check(world, versions, connection, &mut kept)
    });
}

fn read_and_check(
    world: &World,
    versions: &Versions,
    connection: &mut Connection,
    kept: &mut BTreeMap<String, u64>,
) -> Result<(), Trouble> {
    std::thread::sleep(Duration::from_micros(fastrand::u64(0..4000)));
    let name = name(fastrand::usize(0..KEYS));
    if kept.contains_key(&name) {
        world.met("values found in caches", 1);
    } else {
        let reply = connection.ask(&["GET", &name])?;
        invalidate(world, connection, kept);
        let version = reply.integer().unwrap_or(0);
        kept.insert(name, version.unsigned_abs());
    }
    let answered: Vec<u64> =
        versions.0.iter().map(|version| version.load(Ordering::SeqCst)).collect();
    let pong = connection.ask(&["PING"])?;
    if pong.bytes() != Some(b"PONG") {
        return wrong(format!("PING is {pong}"));
    }
    invalidate(world, connection, kept);
    for (key, answered) in answered.iter().enumerate() {
        match kept.get(&self::name(key)) {
            Some(version) if version < answered => {
                return wrong(format!("version {version} is kept, {answered} was acknowledged"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Forgets the values whose keys were named by pushes before the last reply.
fn invalidate(world: &World, connection: &mut Connection, kept: &mut BTreeMap<String, u64>) {
    for push in connection.pushes() {
        if world.plants(Fault::LostInvalidation, 20) {
            continue;
        }
        world.met("invalidations", 1);
        match push.elements().get(1) {
            Some(Value::Many(_, names)) => names.iter().for_each(|name| {
                let name = String::from_utf8_lossy(name.bytes().unwrap_or_default()).into_owned();
                kept.remove(&name);
            }),
            _ => kept.clear(),
        }
    }
}
