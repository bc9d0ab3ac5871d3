//! DEBUG RELOAD saves the keyspace, empties it and loads it again. DEBUG LOADAOF empties it and
//! loads the append-only file. As in Redis, all other commands are paused meanwhile.

use engine::{Error, ServerError};
use resp::Args;
use script::{LogLevel, RestorePolicy};

use crate::execution::node_cx::NodeCx;
use crate::host::{Reload, Reloaded, SaveError};
use crate::scripting::libraries::load_sources;

const NOT_LOADED: &str = "ERR Error trying to load the RDB dump, check server logs";

pub(super) fn reload(cx: &mut NodeCx<'_>, args: &mut Args<'_>) -> Result<(), Error> {
    let (mut how, mut flushes) = (Reload { saves: true, merges: false }, true);
    args.seek(2);
    while args.remaining() > 0 {
        if args.take_word("merge") {
            how.merges = true;
        } else if args.take_word("noflush") {
            flushes = false;
        } else if args.take_word("nosave") {
            how.saves = false;
        } else {
            let text = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";
            return Err(ServerError::Reload(text).into());
        }
    }
    if cx.is_nested {
        return Err(ServerError::Reload("ERR DEBUG RELOAD is not allowed here").into());
    }
    let pause = cx.outside(|host| host.begin_reload(how)).map_err(|error| match error {
        SaveError::Saving => ServerError::Saving,
        SaveError::SnapshotTaken => ServerError::SnapshotTaken,
        SaveError::Failed => {
            ServerError::Reload("ERR Error saving the RDB dump, check server logs")
        }
    })?;
    let reloaded = reload_paused(cx, how, flushes);
    cx.outside(|host| host.end_reload(pause));
    reloaded
}

pub(super) fn load_append_only(cx: &mut NodeCx<'_>) -> Result<(), Error> {
    if cx.is_nested {
        return Err(ServerError::Reload("ERR DEBUG LOADAOF is not allowed here").into());
    }
    let failed =
        || ServerError::Reload("ERR Error trying to load the AOF files, check server logs");
    let how = Reload { saves: false, merges: false };
    let pause = cx.outside(|host| host.begin_reload(how)).map_err(|_| failed())?;
    let loaded = load_append_only_paused(cx);
    cx.outside(|host| host.end_reload(pause));
    Ok(loaded.ok().flatten().ok_or_else(failed)?)
}

/// Returns `None` if the file could not be loaded.
fn load_append_only_paused(cx: &mut NodeCx<'_>) -> Result<Option<()>, Error> {
    if cx.outside(|host| host.flush_append_only()).is_err() {
        return Ok(None);
    }
    flush(cx)?;
    let mut removed = cx.worker.turn.lazy_free.take();
    let loaded = cx.outside(|host| {
        host.free(&mut removed);
        host.load_append_only()
    });
    Ok(loaded.ok())
}

fn reload_paused(cx: &mut NodeCx<'_>, how: Reload, flushes: bool) -> Result<(), Error> {
    let failed = || ServerError::Reload(NOT_LOADED);
    if flushes {
        flush(cx)?;
    }
    let mut removed = cx.worker.turn.lazy_free.take();
    let loaded = cx.outside(|host| {
        host.free(&mut removed);
        host.load(how)
    });
    let Reloaded { db_keys, functions } = loaded.map_err(|_| failed())?;
    for (number, keys) in (0..).zip(db_keys) {
        cx.worker.turn.keys.add(number, keys);
    }
    let policy = match flushes {
        true => RestorePolicy::Flush,
        false if how.merges => RestorePolicy::Replace,
        false => RestorePolicy::Append,
    };
    let NodeCx { worker, host, gate, tsc, .. } = cx;
    let loaded = host.outside(*gate, |host| {
        load_sources(worker, *tsc, host, &functions, policy).inspect_err(|why| {
            host.log(LogLevel::Warning, format!("Functions can't be loaded: {why}").as_bytes());
        })
    });
    Ok(loaded.map_err(|_| failed())?)
}

fn flush(cx: &mut NodeCx<'_>) -> Result<(), Error> {
    let turn = &mut cx.worker.turn;
    turn.keys.begin_generation(None);
    for shard in 0..cx.worker.node.map.len() {
        cx.shards.visit(shard, &mut |shard| {
            for db in shard.dbs().filter(|db| !db.is_empty()) {
                turn.lazy_free.push(db.clear(turn));
            }
            shard.drop_empty();
        })?;
    }
    Ok(())
}
