//! Tells the service manager that the server is ready: a datagram to systemd's notify socket
//! (sd_notify(3)), or SIGSTOP for upstart, which is not supported.

use std::os::unix::net::UnixDatagram;

use node::config::{Config, Supervised};

use crate::system::server_log::warning;

/// Reports readiness where the configuration asks for it.
pub fn ready(config: &Config) {
    let socket = std::env::var("NOTIFY_SOCKET").unwrap_or_default();
    let wanted = match config.supervised {
        Supervised::Systemd => true,
        Supervised::Auto => !socket.is_empty(),
        _ => false,
    };
    if !wanted {
        return;
    }
    if socket.is_empty() {
        warning!("systemd supervision requested, but NOTIFY_SOCKET is not set");
        return;
    }
    if let Err(error) = send(&socket, b"STATUS=Ready to accept connections\nREADY=1\n") {
        warning!("Can't notify systemd: {error}");
    }
}

fn send(path: &str, text: &[u8]) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A leading '@' stands for the abstract name space.
    match path.strip_prefix('@') {
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            socket.send_to_addr(text, &address)?;
        }
        None => {
            socket.send_to(text, path)?;
        }
    }
    Ok(())
}
