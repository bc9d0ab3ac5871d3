//! DEBUG POPULATE: creates many keys for tests.

use engine::{Error, ScriptError};
use resp::{Args, Reply};
use store::ExpiryChange;
use store::NewString;

use crate::execution::node_cx::NodeCx;

/// Default prefix of the keys.
const PREFIX: &[u8] = b"key";
/// Bytes of a value at most, as the default `proto-max-bulk-len`.
const VALUE_BYTES_MAX: usize = 512 << 20;

/// Adds `PREFIX:0`, `PREFIX:1` ... with the values `value:0` ..., padded to a size if one is given.
/// Existing keys are unchanged. As in Redis, these changes are not logged and do not count for
/// `save`.
pub(super) fn populate(
    cx: &mut NodeCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let count = positive(args.text(2))?;
    let prefix = args.at(3).unwrap_or(PREFIX);
    let size = args.at(4).map(positive).transpose()?.filter(|size| *size > 0);
    if size.is_some_and(|size| size > VALUE_BYTES_MAX) {
        return Err(Error::NotPositive);
    }
    let mut visited = cx.take_visited();
    let db = cx.session.db;
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for number in visited.found..count {
        numbered(&mut name, prefix, number);
        numbered(&mut value, b"value", number);
        value.resize(size.unwrap_or(value.len()), 0);
        let turn = &mut cx.worker.turn;
        let key = turn.key(&name);
        let shard = cx.worker.node.map.shard_of(key.hash);
        let seen = cx.shards.visit(shard, &mut |shard| {
            let (db, changes) = (shard.db(db), turn.counters.changes);
            if !db.contains(turn, key) {
                db.put(turn, key, NewString::raw(&value, None), ExpiryChange::Clear);
                turn.counters.changes = changes;
            }
        });
        if seen == Err(ScriptError::ShardInUse) {
            visited.found = number;
            return cx.keep_visited(visited);
        }
        seen?;
    }
    reply.ok();
    Ok(())
}

fn positive(text: &[u8]) -> Result<usize, Error> {
    let number = base::number::parse_i64(text).and_then(|number| usize::try_from(number).ok());
    number.ok_or(Error::NotPositive)
}

fn numbered(out: &mut Vec<u8>, prefix: &[u8], number: usize) {
    out.clear();
    out.extend_from_slice(prefix);
    out.push(b':');
    base::number::push_u64(out, number as u64);
}
