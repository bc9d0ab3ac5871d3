//! New connections: the main thread accepts them, refuses those that may not enter, and gives each
//! of the others to the thread with the fewest clients.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use node::clients::record::flag;
use node::config::Config;
use node::{ClientRecord, Host, Node, Session};
use rustls::ServerConfig;

use crate::net::listener::{Accepted, ListenerKind};
use crate::net::tls::TlsStream;
use crate::net::transport::Transport;
use crate::system::server_log::{verbose, warning};
use crate::threads::connection::Connection;
use crate::threads::listeners::LISTENER_TOKEN;
use crate::threads::shared::SharedState;

/// After an error that the next attempt would meet again, the most likely one being that the
/// process is out of descriptors, nothing is accepted for so long.
const ACCEPT_PAUSE_MS: i64 = 100;

const DENIED: &[u8] = b"-DENIED Weft is running in protected mode, because no password is set for \
the default user: only connections from the same machine are accepted. To connect from elsewhere \
either set a password with 'CONFIG SET requirepass', or, if the network protects the server, \
switch protected mode off with 'CONFIG SET protected-mode no' or '--protected-mode no' (both from \
this machine).\r\n";

/// Accepts the connections that wait at a listening socket, up to the limit of one turn.
pub fn accept(shared: &SharedState, token: u64, steady_ms: i64) {
    let config = shared.node.config();
    let mut left = usize::MAX;
    while left > 0 {
        let (accepted, kind, tls) = {
            let control = shared.control.lock();
            let Some(listener) = control.listeners.get((token - LISTENER_TOKEN) as usize) else {
                return;
            };
            let kind = listener.address.kind;
            left = left.min(match kind {
                ListenerKind::Tls => config.accepting.max_new_tls_connections_per_cycle,
                _ => config.accepting.max_new_connections_per_cycle,
            });
            let tls = if kind == ListenerKind::Tls { control.tls.clone() } else { None };
            (listener.accept(&config), kind, tls)
        };
        left -= 1;
        match accepted {
            Ok(accepted) => admit(shared, &config, accepted, kind, tls, steady_ms),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                warning!("Accepting client connection: {error}");
                shared.control.lock().pause_accepting(steady_ms + ACCEPT_PAUSE_MS);
                return;
            }
        }
    }
}

/// Whether the default user has no password.
fn is_unprotected(node: &Node) -> bool {
    node.users.read().default_user().needs_no_password()
}

/// Takes a new connection, or refuses it.
pub(crate) fn admit(
    shared: &SharedState,
    config: &Config,
    mut accepted: Accepted,
    kind: ListenerKind,
    tls: Option<Arc<ServerConfig>>,
    steady_ms: i64,
) {
    let node = &shared.node;
    let others = node.clients.len();
    let is_reserved = others >= config.maxclients as usize;
    let close = |record: &ClientRecord| shared.close_client(record);
    let has_place = !is_reserved || node.clients.reserve.make_place(steady_ms, close);
    let refusal: Option<&[u8]> = if !has_place {
        Some(b"-ERR max number of clients reached\r\n")
    } else if config.protected_mode && is_unprotected(node) && !accepted.is_local {
        Some(DENIED)
    } else {
        None
    };
    if let Some(text) = refusal {
        node.connections_rejected.fetch_add(1, Ordering::Relaxed);
        // Best effort: a TLS client would not understand it.
        if kind != ListenerKind::Tls {
            let _ = accepted.stream.write(text);
        }
        return;
    }
    let fd = accepted.stream.as_fd().as_raw_fd();
    let transport = match (kind, tls) {
        (ListenerKind::Tcp | ListenerKind::Unix, _) => Transport::Plain(accepted.stream),
        (ListenerKind::Tls, Some(setup)) => match TlsStream::new(accepted.stream, setup) {
            Ok(stream) => Transport::Tls(Box::new(stream)),
            Err(error) => return warning!("Accepting client connection: {error}"),
        },
        // There is no such port without a setup.
        (ListenerKind::Tls, None) => return,
    };
    node.connections_received.fetch_add(1, Ordering::Relaxed);
    verbose!("Accepted {}", accepted.address);
    let flags = match kind {
        ListenerKind::Tcp => 0,
        ListenerKind::Tls => flag::TLS,
        ListenerKind::Unix => flag::UNIX_SOCKET,
    };
    let flags = if is_reserved { flags | flag::RESERVED } else { flags };
    let id = node.clients.next_id();
    let addresses = (accepted.address.into(), accepted.local_address.into());
    let record = Arc::new(ClientRecord::new(id, addresses, fd, steady_ms, flags));
    node.clients.add(Arc::clone(&record));
    if is_reserved {
        node.clients.reserve.add(&record);
    }
    let session = Session::new(record, &node.users);
    shared.move_client(shared.thread_for_client(), Box::new(Connection::new(session, transport)));
}
