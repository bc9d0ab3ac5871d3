//! ACL LOG (<https://redis.io/docs/latest/commands/acl-log/>).

use acl::log::AclLogEntry;
use base::number::parse_i64;
use engine::Error;
use resp::{Args, Reply};

use super::rules::wrong_form;
use crate::execution::node_cx::NodeCx;

/// Entries to return by default.
const DEFAULT_COUNT: usize = 10;

pub(super) fn log(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut log = cx.worker.node.users.log.lock();
    let count = match args.len() {
        2 => DEFAULT_COUNT,
        3 if args.text(2).eq_ignore_ascii_case(b"reset") => {
            log.clear();
            reply.ok();
            return Ok(());
        }
        3 => {
            let count = parse_i64(args.text(2)).ok_or(Error::NotInteger)?;
            usize::try_from(count.max(0)).unwrap_or(usize::MAX)
        }
        _ => return Err(wrong_form(args)),
    };
    reply.array(count.min(log.iter().len()));
    for entry in log.iter().take(count) {
        reply_entry(entry, cx.worker.turn.unix_ms, reply);
    }
    Ok(())
}

fn reply_entry(entry: &AclLogEntry, unix_ms: i64, reply: &mut Reply<'_>) {
    let event = &entry.event;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    reply.map(10);
    reply.bulk(b"count");
    reply.int(number(entry.count));
    for (name, text) in [
        ("reason", event.reason().name().as_bytes()),
        ("context", event.origin().name().as_bytes()),
        ("object", event.object()),
        ("username", event.user()),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(text);
    }
    reply.bulk(b"age-seconds");
    reply.double((unix_ms - entry.updated_ms) as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(event.client());
    for (name, value) in [
        ("entry-id", number(entry.id)),
        ("timestamp-created", entry.created_ms),
        ("timestamp-last-updated", entry.updated_ms),
    ] {
        reply.bulk(name.as_bytes());
        reply.int(value);
    }
}
