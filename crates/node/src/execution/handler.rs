//! Calling the handler of a command on data, with the shards that are locked for it.

use engine::{BlockingHandler, Cx, Error, Handler, LockedShards, ScriptError, exec};
use resp::out::Mark;
use resp::{Args, Reply};

use super::outcome::Outcome;
use super::worker::Worker;

/// A handler's result as an outcome: `done`, or an error that replaces what has been replied. A
/// command that did not get a shard has done nothing that cannot be done again.
#[inline]
pub(super) fn finish(
    result: Result<(), Error>,
    done: Outcome,
    mark: Mark,
    reply: &mut Reply<'_>,
) -> Outcome {
    match result {
        Ok(()) => done,
        Err(error) => {
            reply.truncate(mark);
            if matches!(error, Error::Script(ScriptError::ShardInUse)) {
                return Outcome::ShardInUse;
            }
            reply.error(&error.text());
            Outcome::Failed
        }
    }
}

/// The shards that a command on data gets, and its database.
pub(crate) struct OnShards<'a, 's> {
    pub(crate) db: usize,
    pub(crate) shards: LockedShards<'s>,
    /// The hashes of its keys.
    pub(crate) hashes: &'a [u64],
}

#[inline(always)]
pub(crate) fn handle_data(
    handler: Handler,
    worker: &mut Worker,
    on: OnShards<'_, '_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let OnShards { db, mut shards, hashes } = on;
    let mark = reply.mark();
    let (mut parts, ..) = worker.parts(db);
    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
    let result = handler(&mut cx, args, reply);
    exec::seal(&mut cx, args);
    worker.publish_changes();
    finish(result, Outcome::Done, mark, reply)
}

/// Calls the handler of a command that may block its client. It does not block: it behaves as if
/// its time were over.
pub(crate) fn handle_without_blocking(
    handler: BlockingHandler,
    worker: &mut Worker,
    on: OnShards<'_, '_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let OnShards { db, mut shards, hashes } = on;
    let mark = reply.mark();
    let (mut parts, ..) = worker.parts(db);
    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
    let result = handler(&mut cx, args, reply);
    exec::seal(&mut cx, args);
    worker.publish_changes();
    if let Ok(Some(block)) = &result {
        // As in Redis, one element that is not there is a null, several are a null array.
        match block.target {
            Some(_) => reply.null(),
            None => reply.null_array(),
        }
    }
    finish(result.map(drop), Outcome::Done, mark, reply)
}
