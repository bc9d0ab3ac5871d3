//! A TCP proxy on loopback that disturbs connections as a test asks.
//!
//! ```text
//!             connects: pass, hold, refuse
//!  client ---------> Proxy ----------------> server
//!           ProxyLink (one connection)
//!             Forward:  rule, bytes, record -->
//!             Backward: rule, bytes, record <--
//! ```
//!
//! A rule names positions in the bytes of a direction, so a cut or a hold happens at the same byte
//! in each run. A test waits for positions and connections, never for time.
//!
//! Not here: packets that are lost or reordered within a connection, which TCP does not show, and a
//! port that refuses connections by the system: [`Connects::Refuse`] closes them after they were
//! accepted, so that no other process takes the port.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::WAIT_MAX;

/// This much of each direction is recorded.
const RECORDED_BYTES_MAX: usize = 4 << 20;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// From the client that connected to the server.
    Forward,
    /// From the server to the client.
    Backward,
}

/// The treatment of the bytes of a direction. By default they pass at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRule {
    /// The most bytes that are sent at once; 0 for no limit.
    pub piece_bytes_max: usize,
    /// The time before each piece is sent.
    pub delay: Duration,
    /// After this many bytes of the connection, neither bytes nor the sender's end pass until
    /// another rule is set.
    pub hold_after: Option<u64>,
    /// After this many bytes of the connection, the receiver sees its end.
    pub cut_after: Option<u64>,
    /// A cut ends the other direction too.
    pub cut_both: bool,
}

/// The treatment of new connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connects {
    /// They are connected to the server.
    #[default]
    Pass,
    /// They wait for [`ProxyLink::connect`], in whatever order the test calls it.
    Hold,
    /// They end at once.
    Refuse,
}

/// A running proxy. Its connections end on drop.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<ProxyShared>,
}

#[derive(Debug)]
struct ProxyShared {
    state: Mutex<ProxyState>,
    accepted: Condvar,
}

#[derive(Debug)]
struct ProxyState {
    target: SocketAddr,
    connects: Connects,
    rules: [FlowRule; 2],
    links: Vec<ProxyLink>,
    is_closed: bool,
}

impl Proxy {
    /// Starts a proxy for a server.
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = ProxyState {
            target,
            connects: Connects::default(),
            rules: [FlowRule::default(); 2],
            links: Vec::new(),
            is_closed: false,
        };
        let shared = Arc::new(ProxyShared { state: Mutex::new(state), accepted: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connects further connections to another server.
    pub fn set_target(&self, target: SocketAddr) {
        self.shared.lock().target = target;
    }

    /// Sets what happens to further connections.
    pub fn set_connects(&self, connects: Connects) {
        self.shared.lock().connects = connects;
    }

    /// Sets the rule that further connections begin with.
    pub fn set_rule(&self, flow: Flow, rule: FlowRule) {
        self.shared.lock().rules[flow as usize] = rule;
    }

    /// How many connections there were, refused ones included.
    pub fn connections(&self) -> usize {
        self.shared.lock().links.len()
    }

    /// The connection with this number, from 0 in the order of arrival; waits until it exists.
    #[track_caller]
    pub fn link(&self, number: usize) -> ProxyLink {
        let waits = |state: &mut ProxyState| state.links.len() <= number;
        let state = self.shared.lock();
        let (state, _) = self.shared.accepted.wait_timeout_while(state, WAIT_MAX, waits).unwrap();
        let link = state.links.get(number).cloned();
        drop(state);
        link.unwrap_or_else(|| panic!("there is no connection {number}"))
    }

    /// Ends all connections that exist.
    pub fn cut_all(&self) {
        let links = self.shared.lock().links.clone();
        links.iter().for_each(ProxyLink::cut);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.cut_all();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

impl ProxyShared {
    fn lock(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap()
    }

    fn accept(&self, listener: &TcpListener) {
        for client in listener.incoming() {
            let Ok(client) = client else { continue };
            let mut state = self.lock();
            if state.is_closed {
                return;
            }
            let link = ProxyLink::new(client, state.target, state.rules);
            let connects = state.connects;
            state.links.push(link.clone());
            drop(state);
            self.accepted.notify_all();
            match connects {
                Connects::Pass => link.connect(),
                Connects::Hold => {}
                Connects::Refuse => link.cut(),
            }
        }
    }
}

/// A connection through a proxy, also after its end.
#[derive(Clone, Debug)]
pub struct ProxyLink(Arc<LinkShared>);

#[derive(Debug)]
struct LinkShared {
    client: TcpStream,
    target: SocketAddr,
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Debug)]
struct LinkState {
    server: Option<TcpStream>,
    flows: [FlowState; 2],
}

#[derive(Debug, Default)]
struct FlowState {
    rule: FlowRule,
    /// How many bytes were sent to the receiver.
    passed: u64,
    /// The first of them.
    recorded: Vec<u8>,
    /// Nothing more is sent.
    is_cut: bool,
    /// The receiver has seen the end.
    has_ended: bool,
}

impl FlowState {
    /// How many bytes may pass now; `None` if the direction has ended.
    fn allowed(&self) -> Option<u64> {
        let left = |limit: Option<u64>| limit.map_or(u64::MAX, |at| at.saturating_sub(self.passed));
        match left(self.rule.cut_after) {
            0 => None,
            _ if self.is_cut => None,
            until_cut => Some(until_cut.min(left(self.rule.hold_after))),
        }
    }
}

impl ProxyLink {
    fn new(client: TcpStream, target: SocketAddr, rules: [FlowRule; 2]) -> Self {
        let flows = rules.map(|rule| FlowState { rule, ..FlowState::default() });
        let state = Mutex::new(LinkState { server: None, flows });
        Self(Arc::new(LinkShared { client, target, state, changed: Condvar::new() }))
    }

    /// Connects a held connection to the server. If the server refuses, the connection ends.
    pub fn connect(&self) {
        let Ok(server) = TcpStream::connect(self.0.target) else { return self.cut() };
        let client = &self.0.client;
        // Each piece is sent as it is.
        let _ = client.set_nodelay(true).and(server.set_nodelay(true));
        let ends = [(Flow::Forward, client, &server), (Flow::Backward, &server, client)];
        let ends =
            ends.map(|(flow, from, to)| (flow, from.try_clone().unwrap(), to.try_clone().unwrap()));
        let mut state = self.lock();
        if state.server.is_some() || state.flows[0].is_cut {
            return;
        }
        state.server = Some(server);
        drop(state);
        for (flow, from, to) in ends {
            let link = self.clone();
            thread::spawn(move || link.pump(flow, from, to));
        }
    }

    /// Replaces the rule of a direction. Bytes that it holds no longer pass at once.
    pub fn set_rule(&self, flow: Flow, rule: FlowRule) {
        self.lock().flows[flow as usize].rule = rule;
        self.0.changed.notify_all();
    }

    /// Holds a direction, but not a piece that is on its way; `hold_after` is exact.
    /// [`set_rule`](Self::set_rule) releases it.
    pub fn hold(&self, flow: Flow) {
        let mut state = self.lock();
        let flow = &mut state.flows[flow as usize];
        flow.rule.hold_after = Some(flow.passed);
    }

    /// Ends both directions after the bytes that have passed.
    pub fn cut(&self) {
        let mut state = self.lock();
        state.flows.iter_mut().for_each(|flow| flow.is_cut = true);
        self.end(&mut state);
    }

    /// How many bytes have passed in a direction.
    pub fn passed(&self, flow: Flow) -> u64 {
        self.lock().flows[flow as usize].passed
    }

    /// The bytes that have passed in a direction, up to 4 MB.
    pub fn recorded(&self, flow: Flow) -> Vec<u8> {
        self.lock().flows[flow as usize].recorded.clone()
    }

    /// Waits until this many bytes have passed in a direction.
    #[track_caller]
    pub fn wait_for(&self, flow: Flow, bytes: u64) {
        self.wait("bytes", |state| state.flows[flow as usize].passed >= bytes);
    }

    /// Waits until the receiver of a direction has been sent its end.
    #[track_caller]
    pub fn wait_for_end(&self, flow: Flow) {
        self.wait("end", |state| state.flows[flow as usize].has_ended);
    }

    #[track_caller]
    fn wait(&self, what: &str, holds: impl Fn(&LinkState) -> bool) {
        let waits = |state: &mut LinkState| !holds(state);
        let (state, waited) =
            self.0.changed.wait_timeout_while(self.lock(), WAIT_MAX, waits).unwrap();
        let passed = state.flows.each_ref().map(|flow| flow.passed);
        drop(state);
        assert!(!waited.timed_out(), "the {what} never came: {passed:?} bytes have passed");
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.0.state.lock().unwrap()
    }

    /// Ends the directions that are cut. The sockets stay open for reading, because one that is
    /// closed with unread bytes resets the connection, and the receiver loses bytes that passed.
    fn end(&self, state: &mut LinkState) {
        let LinkState { server, flows } = state;
        let receivers = [server.as_ref(), Some(&self.0.client)];
        for (flow, receiver) in flows.iter_mut().zip(receivers) {
            if flow.is_cut && !flow.has_ended {
                let _ = receiver.map(|receiver| receiver.shutdown(Shutdown::Write));
                flow.has_ended = true;
            }
        }
        self.0.changed.notify_all();
    }

    /// Passes the bytes of a direction until one side ends it.
    fn pump(&self, flow: Flow, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            // A cut at the bytes that have passed does not wait for the next one.
            self.pass(flow, &[], false, &mut to);
            let len = match from.read(&mut buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            self.pass(flow, &buffer[..len], len == 0, &mut to);
            if len == 0 {
                let mut state = self.lock();
                state.flows[flow as usize].is_cut = true;
                return self.end(&mut state);
            }
        }
    }

    /// Passes bytes, or the end, as the rule says. After a cut they are dropped, so that the sender
    /// never waits.
    fn pass(&self, flow: Flow, mut bytes: &[u8], is_end: bool, to: &mut TcpStream) {
        loop {
            let mut state = self.lock();
            let allowed = loop {
                match state.flows[flow as usize].allowed() {
                    Some(0) if is_end || !bytes.is_empty() => {
                        state = self.0.changed.wait(state).unwrap()
                    }
                    allowed => break allowed,
                }
            };
            let Some(allowed) = allowed else {
                let both = state.flows[flow as usize].rule.cut_both;
                state.flows[flow as usize].is_cut = true;
                state.flows.iter_mut().for_each(|flow| flow.is_cut |= both);
                return self.end(&mut state);
            };
            let rule = state.flows[flow as usize].rule;
            drop(state);
            let most = if rule.piece_bytes_max == 0 { bytes.len() } else { rule.piece_bytes_max };
            let len = bytes.len().min(most).min(usize::try_from(allowed).unwrap_or(usize::MAX));
            let (piece, rest) = bytes.split_at(len);
            if piece.is_empty() {
                return;
            }
            if !rule.delay.is_zero() {
                thread::sleep(rule.delay);
            }
            if to.write_all(piece).is_ok() {
                self.record(flow, piece);
            } else {
                self.lock().flows[flow as usize].is_cut = true;
            }
            bytes = rest;
        }
    }

    fn record(&self, flow: Flow, piece: &[u8]) {
        let mut state = self.lock();
        let flow = &mut state.flows[flow as usize];
        flow.passed += piece.len() as u64;
        let room = RECORDED_BYTES_MAX - flow.recorded.len();
        flow.recorded.extend_from_slice(&piece[..piece.len().min(room)]);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
