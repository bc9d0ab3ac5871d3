//! Whether a client may run a command: it has authenticated, and the rules of its user allow the
//! command on these keys.
//!
//! Admission asks once for each request, and only if some request of the client could be denied.
//! EXEC and scripts ask again for each of their commands ([`admit_inside`]), because the rules may
//! have changed since a command was queued, and because a client may run a script without being
//! allowed its commands.

use std::sync::atomic::Ordering;

use acl::log::{AclEvent, DenialOrigin, DenialReason};
use acl::{AccessRequest, CheckedChannel, Denied, User};
use command::{Channels, Flags, Group};
use engine::{AclError, ConnectionError, Error, echo};
use resp::Args;

use crate::clients::record::{ClientRecord, flag};
use crate::clients::session::Session;
use crate::command_table::entry::Entry;
use crate::execution::worker::Worker;
use crate::state::client_line::client_line;

/// Whether a user may run a command with these arguments.
///
/// # Errors
/// The part that is denied.
#[inline]
pub(crate) fn check(user: &User, entry: &Entry, args: &Args<'_>) -> Result<(), Denied> {
    let request = AccessRequest { index: entry.index, spec: entry.spec, args, channels: &[] };
    match entry.spec.channels {
        Channels::None => user.check(&request),
        channels => check_with_channels(user, request, channels),
    }
}

#[inline(never)]
fn check_with_channels(
    user: &User,
    request: AccessRequest<'_>,
    which: Channels,
) -> Result<(), Denied> {
    let end = if which == Channels::First { 2 } else { request.args.len() };
    let is_pattern = which == Channels::Patterns;
    let channels: Vec<CheckedChannel> =
        (1..end).map(|at| CheckedChannel { at, is_pattern }).collect();
    user.check(&AccessRequest { channels: &channels, ..request })
}

/// Whether a session may run a command that its client sent. A denial is counted and logged.
///
/// # Errors
/// The reply; none is sent to a client that cannot [follow users](Session::follow_users).
pub(crate) fn admit(
    worker: &Worker,
    session: &mut Session,
    entry: &Entry,
    args: &Args<'_>,
) -> Result<(), Error> {
    let users = &worker.node.users;
    let exists = session.follow_users(users);
    if session.record.has(flag::RESERVED) {
        admit_beyond_limit(worker, session, entry)?;
    }
    let needs_user = !entry.spec.flags.has(Flags::NO_AUTH);
    if !exists || needs_user && session.must_authenticate(users) {
        return Err(Error::NoAuth);
    }
    let origin =
        if session.transaction.is_some() { DenialOrigin::Multi } else { DenialOrigin::TopLevel };
    let is_queued = origin == DenialOrigin::Multi && !entry.spec.flags.has(Flags::NOT_QUEUED);
    let checked = match check(session.user(), entry, args) {
        // As in Redis an option is denied when the command runs, and not when it is queued.
        Err(Denied::Option(_)) if is_queued => Ok(()),
        checked => checked,
    };
    checked.map_err(|denied| {
        note_denied(worker, &session.record, session.user(), entry, args, denied, origin)
    })?;
    if session.is_in_subscribed_mode() && !entry.spec.flags.has(Flags::SUBSCRIBED) {
        return Err(ConnectionError::Subscribed(entry.name.clone()).into());
    }
    let flags = entry.spec.flags;
    if session.watches_requests() && (flags.may_write() || flags.has(Flags::READONLY)) {
        return Err(ConnectionError::Watches.into());
    }
    if session.record.has(flag::RESERVED) {
        note_administration(session, entry);
    }
    Ok(())
}

/// Whether a client beyond `maxclients` may run a command.
///
/// # Errors
/// It may not, and must be closed.
fn admit_beyond_limit(worker: &Worker, session: &mut Session, entry: &Entry) -> Result<(), Error> {
    let clients = &worker.node.clients;
    if clients.len() <= worker.config.maxclients as usize {
        session.leave_reserve(&worker.node.users);
        return Ok(());
    }
    let Entry { spec, .. } = entry;
    let is_about_server = matches!(spec.group, Group::Connection | Group::Server)
        && spec.keys.is_empty()
        && !spec.flags.may_write()
        // A client that selects a database is about to use its keys.
        && spec.name != "select";
    if !spec.flags.has(Flags::ADMIN) && !is_about_server {
        worker.node.connections_rejected.fetch_add(1, Ordering::Relaxed);
        return Err(ConnectionError::TooManyClients.into());
    }
    Ok(())
}

/// Notes that a client beyond `maxclients` runs a command: an administrator keeps the place.
fn note_administration(session: &Session, entry: &Entry) {
    if entry.spec.flags.has(Flags::ADMIN) {
        session.record.set_flag(flag::ADMINISTERS, true);
    }
}

/// Whether a session may run a command inside another one: a queued one at EXEC, or one of its
/// script. A denial is counted and logged.
///
/// # Errors
/// The reply in the place of the command's.
#[inline]
pub(crate) fn admit_inside(
    worker: &Worker,
    session: &mut Session,
    entry: &Entry,
    args: &Args<'_>,
    origin: DenialOrigin,
) -> Result<(), Error> {
    let users = &worker.node.users;
    if session.is_free(users) {
        return Ok(());
    }
    // The rules at the begin of a transaction or script count until its end, so that it is executed
    // whole: a command that changes them waits for it, unless it belongs to the transaction itself.
    check(session.user(), entry, args).map_err(|denied| {
        let error =
            note_denied(worker, &session.record, session.user(), entry, args, denied, origin);
        match origin {
            DenialOrigin::TopLevel => error,
            DenialOrigin::Multi => revoked(denied, error),
            DenialOrigin::Lua => in_script(denied, error),
        }
    })
}

fn in_script(denied: Denied, error: Error) -> Error {
    match (denied, error) {
        (Denied::Command | Denied::Key(_) | Denied::Channel(_), Error::Acl(error)) => {
            AclError::InScript(Box::new(error)).into()
        }
        (_, error) => error,
    }
}

/// Why a command is denied that was allowed when it was queued.
fn revoked(denied: Denied, error: Error) -> Error {
    let reason = match denied {
        Denied::Command => "no permission to execute the command or subcommand",
        Denied::Key(_) => "no permission to touch the specified keys",
        Denied::Channel(_) => "no permission to access one of the channels used as arguments",
        Denied::Option(_) => return error,
    };
    AclError::Revoked(reason).into()
}

/// Counts and logs that a command was denied to a client's user. Returns the reply.
#[cold]
pub(crate) fn note_denied(
    worker: &Worker,
    record: &ClientRecord,
    user: &User,
    entry: &Entry,
    args: &Args<'_>,
    denied: Denied,
    origin: DenialOrigin,
) -> Error {
    if let Some((reason, at)) = DenialReason::of(denied) {
        let object = if at == 0 { entry.name.as_bytes() } else { args.text(at) };
        note(worker, record, reason, object, user.name(), origin);
    }
    let error = match denied {
        Denied::Command => AclError::Command(echo(user.name()), entry.name.clone()),
        Denied::Key(_) => AclError::Key,
        Denied::Channel(_) => AclError::Channel,
        Denied::Option(word) => AclError::Option(word),
    };
    error.into()
}

/// Counts and logs a denial to a client, under the name of a user.
pub(crate) fn note(
    worker: &Worker,
    record: &ClientRecord,
    reason: DenialReason,
    object: &[u8],
    user: &[u8],
    origin: DenialOrigin,
) {
    let count = match reason {
        DenialReason::Auth => &worker.stats.auth_failures,
        DenialReason::Command => &worker.stats.denied_commands,
        DenialReason::Key => &worker.stats.denied_keys,
        DenialReason::Channel => &worker.stats.denied_channels,
    };
    count.add(1);
    let client = client_line(record, &worker.node, worker.turn.steady_ms);
    let event = AclEvent::new(reason, object, origin, user, client.as_bytes());
    let len_max = worker.config.acl.log_max_len;
    worker.node.users.log.lock().push(event, worker.turn.unix_ms, len_max);
}
