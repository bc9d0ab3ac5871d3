//! Deferred requests: while a request waits for a key in use, its thread serves other clients. It
//! is executed in its turn, or refused with BUSY when a script does not end.
//!
//! The slow command is a script that runs until it is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use test_support::{encode, eventually};

use crate::stops::BEGUN_MAX;
use crate::undisturbed::undisturbed;
use crate::{Client, Server, Value};

const ENDLESS: &[u8] = b"redis.call('exists', KEYS[1]) while true do end";
/// A waiting client gets no reply within this time.
const WHILE: Duration = Duration::from_millis(20);

/// Three threads, two of which have clients, whatever the load.
fn server(options: &[&str]) -> Server {
    let threads = ["--io-threads", "3", "--io-threads-always-active", "yes"];
    Server::start(&[&threads[..], options].concat())
}

fn thread_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO").text();
    info.split("io-thread=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

/// The cursor of a scan of an empty server after this key.
pub(crate) fn cursor_behind(client: &mut Client, key: &str) -> u64 {
    client.ok("FLUSHALL");
    client.ok(&format!("SET {key} 1"));
    let cursor = client.ask("SCAN 0 COUNT 1").items()[0].text();
    client.ok("FLUSHALL");
    cursor.parse().unwrap()
}

/// A key in another shard than `others`, and not in the first one.
fn key_beside(server: &Server, others: &[&str]) -> String {
    let mut client = server.client();
    let cursors: Vec<u64> = others.iter().map(|key| cursor_behind(&mut client, key)).collect();
    let mut keys = (0..).map(|number| format!("key{number}"));
    let is_beside = |key: &String| {
        let cursor = cursor_behind(&mut client, key);
        cursor >> 32 > 1 && !cursors.iter().any(|other| other >> 32 == cursor >> 32)
    };
    keys.find(is_beside).unwrap()
}

/// A client that needs a key in use gets no reply.
#[track_caller]
fn silent(waiting: &mut Client) {
    if !waiting.is_silent_for(WHILE) {
        panic!("answered while its key is in use: {:?}", waiting.read());
    }
}

/// A script that holds a key until [`end`](Self::end).
pub(crate) struct Slow {
    client: Client,
    /// A client of another thread.
    pub(crate) neighbour: Client,
}

impl Slow {
    /// Starts the script, and connects clients to another thread.
    pub(crate) fn start<const COUNT: usize>(server: &Server, key: &str) -> (Self, [Client; COUNT]) {
        let mut client = server.client();
        let own = thread_of(&mut client);
        let (mut same, mut others) = (Vec::new(), Vec::new());
        while others.len() < COUNT + 2 {
            let mut other = server.client();
            let is_here = thread_of(&mut other) == own;
            if is_here { &mut same } else { &mut others }.push(other);
        }
        let [mut neighbour, mut probe] = [(); 2].map(|()| others.pop().unwrap());
        let own_line = format!("CLIENT LIST ID {}", client.ask("CLIENT ID").int());
        client.send_raw(&encode(&[b"EVAL", ENDLESS, b"1", key.as_bytes()]));
        eventually("the script begins", || neighbour.ask(&own_line).text().contains(" cmd=eval "));
        eventually("the script holds its key", || {
            probe.send(&format!("EXISTS {key}"));
            // On a loaded machine all clients are silent, but not all clients except those of one
            // thread.
            let waits = probe.is_silent_for(WHILE)
                && neighbour.ask("PING") == Value::simple("PONG")
                && probe.is_silent_for(WHILE);
            waits || probe.read().is_error()
        });
        (Self { client, neighbour }, others.try_into().unwrap())
    }

    /// The waiting client gets no reply, and another client of its thread does.
    pub(crate) fn stops_only(&mut self, waiting: &mut Client) {
        for _ in 0..20 {
            assert_eq!(self.neighbour.ask("PING").text(), "PONG");
        }
        silent(waiting);
        assert_eq!(self.neighbour.ask("PING").text(), "PONG");
    }

    pub(crate) fn end(&mut self) {
        // Other threads know of it a millisecond after its start, which is long on a loaded
        // machine.
        eventually("it is killed", || self.neighbour.ask("SCRIPT KILL").text() == "OK");
        assert!(self.client.read().is_error());
    }
}

/// Requests that need a key in use, and their replies after its release.
const WAIT: [(&[&str], &str); 15] = [
    (&["GET", "key"], "$null"),
    (&["SET", "key", "value"], "+\"OK\""),
    (&["MGET", "a", "b", "key", "c"], "*[$null, $null, $\"value\", $null]"),
    (&["EVAL", "return redis.call('GET', KEYS[1])", "1", "key"], "$\"value\""),
    (&["KEYS", "*"], "*[$\"key\"]"),
    (&["RANDOMKEY"], "$\"key\""),
    (&["SORT", "none", "STORE", "key"], ":\"0\""),
    (&["RPUSH", "key", "element"], ":\"1\""),
    (&["BLPOP", "none", "key", "0"], "*[$\"key\", $\"element\"]"),
    (&["WATCH", "other", "key"], "+\"OK\""),
    (&["MEMORY", "USAGE", "key"], "$null"),
    // The main thread executes this.
    (&["DEBUG", "DIGEST-VALUE", "key"], "*[+\"0000000000000000000000000000000000000000\"]"),
    // These stop all other commands.
    (&["SWAPDB", "0", "1"], "+\"OK\""),
    (&["SORT", "none", "BY", "w_*"], "*[]"),
    (&["FLUSHALL"], "+\"OK\""),
];

#[test]
fn a_client_that_waits_for_a_key_stops_no_neighbour() {
    let server = server(&["--enable-debug-command", "yes"]);
    for (words, reply) in WAIT {
        let (mut slow, [mut waiting]) = Slow::start(&server, "key");
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        waiting.send_raw(&encode(&args));
        slow.stops_only(&mut waiting);
        slow.end();
        assert_eq!(waiting.read().to_string(), reply, "{words:?}");
    }
}

#[test]
fn requests_of_one_client_stay_in_order() {
    let server = server(&[]);
    let (mut slow, [mut waiting, mut later]) = Slow::start(&server, "key");
    waiting.send_raw(b"INCR n\r\nAPPEND key 1\r\nINCR n\r\nAPPEND key 2\r\n");
    waiting.send_raw(b"MULTI\r\nINCR n\r\nAPPEND key 3\r\nEXEC\r\nGET key\r\n");
    assert_eq!(waiting.read().int(), 1);
    slow.stops_only(&mut waiting);
    // It queues after the requests that wait already.
    later.send("GET key");
    silent(&mut later);
    waiting.send_raw(b"GETDEL key\r\n*x\r\n");
    slow.end();
    assert_eq!([1, 2, 2].map(|_| waiting.read().int()), [1, 2, 2]);
    assert_eq!(waiting.read().text(), "OK");
    assert_eq!([0, 1].map(|_| waiting.read().text()), ["QUEUED", "QUEUED"]);
    assert_eq!(waiting.read(), Value::array(vec![Value::number(3), Value::number(3)]));
    assert_eq!([0, 1].map(|_| waiting.read().text()), ["123", "123"]);
    assert_eq!(waiting.read().text(), "ERR Protocol error: invalid multibulk length");
    waiting.is_closed();
    assert!(matches!(later.read(), Value::Text(b'$', _) | Value::NULL));
}

/// Queued commands, and whether EXEC waits for a key in use that none of them names.
const QUEUED: [(&str, bool); 15] = [
    ("INFO", false),
    ("MEMORY STATS", false),
    ("CONFIG GET maxmemory", false),
    ("DBSIZE", false),
    ("SET mine 1", false),
    ("SCAN 0", true),
    ("KEYS *", true),
    ("RANDOMKEY", true),
    ("DEBUG OBJECT mine", true),
    ("CONFIG RESETSTAT", false),
    // These get their reply after all commands that had begun.
    ("CLIENT PAUSE 1 WRITE", true),
    // No client sees half of a change of several of them.
    ("CONFIG SET slowlog-max-len 200", true),
    ("ACL SETUSER somebody on", true),
    ("FUNCTION FLUSH", true),
    ("FLUSHDB", true),
];

/// Transactions, and commands that change the set of scripts. EXEC sees one set throughout.
const BESIDE_A_TRANSACTION: [(&[&str], &str); 5] = [
    (&["SCRIPT LOAD return"], "$\"63143b6f8007b98c53ca2149822777b3566f9241\""),
    (&["SCRIPT FLUSH"], "+\"OK\""),
    (&["FUNCTION FLUSH"], "+\"OK\""),
    (&["EVAL return 0"], "$null"),
    (&["MULTI", "SCRIPT EXISTS x", "EXEC"], "*[*[:\"0\"]]"),
];

/// A new script may wait for further shards, as those of a transaction may.
#[test]
fn scripts_do_not_change_during_an_exclusive_one() {
    for (lines, reply) in BESIDE_A_TRANSACTION {
        let server = server(&[]);
        let (mut slow, [mut waiting]) = Slow::start(&server, "key");
        let [before @ .., last] = lines else { continue };
        before.iter().for_each(|line| drop(waiting.ask(line)));
        waiting.send(last);
        slow.stops_only(&mut waiting);
        slow.end();
        assert_eq!(waiting.read().to_string(), reply, "{lines:?}");
    }
}

#[test]
fn a_transaction_that_reads_all_shards_stops_no_client() {
    let server = server(&["--enable-debug-command", "yes"]);
    let key = key_beside(&server, &["mine", "none"]);
    for (words, waits) in QUEUED {
        let (mut slow, [mut waiting]) = Slow::start(&server, &key);
        waiting.ok("MULTI");
        assert_eq!(waiting.ask(words).text(), "QUEUED");
        waiting.send("EXEC");
        if waits {
            slow.stops_only(&mut waiting);
            assert_eq!(slow.neighbour.ask("STRLEN mine").int(), 1);
            assert_eq!(slow.neighbour.ask("SCARD none").int(), 0);
            slow.end();
        }
        let reply = waiting.read();
        assert!(!reply.items()[0].is_error(), "{words}: {reply}");
        if !waits {
            slow.end();
        }
    }
}

/// Commands that need all keys, and their replies in a script.
const NEEDS_ALL: [(&str, &str); 4] = [
    ("'FLUSHALL'", "+\"OK\""),
    ("'SWAPDB', 1, 2", "+\"OK\""),
    ("'KEYS', 'none'", "*[]"),
    ("'SORT', KEYS[1], 'BY', 'w_*'", "*[]"),
];

#[test]
fn a_script_that_needs_all_keys_stops_no_client() {
    let server = server(&[]);
    let key = key_beside(&server, &["mine", "none"]);
    for (call, reply) in NEEDS_ALL {
        let script = format!("redis.call('GET', 'mine') return redis.call({call})");
        // The first call, and a call after the needs of the script are known.
        for time in 0..2 {
            let (mut slow, [mut waiting]) = Slow::start(&server, &key);
            waiting.send_raw(&encode(&[b"EVAL", script.as_bytes(), b"1", b"none"]));
            slow.stops_only(&mut waiting);
            assert_eq!(slow.neighbour.ask("STRLEN mine").int(), 0, "{call} {time}");
            assert_eq!(slow.neighbour.ask("SCARD none").int(), 0, "{call} {time}");
            slow.end();
            assert_eq!(waiting.read().to_string(), reply, "{call} {time}");
        }
    }
}

#[test]
fn a_scan_ends_its_page_before_a_shard_in_use() {
    let server = server(&[]);
    let (mut slow, [mut waiting]) = Slow::start(&server, &key_beside(&server, &[]));
    let page = waiting.ask("SCAN 0 COUNT 1000");
    let cursor = page.items()[0].text();
    assert_ne!(cursor, "0");
    waiting.send(&format!("SCAN {cursor} COUNT 1000"));
    slow.stops_only(&mut waiting);
    slow.end();
    assert_eq!(waiting.read().items()[0].text(), "0");
}

#[test]
fn waiting_clients_get_busy_when_the_script_does_not_end() {
    let server = server(&["--busy-reply-threshold", "300"]);
    let (mut slow, [mut waiting, mut other]) = Slow::start(&server, "key");
    waiting.send("GET key");
    other.send("MGET a key");
    for client in [&mut waiting, &mut other] {
        let reply = client.read().text();
        assert!(reply.starts_with("BUSY Redis is busy running a script."), "{reply}");
    }
    slow.end();
    assert_eq!(waiting.ask("GET key"), Value::NULL);
}

#[test]
fn a_client_that_waits_can_be_killed_or_leave() {
    let server = server(&[]);
    let (mut slow, clients) = Slow::start(&server, "key");
    let [mut killed, mut leaves, mut paused, mut killer] = clients;
    let id = killed.ask("CLIENT ID").int();
    killed.send("SET key killed");
    leaves.send("APPEND key left");
    paused.send("APPEND key paused");
    slow.stops_only(&mut killed);
    assert_eq!(slow.neighbour.ask("CLIENT LIST").text().matches("cmd=append").count(), 2);
    drop(leaves);
    killer.send(&format!("CLIENT KILL ID {id}"));
    killed.is_closed();
    slow.neighbour.send("CLIENT PAUSE 100000 WRITE");
    slow.neighbour.send("PING");
    killer.send("SCRIPT KILL");
    assert!(slow.client.read().is_error());
    assert_eq!(killer.read().int(), 1);
    assert_eq!(killer.read().text(), "OK");
    assert_eq!(slow.neighbour.read().text(), "OK");
    assert_eq!(slow.neighbour.read().text(), "PONG");
    killer.ok("CLIENT UNPAUSE");
    assert!(paused.read().int() >= 6);
    // Requests sent before the client left were received; those of the killed client were not
    // executed.
    let text = killer.ask("GET key").text();
    assert!(["paused", "leftpaused", "pausedleft"].contains(&&*text), "{text}");
    killer.ask("DEL key");
}

#[test]
fn a_server_with_clients_that_wait_goes_down() {
    let mut server = server(&[]);
    let (_slow, [mut waiting]) = Slow::start(&server, "key");
    waiting.send("GET key");
    silent(&mut waiting);
    server.client().send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
}

/// A script of ten milliseconds.
pub(crate) const TEN_MS: &[u8] = b"local till = os.clock() + 0.01 while os.clock() < till do end
    return redis.call('INCR', KEYS[1])";

#[test]
fn a_stream_of_slow_commands_does_not_overtake_waiting_clients() {
    let server = server(&[]);
    let mut scripts: Vec<Client> = (0..6).map(|_| server.client()).collect();
    let (mut slow, [mut waiting, mut busy]) = Slow::start(&server, "key");
    waiting.send("INCR key");
    slow.stops_only(&mut waiting);
    for script in &mut scripts {
        script.send_raw(&encode(&[b"EVAL", TEN_MS, b"1", b"key"]).repeat(10));
    }
    silent(&mut waiting);
    slow.end();
    // Its thread always has other work.
    let (replied, reply) = mpsc::channel();
    let awaits = thread::spawn(move || replied.send(waiting.read().int()));
    let overtaken = loop {
        assert_eq!(busy.ask("PING").text(), "PONG");
        if let Ok(count) = reply.try_recv() {
            break count - 1;
        }
    };
    awaits.join().unwrap().unwrap();
    assert!(overtaken <= 5, "overtaken by {overtaken} of 60");
    scripts.iter_mut().for_each(|script| (0..10).for_each(|_| drop(script.read())));
    assert_eq!(busy.ask("GET key").text(), "61");
}

#[test]
fn a_waiting_client_does_not_put_neighbours_behind_slow_commands() {
    let server = server(&[]);
    let mut script = server.client();
    // From then on it is known to use only its declared keys.
    (0..2).for_each(|_| drop(script.ask_args(&[b"EVAL", TEN_MS, b"1", b"own"])));
    let (mut slow, [mut waiting, clients @ ..]) = Slow::start::<22>(&server, "key");
    let mut clients = Vec::from(clients);
    let (ended, is_ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    // The next script is ready when one ends.
    let busy = clients.split_off(18).into_iter().map(|mut client| {
        let (ended, is_ended) = (ended.clone(), is_ended.clone());
        thread::spawn(move || {
            while !is_ended.load(Ordering::Relaxed) {
                let count = client.ask_args(&[b"EVAL", TEN_MS, b"1", b"own"]).int();
                ended.fetch_max(count as usize, Ordering::Relaxed);
            }
        })
    });
    let busy: Vec<JoinHandle<()>> = busy.collect();
    waiting.send("GET key");
    slow.stops_only(&mut waiting);
    let mut scripts_before: Vec<usize> = (0..11)
        .map(|_| {
            let before = ended.load(Ordering::Relaxed);
            clients.iter_mut().for_each(|client| client.send("GET other"));
            clients.iter_mut().for_each(|client| assert_eq!(client.read(), Value::NULL));
            ended.load(Ordering::Relaxed) - before
        })
        .collect();
    is_ended.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|busy| busy.join().unwrap());
    scripts_before.sort_unstable();
    assert!(scripts_before[5] < 10, "scripts before {} replies: {scripts_before:?}", clients.len());
    slow.end();
    assert_eq!(waiting.read(), Value::NULL);
}

#[test]
fn clients_that_wait_change_threads() {
    let server = server(&[]);
    let (mut slow, [mut waiting, mut other]) = Slow::start(&server, "key");
    waiting.send("APPEND key a");
    other.send("MGET a key");
    slow.stops_only(&mut waiting);
    slow.neighbour.ok("CONFIG SET io-threads 6");
    silent(&mut waiting);
    slow.end();
    assert_eq!(waiting.read().int(), 1);
    assert_eq!(other.read().items().len(), 2);
}

/// A blocking command, and a command that feeds it.
const FED: [(&str, &str); 3] = [
    ("BLPOP key 0", "RPUSH key element"),
    ("BZPOPMIN key 0", "ZADD key 1 member"),
    ("XREAD BLOCK 0 STREAMS key 0", "XADD key * field value"),
];

#[test]
fn a_client_that_feeds_a_blocked_one_gets_its_turn() {
    undisturbed(|| {
        for (wait, feed) in FED {
            let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
            let mut waiting = server.client();
            waiting.send(wait);
            let mut probe = server.client();
            eventually("it waits", || {
                probe.ask("INFO clients").text().contains("blocked_clients:1\r")
            });
            let (mut slow, _others) = Slow::start::<0>(&server, "key");
            let mut feeding: Vec<Client> = (0..8).map(|_| server.client()).collect();
            feeding.iter_mut().for_each(|client| client.send(feed));
            feeding.iter_mut().for_each(silent);
            slow.end();
            let ended = Instant::now();
            for client in &mut feeding {
                let reply = client.read();
                assert!(matches!(reply, Value::Text(b':' | b'$', _)), "{feed}: {reply:?}");
            }
            assert!(matches!(waiting.read(), Value::Many(..)), "{wait}");
            // This takes a millisecond. It took many seconds when waiters handed the key to one
            // another.
            let took = ended.elapsed();
            assert!(took < Duration::from_secs(2), "not in time: {feed}: {took:?}");
        }
    });
}

/// A script of ten milliseconds that feeds no blocked client.
const LOOKS_TEN_MS: &[u8] = b"local till = os.clock() + 0.01 while os.clock() < till do end
    return redis.call('EXISTS', KEYS[1])";

#[test]
fn a_turn_for_one_key_does_not_overtake_waiters_for_another() {
    let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
    know_script(&server, LOOKS_TEN_MS);
    // After each script on the first key, the server looks for clients to serve, which needs the
    // other key, too.
    let mut waiting = server.client();
    waiting.send("BLMOVE from to LEFT RIGHT 0");
    let mut probe = server.client();
    eventually("it waits", || probe.ask("INFO clients").text().contains("blocked_clients:1\r"));
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let streams = [(); 4].map(|()| {
        let (begun, ended, mut client) = (Arc::clone(&begun), Arc::clone(&ended), server.client());
        thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                begun.fetch_add(1, Ordering::Relaxed);
                client.send_raw(&encode(&[b"EVAL", LOOKS_TEN_MS, b"1", b"from"]));
                assert_eq!(client.read().int(), 0);
            }
        })
    });
    eventually("scripts run", || begun.load(Ordering::Relaxed) > 20);
    let before = begun.load(Ordering::Relaxed);
    (0..10).for_each(|_| assert_eq!(probe.ask("EXISTS to").int(), 0));
    let others = begun.load(Ordering::Relaxed) - before;
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
    assert!(others <= BEGUN_MAX, "waited for {others} scripts");
}

pub(crate) const IN_STREAMS: &[&str] = &["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];

/// Starts threads whose clients run one script after another on a key until the flag is set. Counts
/// the scripts.
pub(crate) fn streams<const COUNT: usize>(
    clients: [Client; COUNT],
    script: &'static [u8],
    counts: (&Arc<AtomicUsize>, &Arc<AtomicBool>),
) -> [JoinHandle<()>; COUNT] {
    streams_of(clients, script, counts, |number| {
        let keys = IN_STREAMS.iter().cycle().skip(number).step_by(3);
        keys.take(IN_STREAMS.len()).map(|key| (*key).to_owned()).collect()
    })
}

/// The same on the keys that `keys_of` returns for each of them.
pub(crate) fn streams_of<const COUNT: usize>(
    clients: [Client; COUNT],
    script: &'static [u8],
    (begun, ended): (&Arc<AtomicUsize>, &Arc<AtomicBool>),
    keys_of: impl Fn(usize) -> Vec<String>,
) -> [JoinHandle<()>; COUNT] {
    let mut numbers = 0..;
    clients.map(|mut client| {
        let (begun, ended) = (Arc::clone(begun), Arc::clone(ended));
        let keys = keys_of(numbers.next().unwrap());
        thread::spawn(move || {
            for key in keys.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                begun.fetch_add(1, Ordering::Relaxed);
                client.send_raw(&encode(&[b"EVAL", script, b"1", key.as_bytes()]));
                assert!(client.read().int() > 0);
            }
        })
    })
}

/// Such scripts are known to use only their declared keys.
pub(crate) fn know_script(server: &Server, script: &[u8]) {
    let mut client = server.client();
    for _ in 0..2 {
        client.send_raw(&encode(&[b"EVAL", script, b"1", b"known"]));
        client.read().int();
    }
}

#[test]
fn a_command_on_many_keys_during_slow_ones_stops_no_client() {
    let threads = ["--io-threads", "5", "--io-threads-always-active", "yes"];
    let server = Server::start(&[&threads[..], &["--busy-reply-threshold", "600000"]].concat());
    let key = key_beside(&server, IN_STREAMS);
    know_script(&server, TEN_MS);
    let (mut slow, [mut waiting, a, b, c, d]) = Slow::start(&server, &key);
    let (begun, ended) = (Arc::default(), Arc::new(AtomicBool::new(false)));
    let streams = streams([a, b, c, d], TEN_MS, (&begun, &ended));
    // A script that closes the gate waits for the endless script, and so do all clients.
    for _ in 0..20 {
        waiting.send(&format!("MGET {}", IN_STREAMS.join(" ")));
        assert_eq!(waiting.read().items().len(), IN_STREAMS.len());
        assert_eq!(slow.neighbour.ask("PING").text(), "PONG");
    }
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
    slow.end();
}

/// A call of a script before it uses an undeclared key, and whether the script cannot be restarted
/// then.
const BEFORE_REACHING: [(&str, bool); 2] =
    [("'PUBLISH', 'channel', 'told'", true), ("'EXISTS', KEYS[1]", false)];

#[test]
fn a_restarted_script_acts_once() {
    for (call, is_refused) in BEFORE_REACHING {
        // The endless script is new, and so the only running script.
        let server = server(&[]);
        let script = format!(
            "redis.call({call}) if ARGV[1] == '0' then return 0 end
             redis.log(redis.LOG_WARNING, 'logged by the script') return redis.call('GET', 'key')"
        );
        let eval = |reaches: &[u8]| encode(&[b"EVAL", script.as_bytes(), b"1", b"mine", reaches]);
        // From then on it is known to use only its declared keys.
        let mut client = server.client();
        for _ in 0..2 {
            client.send_raw(&eval(b"0"));
            assert_eq!(client.read().int(), 0);
        }
        let mut subscriber = server.client();
        subscriber.ask("SUBSCRIBE channel");
        let (mut slow, [mut waiting, mut publisher]) = Slow::start(&server, "key");
        waiting.send_raw(&eval(b"1"));
        if is_refused {
            assert!(waiting.read().text().starts_with("ERR Script used a key"));
            assert_eq!(subscriber.read().items()[2].text(), "told");
        } else {
            slow.stops_only(&mut waiting);
        }
        slow.end();
        if !is_refused {
            assert_eq!(waiting.read(), Value::NULL);
        }
        publisher.ask("PUBLISH channel last");
        assert_eq!(subscriber.read().items()[2].text(), "last");
        // The line is written before the script gets its reply, and another thread reads it.
        let lines = || server.log().matches("logged by the script").count();
        eventually("the script's line is read", || lines() > 0);
        assert_eq!(lines(), 1, "{call}");
    }
}
