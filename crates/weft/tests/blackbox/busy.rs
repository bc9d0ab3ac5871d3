//! Scripts that do not end: clients that need their keys get BUSY, other clients are served, and
//! any client can end the script and the server.

use std::time::{Duration, Instant};

use test_support::{encode, eventually, request};

use crate::{Client, Server, Value};

const EVAL_BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const FUNCTION_BUSY: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";
/// The longest time until a kill takes effect: more than the promised 100 ms, since other tests use
/// the machine as well.
const KILL_MAX: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2000 } else { 500 });

/// Servers with different threads, all of which have clients.
const SERVERS: [&[&str]; 5] = [
    &["--io-threads", "1"],
    &["--io-threads", "2"],
    &["--io-threads", "3"],
    &["--io-threads", "3", "--io-threads-execute", "simple"],
    &["--io-threads", "3", "--io-threads-execute", "none"],
];
/// The server of them with two threads that run scripts.
const TWO: &[&str] = SERVERS[2];

/// Scripts that never end, in different parts of the interpreter. None of them writes.
const LOOPS: [&str; 8] = [
    "while true do end",
    "while true do string.rep('x', 100000) end",
    "local s = string.rep('a', 1000) while true do s:gsub('a', 'b') end",
    "while true do string.find(string.rep('b', 1e5), '^[' .. string.rep('a', 6e4) .. 'b]*x') end",
    "while true do local t = {} for i = 1, 1000 do t[i] = -i end table.sort(t) end",
    "while true do pcall(function() while true do end end) end",
    "while true do redis.pcall('GET', KEYS[1]) end",
    "repeat local ok = pcall(error, 'caught') until false",
];
const WRITES: &str = "while true do redis.call('INCR', KEYS[1]) end";
/// Key names; hardly more than one of them is in the shard of the script's key.
const OTHERS: [&str; 4] = ["other1", "other2", "other3", "other4"];

fn start(threads: &[&str]) -> Server {
    let mut options = threads.to_vec();
    options.extend(["--io-threads-always-active", "yes", "--busy-reply-threshold", "30"]);
    Server::start(&options)
}

/// Clients that connect one after another, so that each thread has some.
fn clients<const COUNT: usize>(server: &Server) -> [Client; COUNT] {
    std::array::from_fn(|_| {
        let mut client = server.client();
        client.ask("PING");
        client
    })
}

fn thread_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO").text();
    info.split("io-thread=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

/// Starts a script that holds `key`, and waits until clients of any thread get BUSY.
#[track_caller]
fn begin(runner: &mut Client, other: &mut Client, script: &str) {
    send_script(runner, script, "key");
    until_busy(other, EVAL_BUSY);
}

fn send_script(runner: &mut Client, script: &str, key: &str) {
    runner.send_raw(&encode(&[b"EVAL", script.as_bytes(), b"1", key.as_bytes(), b"argument"]));
}

#[track_caller]
fn until_busy(other: &mut Client, text: &str) {
    eventually("a script runs for too long", || is_busy(&other.ask("GET key"), text));
}

#[track_caller]
fn is_busy(reply: &Value, text: &str) -> bool {
    match reply {
        Value::Text(b'-', error) => {
            assert_eq!(error, text.as_bytes(), "{reply}");
            true
        }
        _ => false,
    }
}

/// Whether a client's reads of other keys are executed: all or none, except for one key that may
/// share the shard of the script's key.
#[track_caller]
fn is_served(client: &mut Client) -> bool {
    let replies = OTHERS.map(|key| client.ask(&format!("GET {key}")));
    let refused = replies.iter().filter(|reply| is_busy(reply, EVAL_BUSY)).count();
    assert!(refused <= 1 || refused == OTHERS.len(), "{replies:?}");
    refused <= 1
}

/// Kills the script by this client, within the time limit.
#[track_caller]
fn kill(killer: &mut Client, runner: &mut Client) {
    let start = Instant::now();
    killer.ok("SCRIPT KILL");
    let reply = runner.read().text();
    let time = start.elapsed();
    assert!(reply.starts_with(KILLED), "{reply}");
    assert!(time < KILL_MAX, "{time:?}");
}

#[test]
fn any_client_ends_a_script_in_any_loop() {
    for (index, threads) in SERVERS.into_iter().enumerate() {
        let server = start(threads);
        let [mut runner, mut first, mut second, mut third] = clients(&server);
        let own = thread_of(&mut runner);
        for (round, script) in LOOPS.into_iter().enumerate() {
            let beside = [&mut first, &mut second, &mut third].map(|client| match index {
                // The script's thread: the main thread with `simple`, which then executes only
                // commands that are more than one command on one key.
                3 => false,
                4 => true,
                _ => thread_of(client) == own,
            });
            begin(&mut runner, &mut first, script);
            for (client, is_beside) in [&mut first, &mut second, &mut third].into_iter().zip(beside)
            {
                assert!(is_busy(&client.ask("GET key"), EVAL_BUSY));
                assert_eq!(is_served(client), !is_beside, "{threads:?}");
                client.ok("MULTI");
                client.ok("DISCARD");
            }
            match round % 4 {
                0 => kill(&mut first, &mut runner),
                1 => kill(&mut second, &mut runner),
                2 => kill(&mut third, &mut runner),
                _ => kill(&mut server.client(), &mut runner),
            }
            for client in [&mut runner, &mut first, &mut second, &mut third] {
                assert_eq!(client.ask("GET key"), Value::NULL);
            }
        }
        assert_eq!(first.ask("SCRIPT KILL").text(), "NOTBUSY No scripts in execution right now.");
        let sha = runner.ask_args(&[b"SCRIPT", b"LOAD", LOOPS[0].as_bytes()]).text();
        server.wait_for_log("* Lua script killed by user with SCRIPT KILL.");
        server.wait_for_log(&format!(
            "milliseconds. You can try killing the script using the SCRIPT KILL command. Script \
             name is: {sha}."
        ));
    }
}

#[test]
fn only_shutdown_ends_a_script_that_has_written() {
    for threads in SERVERS {
        let mut server = start(threads);
        let [mut runner, mut first, mut second] = clients(&server);
        begin(&mut runner, &mut first, WRITES);
        for client in [&mut first, &mut second, &mut server.client()] {
            assert!(client.ask("SCRIPT KILL").text().starts_with("UNKILLABLE "));
            assert_eq!(client.ask("SHUTDOWN").text(), EVAL_BUSY);
            assert_eq!(client.ask("SHUTDOWN SAVE").text(), EVAL_BUSY);
        }
        // A signal waits for the script, and clients are served in the meantime.
        server.signal("TERM");
        server.wait_for_log("Received SIGTERM");
        assert!(is_busy(&first.ask("GET key"), EVAL_BUSY));
        server.client().send("SHUTDOWN NOSAVE");
        assert!(server.wait().success());
    }
}

#[test]
fn a_signal_ends_a_script_that_has_not_written() {
    for threads in SERVERS {
        let mut server = start(threads);
        let [mut runner, mut first] = clients(&server);
        begin(&mut runner, &mut first, LOOPS[0]);
        server.signal("TERM");
        assert!(runner.read().text().starts_with(KILLED));
        assert!(server.wait().success());
    }
}

/// Requests for the script's keys, and commands that stop all threads, wait until the script is
/// busy; from then on they get BUSY.
#[test]
fn clients_that_wait_for_a_busy_script_get_busy() {
    for threads in SERVERS {
        let server = start(threads);
        let [mut runner, mut first, mut second, mut third] = clients(&server);
        for words in [
            "GET key",
            "SET key value",
            "MGET a b key c",
            "DEL x key",
            "KEYS *",
            "FLUSHALL",
            "SWAPDB 1 2",
        ] {
            send_script(&mut runner, LOOPS[0], "key");
            first.send(words);
            until_busy(&mut second, EVAL_BUSY);
            // The script may have started after it.
            is_busy(&first.read(), EVAL_BUSY);
            let again = first.ask(words);
            assert!(is_busy(&again, EVAL_BUSY), "{words}: {again:?}");
            kill(&mut third, &mut runner);
            first.ask("DEL key");
        }
    }
}

/// A client on another thread than the runner, one after another.
fn on_two_threads(server: &Server) -> (Client, Client, Client) {
    let [mut runner] = clients(server);
    let own = thread_of(&mut runner);
    let same = client_where(server, |thread| thread == own);
    let other = client_where(server, |thread| thread != own);
    (runner, same, other)
}

/// A client on such a thread.
fn client_where(server: &Server, is_wanted: impl Fn(&str) -> bool) -> Client {
    let mut others = Vec::new();
    loop {
        let mut client = server.client();
        if is_wanted(&thread_of(&mut client)) {
            return client;
        }
        // The client stays, so that the next one goes elsewhere.
        others.push(client);
    }
}

#[test]
fn another_thread_goes_on() {
    let server = start(TWO);
    let (mut runner, mut same, mut other) = on_two_threads(&server);
    let mut third = server.client();
    same.send("BLPOP list 0");
    eventually("it waits", || server.info("blocked_clients") == "1");
    begin(&mut runner, &mut other, LOOPS[0]);
    assert!(is_served(&mut other));
    assert!(other.ask("INFO").text().contains("blocked_clients:1"));
    assert!(other.ask("CLIENT LIST").text().contains("cmd=eval"));
    // Its script goes on, and the client is closed after it.
    let id = runner_id(&mut other);
    assert_eq!(other.ask(&format!("CLIENT KILL ID {id}")).int(), 1);
    other.ok("CLIENT PAUSE 1 WRITE");
    assert!(is_busy(&other.ask("GET key"), EVAL_BUSY));
    // A client that waits for a key on the script's thread gets its element after the script.
    assert_eq!(other.ask("RPUSH list element").int(), 1);
    assert!(same.is_silent_for(Duration::from_millis(20)));
    third.ok("SCRIPT KILL");
    assert_eq!(same.read().items()[1].text(), "element");
    runner.is_closed();
    assert_eq!(other.ask("GET key"), Value::NULL);
}

/// As in Redis, a pause of all commands also holds back reads, but not the commands that end a
/// script.
#[test]
fn a_script_can_be_ended_during_a_pause_of_everything() {
    let server = start(TWO);
    let (mut runner, _same, mut other) = on_two_threads(&server);
    let mut others: [Client; 2] = clients(&server);
    begin(&mut runner, &mut other, LOOPS[0]);
    other.ok("CLIENT PAUSE 1000000 ALL");
    for client in &mut others {
        client.ok("MULTI");
        client.ok("DISCARD");
    }
    kill(&mut other, &mut runner);
    let [first, second] = &mut others;
    first.send("PING");
    second.send("SCRIPT KILL");
    for client in [first, second] {
        assert!(client.is_silent_for(Duration::from_millis(20)), "the pause is over");
    }
}

/// The thread of the client that changes users starts an endless script before the main thread
/// executes the change.
#[test]
fn waits_for_commands_end_during_a_busy_script() {
    let mut options = TWO.to_vec();
    options.extend(["--enable-debug-command", "yes", "--io-threads-always-active", "yes"]);
    options.extend(["--busy-reply-threshold", "30"]);
    let server = Server::start(&options);
    let (mut runner, mut same, mut other) = on_two_threads(&server);
    let thread = thread_of(&mut other);
    let mut killer = client_where(&server, |of| of == thread);
    other.send("DEBUG SLEEP 0.5");
    assert_eq!(killer.ask("PING").text(), "PONG");
    same.send("ACL SETUSER alice on");
    assert_eq!(runner.ask("PING").text(), "PONG");
    send_script(&mut runner, LOOPS[0], "key");
    assert_eq!(same.read().text(), "OK");
    until_busy(&mut same, EVAL_BUSY);
    assert_eq!(other.read().text(), "OK");
    kill(&mut killer, &mut runner);
}

fn runner_id(other: &mut Client) -> String {
    let list = other.ask("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains("cmd=eval")).unwrap().to_owned();
    line.split(' ').next().unwrap().strip_prefix("id=").unwrap().to_owned()
}

/// As in Redis, time stands still in a script, so no key expires before its end.
#[test]
fn time_goes_on_for_a_script_that_runs_for_too_long() {
    let server = start(TWO);
    let waits = b"local function now() local time = redis.call('TIME')
        return time[1] * 1000 + time[2] / 1000 end
        redis.call('SET', KEYS[1], 'value', 'PX', 50)
        local start = now() while now() - start < 100 do end return redis.call('GET', KEYS[1])";
    assert_eq!(server.client().ask_args(&[b"EVAL", waits, b"1", b"key"]).text(), "value");
}

#[test]
fn two_endless_scripts_and_one_that_needs_their_key() {
    let server = start(TWO);
    let (mut runner, mut same, mut other) = on_two_threads(&server);
    let mut killer = server.client();
    // A script that is known to use only its declared keys runs next to others.
    let known = b"if ARGV[1] == '1' then while true do end end";
    runner.ask_args(&[b"EVAL", known, b"0", b"0"]);
    runner.send_raw(&encode(&[b"EVAL", known, b"1", b"key", b"1"]));
    until_busy(&mut same, EVAL_BUSY);
    runner.send("PING");
    let reaches = "redis.call('GET', 'a') return redis.call('GET', 'key')";
    let reply = other.ask_args(&[b"EVAL", reaches.as_bytes(), b"1", b"own"]).text();
    assert!(reply.starts_with(EVAL_BUSY), "{reply}");
    let caught = "return redis.pcall('GET', 'key').err";
    let reply = other.ask_args(&[b"EVAL", caught.as_bytes(), b"1", b"own"]).text();
    assert_eq!(reply, EVAL_BUSY);
    other.send_raw(&encode(&[b"EVAL", LOOPS[0].as_bytes(), b"1", b"own"]));
    eventually("both run for too long", || is_busy(&killer.ask("GET own"), EVAL_BUSY));
    same.ok("SCRIPT KILL");
    same.ok("SCRIPT KILL");
    assert!(runner.read().text().starts_with(KILLED));
    assert!(other.read().text().starts_with(KILLED));
    assert_eq!(runner.read().text(), "PONG");
    assert!(same.ask("SCRIPT KILL").text().starts_with("NOTBUSY"));
}

#[test]
fn transactions_meet_a_busy_script() {
    for threads in SERVERS {
        let server = start(threads);
        let [mut runner, mut first, mut second, mut third, mut fourth] = clients(&server);
        first.ok("WATCH key");
        second.ok("WATCH key");
        first.ok("MULTI");
        assert_eq!(first.ask("SET key value").text(), "QUEUED");
        begin(&mut runner, &mut fourth, LOOPS[0]);
        let aborted = format!("EXECABORT Transaction discarded because of: {EVAL_BUSY}");
        assert_eq!(first.ask("EXEC").text(), aborted);
        second.ok("UNWATCH");
        // As in Redis, WATCH works on it, so that a transaction is still watched when the script
        // ends in the middle of the pipeline.
        third.ok("WATCH key");
        first.ok("WATCH key");
        assert_eq!(first.ask("RESET").text(), "RESET");
        kill(&mut fourth, &mut runner);
        third.ok("MULTI");
        third.ask("SET key third");
        assert_eq!(third.ask("EXEC"), Value::NULL_ARRAY);
        second.ok("MULTI");
        second.ask("SET key second");
        assert_eq!(second.ask("EXEC").items()[0].text(), "OK");
        assert_eq!(first.ask("GET key").text(), "second");

        // A script in a transaction that locks everything stops all clients.
        runner.ok("MULTI");
        assert_eq!(runner.ask("FLUSHALL").text(), "QUEUED");
        send_script(&mut runner, LOOPS[1], "key");
        assert_eq!(runner.read().text(), "QUEUED");
        runner.send("EXEC");
        eventually("a script runs for too long", || is_busy(&first.ask("GET a"), EVAL_BUSY));
        for client in [&mut first, &mut second, &mut third] {
            assert!(!is_served(client));
            assert_eq!(client.ask("PING").text(), EVAL_BUSY);
            client.ok("WATCH key");
            client.ok("MULTI");
            client.ok("DISCARD");
        }
        server.client().ok("SCRIPT KILL");
        assert!(runner.read().items()[1].text().starts_with(KILLED));
        assert_eq!(first.ask("PING").text(), "PONG");
    }
}

#[test]
fn functions_are_ended_by_their_own_command() {
    const LIBRARY: &str =
        "#!lua name=lib\nredis.register_function('endless', function() while true do end end)";
    for threads in SERVERS {
        let server = start(threads);
        let [mut runner, mut first, mut second] = clients(&server);
        runner.ask_args(&[b"FUNCTION", b"LOAD", LIBRARY.as_bytes()]);
        runner.send("FCALL endless 1 key argument");
        until_busy(&mut first, FUNCTION_BUSY);
        assert_eq!(second.ask("SCRIPT KILL").text(), FUNCTION_BUSY);
        let stats = second.ask("FUNCTION STATS");
        assert_eq!(stats.items()[1].items()[1].text(), "endless");
        second.ok("FUNCTION KILL");
        assert!(runner.read().text().starts_with(KILLED));
        server.wait_for_log("using the FUNCTION KILL command. Script name is: endless.");
        begin(&mut runner, &mut first, LOOPS[0]);
        assert_eq!(second.ask("FUNCTION KILL").text(), EVAL_BUSY);
        assert_eq!(second.ask("FUNCTION STATS").text(), EVAL_BUSY);
        kill(&mut second, &mut runner);
    }
}

#[test]
fn clients_come_go_and_block_while_a_script_runs() {
    for threads in SERVERS {
        let server = start(threads);
        let [runner, mut blocked, mut leaves, mut watches, mut first, mut pushes] =
            clients(&server);
        let mut runner = runner;
        // These need the key that the script holds.
        blocked.send("BLPOP key 0");
        leaves.send("BLPOP key 0");
        watches.ok("WATCH key");
        eventually("both wait", || server.info("blocked_clients") == "2");
        begin(&mut runner, &mut first, LOOPS[0]);
        drop(leaves);
        drop(watches);
        let mut new: [Client; 20] = std::array::from_fn(|_| server.client());
        for client in &mut new {
            assert_eq!(client.ask("GET key").text(), EVAL_BUSY);
            assert_eq!(client.ask("QUIT").text(), "OK");
            client.is_closed();
        }
        kill(&mut first, &mut runner);
        eventually("one waits", || server.info("blocked_clients") == "1");
        eventually("no client watches", || server.info("watching_clients") == "0");
        assert_eq!(pushes.ask("RPUSH key element").int(), 1);
        assert_eq!(blocked.read().items()[1].text(), "element");
        // Those clients and the one that asks.
        eventually("the others are gone", || server.info("connected_clients") == "5");
        // The client that runs a script may leave as well.
        begin(&mut runner, &mut first, LOOPS[0]);
        drop(runner);
        first.ok("SCRIPT KILL");
        eventually("it is gone", || server.info("connected_clients") == "4");
    }
}

#[test]
fn threads_come_and_go_while_a_script_runs() {
    let server = start(TWO);
    let (mut runner, mut same, mut other) = on_two_threads(&server);
    begin(&mut runner, &mut other, LOOPS[0]);
    for threads in ["4", "1"] {
        other.ok(&format!("CONFIG SET io-threads {threads}"));
        assert!(is_served(&mut server.client()) || threads == "4");
        assert!(is_busy(&same.ask("GET key"), EVAL_BUSY));
        assert!(is_busy(&other.ask("GET key"), EVAL_BUSY));
    }
    kill(&mut same, &mut runner);
    eventually("one thread is left", || server.info("io_threads_active") == "0");
    for client in [&mut runner, &mut same, &mut other] {
        assert_eq!(client.ask("GET key"), Value::NULL);
    }
}

/// The server also replies to requests that it read together with the script.
#[test]
fn requests_of_the_same_turn_are_answered() {
    let server = start(&["--io-threads", "1", "--enable-debug-command", "yes"]);
    let [mut runner, mut first, mut second] = clients(&server);
    for _ in 0..10 {
        // While the server is stopped, all requests arrive together.
        first.send("DEBUG SLEEP 0.05");
        send_script(&mut runner, LOOPS[0], "key");
        second.send_raw(&[request("PING"), request("PING")].concat());
        assert_eq!(first.read().text(), "OK");
        let replies = [second.read().text(), second.read().text()];
        assert!(replies.iter().all(|reply| reply == "PONG" || reply == EVAL_BUSY), "{replies:?}");
        until_busy(&mut second, EVAL_BUSY);
        kill(&mut second, &mut runner);
    }
}

#[test]
fn the_threshold_is_a_parameter_by_two_names() {
    let server = Server::start(&["--io-threads", "2", "--lua-time-limit", "7"]);
    let [mut runner, mut other] = clients(&server);
    assert_eq!(other.ask("CONFIG GET busy-reply-threshold").items()[1].text(), "7");
    other.ok("CONFIG SET lua-time-limit 0");
    assert_eq!(other.ask("CONFIG GET busy-reply-threshold").items()[1].text(), "0");
    // No client gets BUSY, and each waiting client gets its reply in the end.
    let script = "local t = os.clock() while os.clock() - t < 0.1 do end return 1";
    send_script(&mut runner, script, "key");
    while runner.is_silent_for(Duration::from_millis(1)) {
        assert_eq!(other.ask("GET key"), Value::NULL);
    }
    assert_eq!(runner.read().int(), 1);
}
