//! Scripts next to each other and to transactions, on different threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{encode, eventually};

use crate::undisturbed::undisturbed;
use crate::{Client, Server, Value};

/// A function that holds its key until it has counted to its argument: forever, if that is
/// negative. FUNCTION STATS shows that it runs.
const COUNTS: &str = "#!lua name=counting
    redis.register_function('count', function(keys, args)
        redis.call('GET', keys[1])
        local count = 0
        while count ~= tonumber(args[1]) do count = count + 1 end
        return count
    end)";
/// Uses only its declared key in its first run. In its second run it writes and then uses another
/// key.
const REACHES: &str = "local runs = redis.call('INCR', KEYS[1])
    if runs % 2 == 0 then redis.call('SET', 'beyond', runs) end
    return runs";

fn start() -> Server {
    Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"])
}

/// Clients of three threads.
fn clients(server: &Server) -> [Client; 3] {
    std::array::from_fn(|_| {
        let mut client = server.client();
        client.ask("PING");
        client
    })
}

fn send_script(client: &mut Client, script: &str, key: &str) {
    client.send_raw(&encode(&[b"EVAL", script.as_bytes(), b"1", key.as_bytes()]));
}

fn script(client: &mut Client, script: &str, key: &str) -> Value {
    send_script(client, script, key);
    client.read()
}

/// Starts an endless function that holds a key and may be known to use only that key.
fn begin_endless(runner: &mut Client, other: &mut Client, key: &str, is_known: bool) {
    runner.send_raw(&encode(&[b"FUNCTION", b"LOAD", COUNTS.as_bytes()]));
    assert_eq!(runner.read().text(), "counting");
    if is_known {
        assert_eq!(runner.ask(&format!("FCALL count 1 {key} 1")), Value::number(1));
    }
    runner.send(&format!("FCALL count 1 {key} -1"));
    eventually("the function runs", || runs(other));
}

fn end(killer: &mut Client, runner: &mut Client) {
    killer.ok("FUNCTION KILL");
    assert!(runner.read().text().starts_with("ERR Script killed"));
}

#[test]
fn a_script_that_has_written_waits_for_a_shard_beyond_its_keys() {
    let server = start();
    let [mut holder, mut writer, mut other] = clients(&server);
    assert_eq!(script(&mut writer, REACHES, "runs"), Value::number(1));
    begin_endless(&mut holder, &mut other, "beyond", true);
    let id = writer.ask("CLIENT ID").int();
    send_script(&mut writer, REACHES, "runs");
    eventually("the script has begun", || {
        let list = other.ask(&format!("CLIENT LIST ID {id}")).text();
        list.contains("cmd=eval ")
    });
    end(&mut other, &mut holder);
    assert_eq!(writer.read(), Value::number(2));
    assert_eq!(other.ask("GET beyond").text(), "2");
}

#[test]
fn transactions_with_new_scripts_stop_no_client() {
    let server = start();
    let [mut holder, mut user, mut other] = clients(&server);
    begin_endless(&mut holder, &mut other, "held", true);
    user.ok("MULTI");
    user.ask("SET mine 1");
    send_script(&mut user, "return redis.call('INCR', KEYS[1])", "mine");
    assert_eq!(user.read().text(), "QUEUED");
    assert_eq!(user.ask("EXEC").items()[1], Value::number(2));
    assert_eq!(other.ask("GET mine").text(), "2");
    assert!(runs(&mut other));
    end(&mut other, &mut holder);
}

#[test]
fn a_new_script_that_waits_for_another_frees_its_thread() {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let mut holder = server.client();
    let thread = thread_of(&mut holder);
    let mut beside: Vec<Client> = (0..4).map(|_| server.client()).collect();
    beside.retain_mut(|client| thread_of(client) != thread);
    let [waiter, neighbour, ..] = &mut beside[..] else { panic!("two are on another thread") };
    begin_endless(&mut holder, neighbour, "held", false);
    send_script(waiter, "return redis.call('INCR', KEYS[1])", "mine");
    assert_eq!(neighbour.ask("SET theirs 1").text(), "OK");
    assert_eq!(neighbour.ask("GET mine"), Value::NULL);
    end(neighbour, &mut holder);
    assert_eq!(waiter.read(), Value::number(1));
}

/// A script that needs an undeclared key in use begins again when the key is free, as long as it
/// has not written anything. Its thread serves other clients until then.
#[test]
fn a_script_that_waits_for_an_undeclared_key_stops_no_client_of_its_thread() {
    let mut options = vec!["--io-threads", "3", "--io-threads-always-active", "yes"];
    options.extend(["--busy-reply-threshold", "0"]);
    let server = Server::start(&options);
    let mut holder = server.client();
    let thread = thread_of(&mut holder);
    let mut beside: Vec<Client> = (0..4).map(|_| server.client()).collect();
    beside.retain_mut(|client| thread_of(client) != thread);
    let [waiter, neighbour, ..] = &mut beside[..] else { panic!("two are on another thread") };
    begin_endless(&mut holder, neighbour, "beyond", true);
    let id = waiter.ask("CLIENT ID").int();
    let reads = "redis.call('GET', KEYS[1]) redis.call('GET', 'beyond')
        return redis.call('INCR', KEYS[1])";
    send_script(waiter, reads, "mine");
    eventually("the script has begun", || {
        let list = neighbour.ask(&format!("CLIENT LIST ID {id}")).text();
        list.contains("cmd=eval ")
    });
    for number in 1..=20 {
        assert_eq!(neighbour.ask("INCR mine").int(), number);
    }
    end(neighbour, &mut holder);
    assert_eq!(waiter.read(), Value::number(21));
}

/// However many new scripts wait for another script, they do not stop their thread.
#[test]
fn new_scripts_that_wait_for_another_stop_no_client() {
    undisturbed(|| {
        /// The longest time of 30 requests. If each waiting script took a millisecond of each turn,
        /// they would take at least 60 times 30 ms.
        const TIME_MAX: Duration = Duration::from_millis(600);
        let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
        let mut holder = server.client();
        let thread = thread_of(&mut holder);
        let mut beside: Vec<Client> = (0..130).map(|_| server.client()).collect();
        beside.retain_mut(|client| thread_of(client) != thread);
        let mut neighbour = beside.pop().unwrap();
        begin_endless(&mut holder, &mut neighbour, "held", false);
        beside.truncate(60);
        for (number, client) in beside.iter_mut().enumerate() {
            send_script(client, &format!("return {number}"), "mine");
        }
        neighbour.ask("PING");
        let start = Instant::now();
        for _ in 0..30 {
            neighbour.ask("PING");
        }
        let time = start.elapsed();
        assert!(time < TIME_MAX, "not in time: {time:?}");
        end(&mut neighbour, &mut holder);
        for (number, client) in beside.iter_mut().enumerate() {
            assert_eq!(client.read(), Value::number(number as i64));
        }
    });
}

/// A script that always runs exclusively gives way to waiting clients.
#[test]
fn a_stream_of_new_scripts_starves_no_client() {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let [mut client, mut other, _] = clients(&server);
    assert_ne!(thread_of(&mut client), thread_of(&mut other));
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let load = thread::spawn(move || {
        let mut number = 0;
        while !is_done.load(Ordering::Relaxed) {
            let runs: Vec<String> = (0..50).map(|of| format!("return {}", number + of)).collect();
            number += 50;
            runs.iter().for_each(|script| send_script(&mut other, script, "theirs"));
            runs.iter().for_each(|_| assert!(other.read().is_int()));
        }
    });
    for number in 0..20 {
        let new = format!("return 'own{number}'");
        assert_eq!(script(&mut client, &new, "mine").text(), format!("own{number}"));
    }
    done.store(true, Ordering::Relaxed);
    load.join().unwrap();
}

fn thread_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO").text();
    info.split("io-thread=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

/// Whether a function runs.
fn runs(client: &mut Client) -> bool {
    format!("{:?}", client.ask("FUNCTION STATS")).contains("duration_ms")
}

#[test]
fn scripts_that_may_call_anything_run_on_the_main_thread() {
    let mut options = vec!["--io-threads", "4", "--io-threads-always-active", "yes"];
    options.extend(["--enable-debug-command", "yes"]);
    let server = Server::start(&options);
    let clients = clients(&server);
    let calls = "return redis.call('DEBUG', 'PROTOCOL', 'integer')";
    let denied = "ERR This Redis command is not allowed from script";
    for mut client in clients {
        assert!(script(&mut client, calls, "k").text().starts_with(denied));
        client.ok("DEBUG SET-DISABLE-DENY-SCRIPTS 1");
        assert_eq!(script(&mut client, calls, "k"), Value::number(12345));
        client.ok("DEBUG SET-DISABLE-DENY-SCRIPTS 0");
    }
}
