//! Replies that wait for the log, on a thread whose turns the test takes, with a log that the test
//! reads.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use node::config::{Config, Permit};
use sys::shared_memory::SharedMemory;

use crate::log::ring::LogRing;
use crate::log::ring_layout::{CAPACITY, memory_bytes};
use crate::net::listener::{Accepted, ListenerKind};
use crate::threads::accept::admit;
use crate::threads::io_thread::IoThread;
use crate::threads::message::Message;
use crate::threads::shared::SharedState;
use crate::threads::shared_setup::{main_thread, share};
use persist::aof::LogId;

/// Waits until the clock has advanced by this many milliseconds.
fn pass_ms(ms: i64) {
    let until_us = sys::clock::unix_micros() + 1000 * (ms + 1);
    while sys::clock::unix_micros() < until_us {
        std::thread::yield_now();
    }
}

/// Turns after which everything that can happen has happened.
const TURNS: usize = 4;

struct Server {
    shared: Arc<SharedState>,
    thread: IoThread,
    ring: Arc<LogRing>,
}

impl Server {
    /// With a log that replies wait for, or not.
    fn new(waits_always: bool) -> Self {
        let mut config = Config::default();
        config.saving.save.clear();
        config.enable_debug_command = Permit::Yes;
        let shared = share(&config, String::new()).unwrap();
        let mut thread = main_thread(&shared).unwrap();
        // A turn executes all that a client has sent, however slow the machine is.
        thread.worker.limit_client_time(u64::MAX);
        let memory = SharedMemory::anonymous(memory_bytes()).unwrap();
        let ring = Arc::new(LogRing::new(memory, LogId([1, 2]), [3, 4, 5, 6], 100).unwrap());
        ring.policy.configure(waits_always, false);
        ring.policy.follow(true, false);
        shared.log.set(Some(Arc::clone(&ring)));
        assert!(!shared.log.is_followed(&ring));
        thread.turn(&mut |_, _| {});
        assert!(shared.log.is_followed(&ring));
        Self { shared, thread, ring }
    }

    fn connect(&mut self) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        peer.set_nonblocking(true).unwrap();
        let (address, local_address) = ("a".into(), "b".into());
        let accepted = Accepted { stream: socket.into(), address, local_address, is_local: true };
        let config = self.shared.node.config();
        admit(&self.shared, &config, accepted, ListenerKind::Tcp, None, 0);
        self.turns();
        Peer(peer)
    }

    fn turns(&mut self) {
        for _ in 0..TURNS {
            self.thread.turn(&mut |_, _| {});
        }
    }

    /// Sends a request, and returns the bytes received after some turns.
    fn ask(&mut self, peer: &mut Peer, request: &str) -> String {
        peer.0.write_all(request.as_bytes()).unwrap();
        self.turns();
        peer.received()
    }

    /// The log is written and synced up to its end.
    fn release(&mut self) {
        self.release_to(self.ring.readable_until());
    }

    fn release_to(&mut self, until: u64) {
        let shared = &self.shared;
        self.ring.release_replies(until, |thread| shared.send(thread, Message::LogReached));
        self.ring.release(until);
        self.turns();
    }
}

struct Peer(TcpStream);

impl Peer {
    /// The bytes received since the last call.
    fn received(&mut self) -> String {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return text + "(end)",
                Ok(count) => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return text,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn replies_wait_for_the_writes_they_depend_on() {
    let mut server = Server::new(true);
    let (mut writer, mut reader) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut reader, "GET k\r\n"), "$-1\r\n", "there is nothing to wait for");
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "");
    assert_eq!(server.ask(&mut reader, "GET k\r\n"), "", "it has seen what is not safe yet");
    let end = server.ring.end();
    // The requests after that are not executed.
    assert_eq!(server.ask(&mut writer, "SET k 2\r\nPING\r\n"), "");
    assert_eq!(server.ring.end(), end);
    server.release();
    assert_eq!(reader.received(), "$1\r\n1\r\n");
    assert_eq!(writer.received(), "+OK\r\n", "the next ones wait in turn");
    assert!(server.ring.end() > end);
    server.release();
    assert_eq!(writer.received(), "+OK\r\n+PONG\r\n");
    assert_eq!(server.ask(&mut reader, "GET k\r\n"), "$1\r\n2\r\n");
}

#[test]
fn blocked_clients_and_those_that_quit_wait_as_well() {
    let mut server = Server::new(true);
    let (mut blocked, mut writer) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut blocked, "SET k 1\r\nBLPOP l 0\r\n"), "");
    assert_eq!(server.ask(&mut writer, "RPUSH l x\r\nQUIT\r\n"), "");
    server.release();
    assert_eq!(blocked.received(), "+OK\r\n*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    assert_eq!(writer.received(), ":1\r\n+OK\r\n(end)");
    // A client that waits for a key while its replies wait.
    assert_eq!(server.ask(&mut blocked, "SET k 2\r\nBLPOP l 0\r\n"), "");
    server.release();
    assert_eq!(blocked.received(), "+OK\r\n");
}

#[test]
fn a_request_that_was_postponed_waits_for_the_log_again() {
    let mut server = Server::new(true);
    // Each request uses its client's time in a turn.
    server.thread.worker.limit_client_time(0);
    let (mut blocked, mut writer) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut blocked, "SET k 1\r\nBLPOP l 0\r\n"), "");
    assert_eq!(server.ask(&mut writer, "RPUSH l x\r\nQUIT\r\n"), "");
    server.release();
    // BLPOP has found the element, and its effect is not written yet.
    assert_eq!(blocked.received(), "+OK\r\n");
    assert_eq!(writer.received(), ":1\r\n");
    server.release();
    assert_eq!(blocked.received(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    assert_eq!(writer.received(), "+OK\r\n(end)");
}

#[test]
fn reads_that_meet_expired_keys_are_answered_while_the_log_fails() {
    let mut server = Server::new(true);
    let (mut reader, mut writer) = (server.connect(), server.connect());
    server.ask(&mut writer, "DEBUG SET-ACTIVE-EXPIRE 0\r\n");
    let reads = [
        ("GET k0\r\n", "$-1\r\n"),
        ("MGET k1 k2\r\n", "*2\r\n$-1\r\n$-1\r\n"),
        ("TTL k3\r\n", ":-2\r\n"),
        ("EXISTS k4\r\n", ":0\r\n"),
        ("MULTI\r\nGET k5\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n"),
        ("EVAL 'return redis.call(\"GET\", KEYS[1])' 1 k6\r\n", "$-1\r\n"),
        ("HGET h f\r\n", "$-1\r\n"),
        ("HGETALL h\r\n", "*2\r\n$1\r\ng\r\n$1\r\n1\r\n"),
        ("SCAN 0 COUNT 10000\r\n", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nh\r\n"),
    ];
    for key in 0..9 {
        server.ask(&mut writer, &format!("SET k{key} 1 PX 1\r\n"));
        server.release();
    }
    server.ask(&mut writer, "HSET h f 1 g 1\r\nHPEXPIRE h 1 FIELDS 1 f\r\n");
    server.release();
    writer.received();
    pass_ms(2);
    let end = server.ring.end();
    server.ring.set_serves_reads(true);
    for (request, reply) in reads {
        assert_eq!(server.ask(&mut reader, request), reply, "{request}");
    }
    let early = server.ask(&mut reader, "XREAD BLOCK 1 STREAMS k7 0\r\n");
    pass_ms(3);
    server.turns();
    assert_eq!(early + &reader.received(), "*-1\r\n");
    assert!(server.ring.end() > end, "the expiries are logged");
    // A write waits for what it has seen.
    assert_eq!(server.ask(&mut reader, "SET k0 1\r\n"), "");
    assert_eq!(server.ask(&mut writer, "SET k8 1 GET\r\n"), "");
    server.release();
    assert_eq!((reader.received(), writer.received()), ("+OK\r\n".into(), "$-1\r\n".into()));
}

#[test]
fn a_policy_is_in_force_before_the_reply_to_config_set() {
    let mut server = Server::new(false);
    let (mut client, mut other) = (server.connect(), server.connect());
    let requests = "CONFIG SET appendfsync always\r\nSET k 1\r\n";
    let received = server.ask(&mut client, requests);
    assert!(["", "+OK\r\n"].contains(&received.as_str()), "{received}");
    assert_eq!(server.ask(&mut other, "GET k\r\n"), "");
    server.release();
    assert_eq!(received + &client.received(), "+OK\r\n+OK\r\n");
    assert_eq!(other.received(), "$1\r\n1\r\n");
    let rest = "CONFIG SET appendfsync everysec\r\nSET k 2\r\n";
    assert_eq!(server.ask(&mut client, rest), "+OK\r\n+OK\r\n");
    server.ring.policy.follow(true, true);
    let rewrite = "CONFIG SET appendfsync always no-appendfsync-on-rewrite yes\r\nSET k 3\r\n";
    assert_eq!(server.ask(&mut client, rewrite), "+OK\r\n+OK\r\n");
    server.release();
    let end = "CONFIG SET no-appendfsync-on-rewrite no\r\n";
    assert_eq!(server.ask(&mut client, end), "+OK\r\n");
    assert_eq!(server.ask(&mut client, "SET k 4\r\n"), "");
}

#[test]
fn all_clients_wait_while_there_is_overflow() {
    let mut server = Server::new(false);
    let (mut writer, mut reader) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "+OK\r\n");
    let value = "v".repeat(CAPACITY / 4);
    let request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len());
    let end = server.ring.end();
    let mut rest = request.as_bytes();
    while !rest.is_empty() {
        match writer.0.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(_) => server.thread.turn(&mut |_, _| {}),
        }
    }
    while server.ring.end() == end {
        server.thread.turn(&mut |_, _| {});
    }
    assert_eq!(server.ask(&mut reader, "STRLEN k\r\n"), "");
    assert_eq!(writer.received(), "");
    server.release();
    assert_eq!(reader.received(), format!(":{}\r\n", value.len()));
    assert_eq!(writer.received(), "+OK\r\n");
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "+OK\r\n");
}

#[test]
fn writers_wait_for_room_and_readers_do_not() {
    let mut server = Server::new(false);
    let (mut writer, mut reader) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "+OK\r\n");
    let mut effects = store::Effects::default();
    effects.set_log(Some(Box::new(server.ring.producer(5))));
    let value = "v".repeat(1 << 20);
    while server.ring.has_room() {
        effects.note(store::KeyspaceEvent::new('$', "set"), b"k");
        effects.seal(0, 0, |command: &mut store::CommandWriter<'_>| {
            command.args(["SET", "filler", &value])
        });
    }
    let end = server.ring.end();
    assert_eq!(server.ask(&mut writer, "SET k 2\r\nEVAL 'return 1' 0\r\n"), "");
    assert_eq!((server.ring.end(), server.ring.replies_wait_for()), (end, None));
    assert_eq!(server.ask(&mut reader, "GET k\r\n"), "$1\r\n1\r\n");
    server.release();
    assert_eq!(writer.received(), "+OK\r\n:1\r\n");
    assert_eq!(server.ask(&mut reader, "GET k\r\n"), "$1\r\n2\r\n");
}

#[test]
fn waiting_replies_leave_before_the_server_ends() {
    let mut server = Server::new(true);
    let mut writer = server.connect();
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "");
    let until = server.ring.readable_until();
    server.ring.release_replies(until, |_| {});
    server.thread.finish();
    assert_eq!(writer.received(), "+OK\r\n");
}

#[test]
fn messages_to_subscribers_wait_for_the_log() {
    let mut server = Server::new(true);
    let (mut subscriber, mut writer) = (server.connect(), server.connect());
    server.ask(&mut writer, "CONFIG SET notify-keyspace-events KEA\r\n");
    server.ask(&mut subscriber, "HELLO 3\r\nSUBSCRIBE __keyevent@0__:set\r\n");
    assert_eq!(server.ask(&mut writer, "SET first 1\r\n"), "");
    assert_eq!(subscriber.received(), "", "nothing waits for it yet");
    server.release();
    assert_eq!(writer.received(), "+OK\r\n");
    assert!(subscriber.received().contains("first"));
    // A client whose replies wait.
    assert_eq!(server.ask(&mut subscriber, "SET own 1\r\n"), "");
    let until = server.ring.readable_until();
    assert_eq!(server.ask(&mut writer, "SET second 1\r\n"), "");
    server.release_to(until);
    let received = subscriber.received();
    assert!(received.starts_with("+OK") && !received.contains("second"), "{received}");
    server.release();
    assert!(subscriber.received().contains("second"));
    assert_eq!(writer.received(), "+OK\r\n");
}

#[test]
fn output_for_a_full_socket_waits_for_the_log_as_well() {
    let mut server = Server::new(true);
    let (mut subscriber, mut writer) = (server.connect(), server.connect());
    server.ask(&mut writer, "CONFIG SET notify-keyspace-events KEA\r\n");
    server.ask(&mut subscriber, "SUBSCRIBE channel __keyevent@0__:set\r\n");
    let message = "m".repeat(64 << 10);
    let full = |server: &Server| {
        let slots =
            (0..server.thread.slots.len()).filter_map(|slot| server.thread.slots.client(slot));
        slots.filter(|client| client.wants_write()).count() == 1
    };
    while !full(&server) {
        assert_eq!(server.ask(&mut writer, &format!("PUBLISH channel {message}\r\n")), ":1\r\n");
    }
    assert_eq!(server.ask(&mut writer, "SET second 1\r\n"), "");
    let mut received = subscriber.received();
    while let more = server.ask(&mut subscriber, "")
        && !more.is_empty()
    {
        received += &more;
    }
    assert!(!received.contains("second"));
    server.release();
    while !received.contains("second") {
        received += &server.ask(&mut subscriber, "");
    }
}

#[test]
fn invalidations_are_sent_when_the_changes_are_in_the_log() {
    let mut server = Server::new(true);
    let (mut tracker, mut writer) = (server.connect(), server.connect());
    server.ask(&mut tracker, "HELLO 3\r\nCLIENT TRACKING ON\r\nGET k\r\n");
    assert_eq!(server.ask(&mut tracker, "SET own 1\r\n"), "");
    let until = server.ring.readable_until();
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "");
    server.release_to(until);
    assert_eq!(tracker.received(), "+OK\r\n");
    server.release();
    assert!(tracker.received().contains("invalidate"));
}

#[test]
fn messages_come_while_the_log_fails_and_replies_to_writers_do_not() {
    let mut server = Server::new(true);
    let (mut subscriber, mut writer) = (server.connect(), server.connect());
    let (mut watcher, mut blocked) = (server.connect(), server.connect());
    server.ask(&mut writer, "CONFIG SET notify-keyspace-events KEA\r\n");
    server.ask(&mut subscriber, "SUBSCRIBE __keyevent@0__:set channel\r\n");
    server.ask(&mut watcher, "MONITOR\r\n");
    assert_eq!(server.ask(&mut blocked, "BLPOP l 0\r\n"), "");
    assert!(watcher.received().contains("BLPOP"));
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "");
    server.ring.set_serves_reads(true);
    server.thread.release_waiting();
    server.turns();
    assert!(subscriber.received().contains("__:set"));
    assert!(watcher.received().contains("SET"));
    let mut other = server.connect();
    assert_eq!(server.ask(&mut other, "PUBLISH channel message\r\n"), ":1\r\n");
    assert!(subscriber.received().contains("message"));
    assert_eq!(server.ask(&mut subscriber, "UNSUBSCRIBE\r\nGET k\r\n").lines().last(), Some("1"));
    assert_eq!(server.ask(&mut other, "RPUSH l x\r\n"), "");
    assert_eq!((writer.received().as_str(), blocked.received().as_str()), ("", ""));
    server.release();
    assert_eq!(writer.received(), "+OK\r\n");
    assert!(blocked.received().ends_with("x\r\n"));
}

#[test]
fn replies_wait_for_a_log_that_has_ended_until_all_of_it_is_safe() {
    let mut server = Server::new(true);
    let (mut writer, mut other) = (server.connect(), server.connect());
    assert_eq!(server.ask(&mut writer, "SET k 1\r\n"), "");
    let old = Arc::clone(&server.ring);
    server.shared.log.set(None);
    server.turns();
    assert_eq!(writer.received(), "");
    assert_eq!(server.ask(&mut other, "SET k 2\r\n"), "+OK\r\n", "this one is not logged");
    let shared = Arc::clone(&server.shared);
    old.release_replies(u64::MAX, |thread| shared.send(thread, Message::LogReached));
    server.turns();
    assert_eq!(writer.received(), "+OK\r\n");
}

#[test]
fn overflow_is_not_counted_against_maxmemory() {
    let mut server = Server::new(false);
    let mut writer = server.connect();
    let node = Arc::clone(&server.shared.node);
    let uncounted = |server: &Server| {
        let used = &server.shared.node.used_memory;
        let own = used.of_thread(0);
        let bytes = sys::allocator::thread_bytes();
        used.sum(&own, bytes).cast_signed() - used.look(&own, bytes, 1)
    };
    assert_eq!((node.used_memory.kept_for_log(), uncounted(&server)), (0, 0));
    let script = "for i = 1, 20000 do redis.call('SET', 'k', string.rep('v', 1000)) end";
    assert_eq!(server.ask(&mut writer, &format!("EVAL \"{script}\" 0\r\n")), "");
    let kept = node.used_memory.kept_for_log();
    assert!(kept > 20_000_000, "{kept}");
    assert_eq!(uncounted(&server), kept.cast_signed());
    assert_eq!(server.ring.release(server.ring.readable_until()), kept.cast_signed());
    node.used_memory.keep_for_log(-kept.cast_signed());
    assert_eq!(uncounted(&server), 0);
}
