//! A slow command stops only clients that need its keys: no clients of other threads, and no
//! waiting commands there. The slow command is a script that runs until it is killed.

use std::time::{Duration, Instant};

use test_support::{encode, eventually, request};

use crate::undisturbed::undisturbed;
use crate::{Client, Server, Value};

const ENDLESS: &[u8] = b"redis.call('get', KEYS[1]) while true do end";

/// Four threads, three of which have clients, whatever the load.
fn server() -> Server {
    Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"])
}

fn thread_of(client: &mut Client) -> usize {
    let info = client.ask("CLIENT INFO").text();
    let field = info.split(' ').find_map(|field| field.strip_prefix("io-thread="));
    field.expect("it has a thread").trim().parse().expect("a number")
}

/// This many clients on one thread, which is not the thread of the given clients.
fn neighbours<const COUNT: usize>(server: &Server, others: &[usize]) -> (usize, [Client; COUNT]) {
    let mut clients: Vec<(usize, Client)> = Vec::new();
    loop {
        let mut client = server.client();
        let thread = thread_of(&mut client);
        if others.contains(&thread) {
            // The client stays, so that the next one goes elsewhere.
            clients.push((usize::MAX, client));
            continue;
        }
        clients.push((thread, client));
        if clients.iter().filter(|(of, _)| *of == thread).count() == COUNT {
            let own = clients.into_iter().filter(|(of, _)| *of == thread);
            let own: Vec<Client> = own.map(|(_, client)| client).collect();
            return (thread, own.try_into().expect("so many"));
        }
    }
}

/// A script that holds a key until [`end`](Self::end).
struct Slow {
    client: Client,
    control: Client,
    thread: usize,
}

impl Slow {
    fn start(server: &Server, key: &str) -> Self {
        let (thread, [mut client]) = neighbours(server, &[]);
        let (_, [mut control]) = neighbours(server, &[thread]);
        client.send_raw(&encode(&[b"EVAL", ENDLESS, b"1", key.as_bytes()]));
        eventually("the script runs", || {
            control.ask("INFO memory").text().contains("number_of_cached_scripts:1")
        });
        Self { client, control, thread }
    }

    fn end(&mut self) {
        kill(&mut self.control);
        assert!(self.client.read().is_error());
    }
}

/// Ends a script that may have just begun: until then there is nothing to kill.
fn kill(control: &mut Client) {
    eventually("the script is killed", || control.ask("SCRIPT KILL").text() == "OK");
}

fn pong(client: &mut Client) {
    assert_eq!(client.ask("PING"), Value::simple("PONG"));
}

#[test]
fn the_time_of_a_pause_begins_when_it_is_answered() {
    undisturbed(|| {
        const PAUSE: Duration = Duration::from_millis(400);
        let server = server();
        let mut slow = Slow::start(&server, "a");
        let (_, [mut pauser]) = neighbours(&server, &[slow.thread]);
        let (_, [mut writer]) = neighbours(&server, &[slow.thread]);
        pauser.send(&format!("CLIENT PAUSE {} WRITE", PAUSE.as_millis()));
        assert!(pauser.is_silent_for(PAUSE), "answered while a command goes on");
        slow.end();
        assert_eq!(pauser.read(), Value::simple("OK"));
        let start = Instant::now();
        writer.ok("SET k v");
        assert!(
            start.elapsed() >= PAUSE / 2,
            "not in time: the pause was over: {:?}",
            start.elapsed()
        );
    });
}

#[test]
fn a_pause_that_waits_stops_neither_the_main_thread_nor_its_neighbours() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let (_, [mut pauser, mut neighbour]) = neighbours(&server, &[slow.thread]);
    pauser.send("CLIENT PAUSE 20 WRITE");
    for _ in 0..6 {
        pong(&mut server.client());
    }
    // The main thread executes this.
    assert!(!neighbour.ask("CONFIG GET hz").items().is_empty());
    assert!(pauser.is_silent_for(Duration::from_millis(50)), "answered too early");
    neighbour.send("SET k v");
    slow.end();
    assert_eq!(pauser.read(), Value::simple("OK"));
    assert_eq!(neighbour.read(), Value::simple("OK"));
}

#[test]
fn a_script_can_be_ended_while_a_pause_of_everything_waits_for_it() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let (_, [mut pauser]) = neighbours(&server, &[slow.thread]);
    pauser.send("CLIENT PAUSE 1 ALL");
    assert!(pauser.is_silent_for(Duration::from_millis(20)), "answered too early");
    slow.end();
    assert_eq!(pauser.read(), Value::simple("OK"));
    pong(&mut pauser);
}

/// A pause does not wait for an endless script, but for all other running commands.
#[test]
fn a_pause_during_a_busy_script_waits_for_other_commands() {
    let server = server();
    let (busy, [mut endless]) = neighbours(&server, &[]);
    let (slow_thread, [mut slow]) = neighbours(&server, &[busy]);
    let (_, [mut pauser, mut control, mut probe]) = neighbours(&server, &[busy, slow_thread]);
    control.ok("CONFIG SET busy-reply-threshold 30");
    // A script that is known to use only its declared keys runs on several threads at once.
    let script = b"redis.call('get', KEYS[1]) while ARGV[1] == '1' do end";
    let run = |client: &mut Client, key: &[u8], is_endless: &[u8]| {
        client.send_raw(&encode(&[b"EVAL", script, b"1", key, is_endless]));
    };
    run(&mut endless, b"a", b"0");
    assert_eq!(endless.read(), Value::NULL);
    run(&mut endless, b"a", b"1");
    eventually("the script is busy", || control.ask("GET a").is_error());
    // From now on no other script becomes busy.
    control.ok("CONFIG SET busy-reply-threshold 0");
    run(&mut slow, b"b", b"1");
    eventually("the other one holds its key", || {
        probe.send("EXISTS b");
        let waits = probe.is_silent_for(Duration::from_millis(20));
        waits || probe.read() != Value::number(0)
    });
    pauser.send("CLIENT PAUSE 1 WRITE");
    assert!(pauser.is_silent_for(Duration::from_millis(100)), "answered while a command goes on");
    for runner in [&mut endless, &mut slow] {
        kill(&mut control);
        assert!(runner.read().is_error());
    }
    assert_eq!(pauser.read(), Value::simple("OK"));
}

#[test]
fn a_pause_ends_though_its_client_has_gone() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let (_, [mut pauser, mut neighbour]) = neighbours(&server, &[slow.thread]);
    pauser.send("CLIENT PAUSE 1 WRITE");
    assert!(pauser.is_silent_for(Duration::from_millis(20)), "answered too early");
    neighbour.send("SET k v");
    assert!(neighbour.is_silent_for(Duration::from_millis(20)), "it is paused");
    drop(pauser);
    pong(&mut server.client());
    slow.end();
    assert_eq!(neighbour.read(), Value::simple("OK"));
}

/// A command of the main thread takes only its own client there.
#[test]
fn a_slow_command_does_not_stop_an_earlier_one_of_the_main_thread() {
    let threads = ["--io-threads", "4", "--io-threads-always-active", "yes"];
    for first in ["CONFIG SET hz 10", "INFO server"] {
        let server = Server::start(&[&threads[..], &["--busy-reply-threshold", "0"]].concat());
        let (thread, [mut slow, mut same]) = neighbours(&server, &[]);
        let (_, [mut other]) = neighbours(&server, &[thread]);
        slow.send("INCR n");
        slow.send_raw(
            &[
                request(first),
                request("INCR n"),
                request(first),
                encode(&[b"EVAL", ENDLESS, b"1", b"a"]),
                request("INCR n"),
            ]
            .concat(),
        );
        assert_eq!(slow.read(), Value::number(1));
        slow.read();
        assert_eq!(slow.read(), Value::number(2));
        slow.read();
        eventually("the script runs", || {
            other.ask("INFO memory").text().contains("number_of_cached_scripts:1")
        });
        same.send("PING");
        for _ in 0..3 {
            pong(&mut server.client());
            assert!(!other.ask("CONFIG GET hz").items().is_empty());
        }
        assert!(same.is_silent_for(Duration::from_millis(20)), "the script is elsewhere");
        kill(&mut other);
        assert!(slow.read().is_error());
        assert_eq!(slow.read(), Value::number(3));
        assert_eq!(same.read(), Value::simple("PONG"));
    }
}

#[test]
fn a_kill_that_waits_does_not_stop_its_neighbours() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let (thread, [mut killer, mut neighbour]) = neighbours(&server, &[slow.thread]);
    let (_, [mut victim]) = neighbours(&server, &[slow.thread, thread]);
    let id = victim.ask("CLIENT ID").int();
    killer.send(&format!("CLIENT KILL ID {id}"));
    killer.send("PING");
    for _ in 0..10 {
        pong(&mut neighbour);
    }
    assert!(killer.is_silent_for(Duration::from_millis(20)), "answered too early");
    slow.end();
    assert_eq!(killer.read(), Value::number(1));
    assert_eq!(killer.read(), Value::simple("PONG"));
    victim.is_closed();
}

#[test]
fn a_change_of_users_that_waits_does_not_stop_its_neighbours() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let (_, [mut admin, mut neighbour]) = neighbours(&server, &[slow.thread]);
    admin.send("ACL SETUSER alice on");
    pong(&mut neighbour);
    pong(&mut server.client());
    assert!(admin.is_silent_for(Duration::from_millis(20)), "answered too early");
    slow.end();
    assert_eq!(admin.read(), Value::simple("OK"));
}

#[test]
fn a_killer_may_kill_itself_too() {
    let server = server();
    let (mut killer, mut victim) = (server.client(), server.client());
    pong(&mut victim);
    killer.send("CLIENT KILL TYPE normal SKIPME no");
    assert_eq!(killer.read(), Value::number(2));
    killer.is_closed();
    victim.is_closed();
}

#[test]
fn in_a_transaction_all_is_over_before_the_reply() {
    let server = server();
    let (mut admin, mut victim) = (server.client(), server.client());
    let id = victim.ask("CLIENT ID").int();
    admin.ok("MULTI");
    for words in ["CLIENT PAUSE 300 WRITE", &format!("CLIENT KILL ID {id}"), "ACL SETUSER a on"] {
        assert_eq!(admin.ask(words), Value::simple("QUEUED"));
    }
    let ok = Value::simple("OK");
    assert_eq!(admin.ask("EXEC"), Value::array(vec![ok.clone(), Value::number(1), ok]));
    let start = Instant::now();
    admin.ok("SET k v");
    assert!(start.elapsed() >= Duration::from_millis(150), "no pause: {:?}", start.elapsed());
    victim.is_closed();
}

#[test]
fn new_clients_do_not_go_to_a_thread_that_is_stuck() {
    let server = server();
    let mut slow = Slow::start(&server, "a");
    let clients: Vec<Client> = (0..12)
        .map(|_| {
            let mut client = server.client();
            pong(&mut client);
            client
        })
        .collect();
    slow.end();
    drop(clients);
}

#[test]
fn leaving_a_key_in_use_stops_no_neighbour() {
    undisturbed(|| {
        let server = server();
        let (stuck, [client]) = neighbours(&server, &[]);
        drop(client);
        let (_, [mut neighbour, mut watching, mut blocked, mut unwatching, mut hasty, mut next]) =
            neighbours(&server, &[stuck]);
        watching.ok("WATCH a");
        unwatching.ok("WATCH a");
        blocked.send("BLPOP a 0");
        let begun = Instant::now();
        hasty.send("BLPOP a 0.3");
        let wait = |count: &str| {
            eventually("they wait", || {
                assert!(begun.elapsed() < Duration::from_millis(300), "not in time: they wait");
                server.info("blocked_clients") == count
            });
        };
        wait("2");
        next.send("BLPOP a 0");
        wait("3");
        let mut slow = Slow::start(&server, "a");
        drop(watching);
        drop(blocked);
        unwatching.ok("UNWATCH");
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(600) {
            pong(&mut neighbour);
        }
        slow.end();
        assert_eq!(hasty.read(), Value::NULL_ARRAY);
        // Clients that left or went on get nothing.
        assert_eq!(neighbour.ask("RPUSH a x"), Value::number(1));
        assert_eq!(next.read().items().len(), 2, "the element is lost");
        hasty.send("BLPOP b 0");
        eventually("it waits", || server.info("blocked_clients") == "1");
        neighbour.ask("RPUSH a x");
        neighbour.ask("RPUSH b y");
        assert_eq!(hasty.read().items()[1], Value::bulk(b"y"));
        eventually("no client waits or watches", || {
            server.info("blocked_clients") == "0" && server.info("watching_clients") == "0"
        });
    });
}

#[test]
fn clients_of_a_quiet_server_are_not_all_on_one_thread() {
    /// After this time without load, the number of active I/O threads is checked.
    const CALM: Duration = Duration::from_secs(5);
    if std::thread::available_parallelism().map_or(1, std::num::NonZero::get) < 2 {
        return;
    }
    let server = Server::start(&["--io-threads", "3"]);
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    clients.iter_mut().for_each(pong);
    std::thread::sleep(CALM + CALM / 2);
    let mut threads: Vec<usize> = clients.iter_mut().map(thread_of).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads, [1, 2]);
}
