//! AUTH (<https://redis.io/docs/latest/commands/auth/>) and HELLO
//! (<https://redis.io/docs/latest/commands/hello/>).
//!
//! There is one user, `default`, whose password is `requirepass`. A password that changes concerns
//! connections made or reset later, as in Redis.

use std::hint::black_box;

use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::connection::{is_clean, set_name};
use crate::clients::record::DEFAULT_USER;
use crate::execution::node_cx::NodeCx;

pub(super) fn auth(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (user, password) = match args.len() {
        2 if cx.worker.config.requirepass.is_empty() => {
            return Err(ConnectionError::NoPasswordSet.into());
        }
        2 => (DEFAULT_USER.as_bytes(), args.text(1)),
        3 => (args.text(1), args.text(2)),
        _ => return Err(Error::Syntax),
    };
    authenticate(cx, user, password)?;
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
        authenticate(cx, user, password)?;
    }
    if !cx.session.authenticated {
        return Err(ConnectionError::HelloNeedsAuth.into());
    }
    if let Some(name) = name {
        set_name(cx, name)?;
    }
    if let Some(resp3) = version {
        cx.session.set_resp3(resp3);
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
    reply.bulk(crate::COMPAT_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.int(if cx.session.resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.int(i64::try_from(cx.session.record.id).unwrap_or(i64::MAX));
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

/// Authenticates the client, or leaves it as it was.
fn authenticate(cx: &mut NodeCx<'_>, user: &[u8], password: &[u8]) -> Result<(), Error> {
    let wanted = &cx.worker.config.requirepass;
    let fits = wanted.is_empty() || same_secret(wanted, password);
    if !fits || user != DEFAULT_USER.as_bytes() {
        cx.worker.stats.auth_failures.add(1);
        return Err(ConnectionError::WrongPassword.into());
    }
    cx.session.authenticated = true;
    Ok(())
}

/// Whether two secrets are the same, in a time that depends on the length of `given` alone, so that
/// trying passwords teaches nothing about the right one. `wanted` is not empty.
fn same_secret(wanted: &[u8], given: &[u8]) -> bool {
    let mut differences = usize::from(wanted.len() != given.len());
    for (wanted, given) in wanted.iter().cycle().zip(given) {
        differences |= usize::from(black_box(wanted ^ given));
    }
    black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::same_secret;

    #[test]
    fn only_the_same_secret_is_the_same() {
        assert!(same_secret(b"secret", b"secret"));
        for given in [&b""[..], b"s", b"secre", b"secret2", b"secretsecret", b"Secret", b"secreT"] {
            assert!(!same_secret(b"secret", given), "{given:?}");
        }
    }
}
