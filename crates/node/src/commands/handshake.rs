//! AUTH (<https://redis.io/docs/latest/commands/auth/>) and HELLO
//! (<https://redis.io/docs/latest/commands/hello/>).
//!
//! As in Redis, a changed password affects only connections made or reset later.

use std::sync::Arc;

use acl::log::{DenialOrigin, DenialReason};
use acl::{DEFAULT_USER, PasswordDigest};
use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::connection::{is_clean, set_name};
use crate::execution::access;
use crate::execution::node_cx::NodeCx;

/// Longer passwords are digested outside the gate, because that takes long.
const DIGESTED_INSIDE_BYTES_MAX: usize = 16 * 1024;

pub(super) fn auth(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (user, password) = match args.len() {
        2 if cx.worker.node.users.read().default_user().needs_no_password() => {
            return Err(ConnectionError::NoPasswordSet.into());
        }
        2 => (DEFAULT_USER, args.text(1)),
        3 => (args.text(1), args.text(2)),
        _ => return Err(Error::Syntax),
    };
    authenticate(cx, args.name(), user, password)?;
    reply.ok();
    Ok(())
}

pub(super) fn hello(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let version = args.next().map(protocol).transpose()?;
    let (mut login, mut name) = (None, None);
    while let Some(option) = args.peek() {
        if args.remaining() > 2 && args.take_word("auth") {
            login = args.next().zip(args.next());
        } else if args.remaining() > 1 && args.take_word("setname") {
            name = args.next();
            if !name.is_none_or(is_clean) {
                return Err(ConnectionError::Name.into());
            }
        } else {
            return Err(ConnectionError::HelloOption(echo(option)).into());
        }
    }
    if let Some((user, password)) = login {
        authenticate(cx, args.name(), user, password)?;
    }
    if !cx.session.is_authenticated() {
        return Err(ConnectionError::HelloNeedsAuth.into());
    }
    if let Some(name) = name {
        set_name(cx, name)?;
    }
    if let Some(resp3) = version {
        cx.session.set_resp3(resp3, &cx.worker.node.users);
        reply.set_resp3(resp3);
    }
    describe(cx, reply);
    Ok(())
}

/// Whether the protocol of this version is RESP3.
fn protocol(version: &[u8]) -> Result<bool, Error> {
    match base::number::parse_i64(version) {
        Some(2) => Ok(false),
        Some(3) => Ok(true),
        Some(_) => Err(ConnectionError::Protocol.into()),
        None => Err(ConnectionError::ProtocolNotInteger.into()),
    }
}

fn describe(cx: &NodeCx<'_>, reply: &mut Reply<'_>) {
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(crate::version::COMPAT_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.int(if cx.session.resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.unsigned(cx.session.record.id);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

/// Authenticates the client; after a failure it keeps its user. `command` is the command's name as
/// sent, for the ACL log.
fn authenticate(
    cx: &mut NodeCx<'_>,
    command: &[u8],
    name: &[u8],
    password: &[u8],
) -> Result<(), Error> {
    let digest = match password.len() {
        0..=DIGESTED_INSIDE_BYTES_MAX => PasswordDigest::of(password),
        _ => cx.outside(|_| PasswordDigest::of(password)),
    };
    let node = Arc::clone(&cx.worker.node);
    let seen = node.users.generation_to_follow();
    let Some(user) = node.users.find(name).filter(|user| user.accepts(&digest)) else {
        let record = &cx.session.record;
        access::note(cx.worker, record, DenialReason::Auth, command, name, DenialOrigin::TopLevel);
        return Err(ConnectionError::WrongPassword.into());
    };
    cx.session.log_in(user, seen, &node.users);
    Ok(())
}
