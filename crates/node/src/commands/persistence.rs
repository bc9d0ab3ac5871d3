//! SAVE, BGSAVE and LASTSAVE (<https://redis.io/docs/latest/commands/?group=server>), and WEFT
//! BACKUP.

use command::{Argument, Flags, Group, Row, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::host::SaveError;
use crate::state::waiter::Waiter;

/// The commands on RDB files.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        spec("save", 1)
            .summary("Synchronously saves the database(s) to disk.")
            .complexity("O(N) where N is the total number of keys in all databases")
            .flags(SAVE_FLAGS.with(Flags::NO_MULTI)),
        save,
    ),
    Row::new(
        spec("bgsave", -1)
            .summary("Asynchronously saves the database(s) to disk.")
            .complexity("O(1), and O(N) in the background for N keys in all databases.")
            .flags(SAVE_FLAGS)
            .arguments(&[Argument::word("schedule", "SCHEDULE").optional().since("3.2.2")])
            .history(&[("3.2.2", "Takes SCHEDULE.")]),
        bgsave,
    ),
    Row::new(
        spec("lastsave", 1)
            .summary("Returns the Unix timestamp of the last successful save to disk.")
            .flags(Flags::LOADING.with(Flags::STALE).with(Flags::FAST))
            .category(command::Category::ADMIN)
            .category(command::Category::DANGEROUS)
            .tips(&["nondeterministic_output"]),
        lastsave,
    ),
];

const SAVE_FLAGS: Flags =
    Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::NO_ASYNC_LOADING).with(Flags::MAIN);

const fn spec(name: &'static str, arity: i32) -> Spec {
    Spec::new(name, arity, Group::Server, "1.0.0")
}

fn save(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let saved = cx.outside(|host| host.save());
    if let Ok(()) | Err(SaveError::Failed) = saved {
        cx.worker.node.snapshots.figures.lock().saves += 1;
    }
    saved.map_err(|error| match error {
        SaveError::Saving => ServerError::Saving,
        SaveError::SnapshotTaken => ServerError::SnapshotTaken,
        SaveError::Failed => ServerError::NotSaved,
    })?;
    reply.ok();
    Ok(())
}

fn bgsave(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let schedules = args.take_word("schedule");
    if args.remaining() > 0 {
        return Err(Error::Syntax);
    }
    let begun = match cx.is_nested {
        // The save must contain the transaction's changes, so it starts later.
        true => Err(SaveError::SnapshotTaken),
        false => cx.outside(|host| host.begin_save()),
    };
    match begun {
        Ok(()) => reply.simple("Background saving started"),
        Err(SaveError::SnapshotTaken) if schedules || cx.is_nested => {
            cx.worker.node.snapshots.figures.lock().is_scheduled = true;
            reply.simple("Background saving scheduled");
        }
        Err(SaveError::Saving) => return Err(ServerError::Saving.into()),
        Err(SaveError::SnapshotTaken) => return Err(ServerError::SnapshotTaken.into()),
        Err(SaveError::Failed) => return Err(ServerError::NotSaved.into()),
    }
    Ok(())
}

fn lastsave(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.int(cx.worker.node.snapshots.figures.lock().last_save_unix);
    Ok(())
}

/// WEFT BACKUP path \[REPLACE\] \[WAIT\]: writes a consistent RDB file to a path, in the
/// background. With REPLACE it may take the place of an RDB file, once it is whole. With WAIT the
/// client is answered when it is, or has failed.
pub(super) fn backup(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let refused = |why: &str| Error::from(ServerError::NoBackup(why.to_owned()));
    let path = std::str::from_utf8(args.text(2)).ok().filter(|path| !path.contains('\0'));
    let path = path.filter(|path| !path.is_empty()).ok_or_else(|| refused("no such path"))?;
    let may_leave = cx.worker.node.config().enable_protected_configs;
    if path.contains('/') && !may_leave.allows(cx.session.record.is_local()) {
        // A client that can write any file has the rights of the process's user.
        return Err(refused("a path outside 'dir' needs 'enable-protected-configs'"));
    }
    let (mut replaces, mut waits) = (false, false);
    args.seek(3);
    while args.remaining() > 0 {
        if !replaces && args.take_word("replace") {
            replaces = true;
        } else if !waits && args.take_word("wait") {
            waits = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    match cx.outside(|host| host.begin_backup(path, replaces)) {
        Ok(number) if waits => {
            let tsc = (cx.tsc)().wrapping_sub(cx.worker.last_tsc);
            let (session, command, node) = (&*cx.session, cx.entry.index, &cx.worker.node);
            let (waits, snapshots) = (&node.waits, &node.snapshots);
            let waiter =
                Waiter::begin_for_backup(session, command, waits, snapshots, number, args, tsc);
            cx.outcome = Outcome::Block(waiter);
        }
        Ok(_) => reply.simple("Backup started"),
        Err(None) => return Err(ServerError::BackupTaken.into()),
        Err(Some(why)) => return Err(refused(&why)),
    }
    Ok(())
}
