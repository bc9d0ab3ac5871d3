//! Commands that show users: ACL GETUSER (<https://redis.io/docs/latest/commands/acl-getuser/>),
//! LIST, USERS and WHOAMI.

use acl::Selector;
use engine::Error;
use resp::{Args, Reply};

use crate::execution::node_cx::NodeCx;

pub(super) fn user(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let Some(user) = cx.worker.node.users.find(args.text(2)) else {
        reply.null();
        return Ok(());
    };
    let Some((root, others)) = user.selectors().split_first() else { return Ok(()) };
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(user.flags().count());
    user.flags().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords().len());
    for digest in user.passwords() {
        reply.bulk(digest.to_string().as_bytes());
    }
    selector(root, reply);
    reply.bulk(b"selectors");
    reply.array(others.len());
    for other in others {
        reply.map(3);
        selector(other, reply);
    }
    Ok(())
}

/// Writes three fields of a map.
fn selector(selector: &Selector, reply: &mut Reply<'_>) {
    reply.bulk(b"commands");
    reply.bulk(&selector.commands_text());
    reply.bulk(b"keys");
    reply.bulk(&selector.keys_text());
    reply.bulk(b"channels");
    reply.bulk(&selector.channels_text());
}

pub(super) fn list(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let users = cx.worker.node.users.read();
    reply.array(users.iter().len());
    users.iter().for_each(|user| reply.bulk(&user.line()));
    Ok(())
}

pub(super) fn names(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let users = cx.worker.node.users.read();
    reply.array(users.iter().len());
    users.iter().for_each(|user| reply.bulk(user.name()));
    Ok(())
}

pub(super) fn own_name(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.bulk(cx.session.user().name());
    Ok(())
}
