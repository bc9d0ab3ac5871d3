//! The listening sockets: opened as a configuration says, and watched by the main thread.

use std::os::fd::AsFd;

use node::config::Config;
use sys::epoll::{Epoll, Interest};

use crate::net::listener::{ListenAddress, Listener, ListenerKind};
use crate::system::server_log::warning;
use crate::threads::control::Control;

/// Tokens of listening sockets begin here, in the order of [`Control::listeners`].
pub const LISTENER_TOKEN: u64 = 1 << 63;

impl Control {
    /// The TCP port in use; the TLS port if there is no other, 0 without either.
    pub fn tcp_port(&self) -> u16 {
        let port = |kind| {
            let mut ports = self.listeners.iter().filter(|listener| listener.address.kind == kind);
            ports.find_map(Listener::port)
        };
        port(ListenerKind::Tcp).or_else(|| port(ListenerKind::Tls)).unwrap_or(0)
    }

    /// Opens the sockets that a configuration asks for; the main thread watches them. Open sockets
    /// stay as they are, and so do those in `spare`, which another configuration asked for. Returns
    /// the sockets that the configuration does not ask for, which listen until they are dropped.
    ///
    /// # Errors
    /// A sentence that says which socket could not be opened, and why. The sockets are then the
    /// former ones.
    pub fn open_listeners(
        &mut self,
        config: &Config,
        spare: Vec<Listener>,
    ) -> Result<Vec<Listener>, String> {
        let wanted = ListenAddress::all(config);
        for (nth, address) in wanted.iter().enumerate() {
            if wanted[..nth].iter().any(|earlier| earlier.is_same(address)) {
                return Err(format!("Could not listen on {} twice", address.name));
            }
        }
        let is_wanted =
            |listener: &Listener| wanted.iter().any(|address| address.is_same(&listener.address));
        let open = std::mem::take(&mut self.listeners).into_iter().chain(spare);
        let (mut kept, mut unwanted): (Vec<_>, Vec<_>) = open.partition(is_wanted);
        let epoll = self.epoll.as_deref();
        let missing: Vec<_> = wanted
            .iter()
            .filter(|address| !kept.iter().any(|open| address.is_same(&open.address)))
            .collect();
        let opened = open_all(&missing, &kept, config, epoll).or_else(|reason| {
            // A socket that goes may have the port of one that comes.
            let is_in_the_way =
                |old: &mut Listener| missing.iter().any(|address| address.port == old.address.port);
            let closed = unwanted.extract_if(.., is_in_the_way);
            let closed: Vec<_> = closed.map(|listener| listener.address.clone()).collect();
            if closed.is_empty() {
                return Err(reason);
            }
            open_all(&missing, &kept, config, epoll).inspect_err(|_| {
                for address in &closed {
                    match open_all(&[address], &[], config, epoll) {
                        Ok(reopened) => unwanted.extend(reopened),
                        Err(reason) => warning!("{reason}"),
                    }
                }
            })
        });
        let result = match opened {
            Ok(opened) => {
                kept.extend(opened);
                Ok(unwanted)
            }
            Err(reason) => {
                kept.extend(unwanted);
                Err(reason)
            }
        };
        self.listeners = kept;
        let accepts = self.accept_again_ms.is_none();
        self.watch_listeners(if accepts { Interest::READ } else { Interest::NONE });
        result
    }

    /// Stops accepting until `resume_accepting`: the process is out of descriptors, and connections
    /// that wait would end every wait.
    pub fn pause_accepting(&mut self, until_ms: i64) {
        self.watch_listeners(Interest::NONE);
        self.accept_again_ms = Some(until_ms);
    }

    /// Accepts again after the pause.
    pub fn resume_accepting(&mut self, steady_ms: i64) {
        if self.accept_again_ms.is_some_and(|until_ms| steady_ms >= until_ms) {
            self.accept_again_ms = None;
            self.watch_listeners(Interest::READ);
        }
    }

    fn watch_listeners(&self, interest: Interest) {
        if let Some(epoll) = &self.epoll {
            for (token, listener) in (LISTENER_TOKEN..).zip(&self.listeners) {
                let _ = epoll.modify(listener.as_fd(), token, interest);
            }
        }
    }
}

/// Opens sockets and adds them to `epoll`. `others` are already open.
fn open_all(
    addresses: &[&ListenAddress],
    others: &[Listener],
    config: &Config,
    epoll: Option<&Epoll>,
) -> Result<Vec<Listener>, String> {
    let mut opened: Vec<Listener> = Vec::with_capacity(addresses.len());
    for address in addresses {
        let Some(listener) = Listener::open(address, config)? else { continue };
        if let Some(epoll) = epoll {
            let added = epoll.add(listener.as_fd(), LISTENER_TOKEN, Interest::NONE);
            added.map_err(|error| error.to_string())?;
        }
        opened.push(listener);
    }
    for address in addresses.iter().filter(|address| address.kind != ListenerKind::Unix) {
        let is_found = |open: &Listener| open.address.kind == address.kind;
        if !others.iter().chain(&opened).any(is_found) {
            return Err(format!(
                "Could not create server TCP listening socket on port {}: none of the addresses \
                 in 'bind' exists on this machine",
                address.port
            ));
        }
    }
    Ok(opened)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::field_reassign_with_default)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::Arc;

    use super::*;

    /// Ports that are free at this moment.
    fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
        let sockets = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        sockets.map(|socket| socket.local_addr().expect("bound").port())
    }

    /// The open sockets: kinds, names, ports and descriptors.
    fn open(control: &Control) -> Vec<(ListenerKind, String, u16, RawFd)> {
        let listeners = control.listeners.iter().map(|listener| {
            let ListenAddress { kind, name, .. } = &listener.address;
            let port = listener.port().unwrap_or(0);
            (*kind, name.clone(), port, listener.as_fd().as_raw_fd())
        });
        let mut open: Vec<_> = listeners.collect();
        open.sort_by_key(|(kind, name, ..)| (*kind as u8, name.clone()));
        open
    }

    fn addresses(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    struct Case {
        control: Control,
        config: Config,
        taken: TcpListener,
    }

    /// All kinds of sockets are open.
    fn case(name: &str) -> Case {
        let [port, tls_port] = free_ports();
        let path = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
        let config = Config {
            bind: addresses(&["127.0.0.1"]),
            port,
            tls_port,
            unixsocket: path.to_string_lossy().into_owned(),
            ..Config::default()
        };
        let epoll = Some(Arc::new(Epoll::new().expect("a descriptor")));
        let mut control = Control::default();
        control.epoll = epoll;
        control.open_listeners(&config, Vec::new()).expect("the ports are free");
        Case { control, config, taken: TcpListener::bind("127.0.0.1:0").expect("a port") }
    }

    #[test]
    fn a_parameter_changes_the_sockets_that_it_names() {
        let Case { mut control, config, .. } = case("names");
        let [tcp, tls, unix] = &open(&control)[..] else { panic!("three sockets") };
        let [port] = free_ports();
        let moved = Config { port, ..config.clone() };
        let unwanted = control.open_listeners(&moved, Vec::new()).expect("the port is free");
        assert_eq!(unwanted.len(), 1);
        let now = open(&control);
        assert_eq!((now[0].2, &now[1], &now[2]), (port, tls, unix));
        assert_eq!(control.tcp_port(), port);
        // Back again, to the very socket.
        drop(control.open_listeners(&config, unwanted).expect("it is open"));
        assert_eq!(open(&control), [tcp.clone(), tls.clone(), unix.clone()]);
        let off = Config { tls_port: 0, ..config.clone() };
        drop(control.open_listeners(&off, Vec::new()).expect("nothing to open"));
        assert_eq!(open(&control), [tcp.clone(), unix.clone()]);
        let more = Config { bind: addresses(&["127.0.0.1", "127.0.0.2"]), ..off };
        drop(control.open_listeners(&more, Vec::new()).expect("the address exists"));
        let now = open(&control);
        assert_eq!((&now[0], &now[1].1[..], &now[2]), (tcp, "127.0.0.2", unix));
        // The old socket is in the way of the new one.
        let every = Config { bind: addresses(&["*"]), ..more };
        drop(control.open_listeners(&every, Vec::new()).expect("the old one gives way"));
        assert_eq!(open(&control).len(), 2);
    }

    #[test]
    fn sockets_stay_when_another_cannot_be_opened() {
        let Case { mut control, config, taken } = case("stay");
        let before = open(&control);
        let port = taken.local_addr().expect("bound").port();
        for wrong in [
            Config { port, ..config.clone() },
            Config { tls_port: port, ..config.clone() },
            Config { bind: addresses(&["127.0.0.1", "192.0.2.1"]), ..config.clone() },
            Config { bind: addresses(&["127.0.0.1", "-127.0.0.1"]), ..config.clone() },
        ] {
            control.open_listeners(&wrong, Vec::new()).expect_err("it cannot be opened");
            assert_eq!(open(&control), before);
        }
        // Closed to make room, and opened again.
        let wrong = Config { bind: addresses(&["*", "192.0.2.1"]), ..config.clone() };
        control.open_listeners(&wrong, Vec::new()).expect_err("it cannot be opened");
        let ports = |open: Vec<(ListenerKind, String, u16, RawFd)>| {
            open.into_iter().map(|(kind, name, port, _)| (kind, name, port)).collect::<Vec<_>>()
        };
        assert_eq!(ports(open(&control)), ports(before));
    }
}
