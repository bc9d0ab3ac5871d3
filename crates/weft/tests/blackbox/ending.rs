//! SHUTDOWN during commands: running commands are waited for, and no new command starts except
//! those that end or abort the shutdown.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::{encode, eventually, request};

use crate::{Client, Server, Value};

/// Runs for about 50 ms, so that one of four threads nearly always runs it.
const SHORT: &[u8] = b"local t = os.clock() while os.clock() - t < 0.05 do end return 1";
const ENDLESS: &[u8] = b"redis.call('get', KEYS[1]) while true do end";
const READS: &[u8] = b"#!lua flags=no-writes\nredis.call('get', KEYS[1]) while true do end";
/// Runs for a second, and cannot be killed.
const WRITES_FOR_A_WHILE: &[u8] = b"redis.call('incr', KEYS[1])
    local t = os.clock() while os.clock() - t < 1 do end return 'done'";
const WRITES: &[u8] = b"while true do redis.call('incr', KEYS[1]) end";
const KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";
const CALLED_OFF: &str = "ERR Errors trying to SHUTDOWN. Check logs.";
const BEGUN: &str = "User requested shutdown...";
const BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
/// A client that is held back gets no reply within this time.
const WHILE: Duration = Duration::from_millis(30);

fn start(options: &[&str]) -> Server {
    let threads = ["--io-threads", "3", "--io-threads-always-active", "yes"];
    Server::start(&[&threads[..], options].concat())
}

/// Starts a script that holds the key `held`, and returns its client and some clients of another
/// thread after the server knows of the script.
fn begin<const COUNT: usize>(server: &Server, script: &[u8]) -> (Client, [Client; COUNT]) {
    let mut runner = server.client();
    let own = thread_of(&mut runner);
    let (mut same, mut others) = (Vec::new(), Vec::new());
    while others.len() < COUNT {
        let mut other = server.client();
        let is_here = thread_of(&mut other) == own;
        if is_here { &mut same } else { &mut others }.push(other);
    }
    runner.send_raw(&encode(&[b"EVAL", script, b"1", b"held"]));
    let mut others: [Client; COUNT] = others.try_into().unwrap();
    eventually("the script runs", || {
        others[0].ask("INFO memory").text().contains("number_of_cached_scripts:1")
    });
    (runner, others)
}

fn thread_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO").text();
    info.split("io-thread=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

/// Ends a server while all its threads run one script after another.
fn ends_under_load(end: impl FnOnce(&Server)) {
    let mut server = Server::start(&["--io-threads", "5", "--io-threads-always-active", "yes"]);
    let ran = Arc::new(AtomicUsize::new(0));
    for number in 0..12 {
        let (mut client, ran) = (server.client(), Arc::clone(&ran));
        let key = format!("key{number}");
        let script = encode(&[b"EVAL", SHORT, b"1", key.as_bytes()]);
        // The loop ends with the connection.
        thread::spawn(move || {
            loop {
                client.send_lossy(&script);
                if client.try_read().is_err() {
                    return;
                }
                ran.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    eventually("scripts run", || ran.load(Ordering::Relaxed) > 20);
    end(&server);
    assert!(server.wait().success());
}

#[test]
fn a_signal_ends_a_server_under_a_stream_of_scripts() {
    ends_under_load(|server| server.signal("TERM"));
}

#[test]
fn shutdown_ends_a_server_under_a_stream_of_scripts() {
    ends_under_load(|server| server.client().send("SHUTDOWN"));
}

#[test]
fn after_shutdown_only_commands_that_end_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut server = start(&["--unixsocket", socket.to_str().unwrap()]);
    let (mut runner, [mut first, mut second, mut third, mut fourth]) = begin(&server, ENDLESS);
    first.send_raw(&[request("SHUTDOWN"), request("INCR n")].concat());
    server.wait_for_log(BEGUN);
    second.send_raw(&[request("INCR n"), request("INCR n")].concat());
    third.send_raw(&encode(&[b"EVAL", b"return redis.call('incr', 'n')", b"0"]));
    assert!(second.is_silent_for(WHILE), "executed: {:?}", second.read());
    assert!(third.is_silent_for(WHILE), "executed: {:?}", third.read());
    assert!(first.is_silent_for(WHILE), "answered: {:?}", first.read());
    eventually("the script is killed", || fourth.ask("SCRIPT KILL").text() == "OK");
    // Replies in transit arrive.
    assert!(runner.read().text().starts_with(KILLED));
    // A client whose connection ends after SHUTDOWN does not reconnect.
    first.is_closed();
    assert!(UnixStream::connect(&socket).is_err());
    for client in [&mut runner, &mut second, &mut third, &mut fourth] {
        client.is_closed();
    }
    assert!(server.wait().success());
}

#[test]
fn shutdown_is_called_off_while_it_waits_for_a_script() {
    let mut server = start(&[]);
    let (mut runner, [mut first, mut second, mut third]) = begin(&server, ENDLESS);
    let refusal = "ERR No shutdown in progress.";
    assert_eq!(third.ask("SHUTDOWN ABORT").text(), refusal);
    first.send_raw(&[request("SHUTDOWN"), request("PING")].concat());
    server.wait_for_log(BEGUN);
    second.send("INCR n");
    assert!(second.is_silent_for(WHILE), "executed: {:?}", second.read());
    assert_eq!(third.ask("SHUTDOWN ABORT").text(), "OK");
    assert_eq!(first.read().text(), CALLED_OFF);
    assert_eq!(first.read().text(), "PONG");
    assert_eq!(second.read().int(), 1);
    assert_eq!(third.ask("SHUTDOWN ABORT").text(), refusal);
    third.ok("SCRIPT KILL");
    assert!(runner.read().text().starts_with(KILLED));
    assert_eq!(runner.ask("INCR n").int(), 2);
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn a_pause_outlives_a_shutdown_that_is_called_off() {
    let server = start(&[]);
    server.client().ok("CLIENT PAUSE 100000 WRITE");
    let (mut runner, [mut first, mut second, mut third]) = begin(&server, READS);
    first.send("SHUTDOWN");
    server.wait_for_log(BEGUN);
    second.send("GET n");
    assert!(second.is_silent_for(WHILE), "executed: {:?}", second.read());
    assert_eq!(third.ask("SHUTDOWN ABORT").text(), "OK");
    assert_eq!(first.read().text(), CALLED_OFF);
    assert_eq!(second.read(), Value::NULL);
    second.send("INCR n");
    assert!(second.is_silent_for(WHILE), "executed: {:?}", second.read());
    third.ok("CLIENT UNPAUSE");
    assert_eq!(second.read().int(), 1);
    third.ok("SCRIPT KILL");
    assert!(runner.read().text().starts_with(KILLED));
}

#[test]
fn a_signal_is_aborted_during_a_busy_script_on_one_thread() {
    let server = Server::start(&["--io-threads", "1", "--busy-reply-threshold", "30"]);
    let (mut runner, mut other) = (server.client(), server.client());
    runner.send_raw(&encode(&[b"EVAL", WRITES_FOR_A_WHILE, b"1", b"held"]));
    eventually("the script is busy", || other.ask("GET held").text() == BUSY);
    server.signal("TERM");
    server.wait_for_log("Received SIGTERM");
    assert_eq!(other.ask("SHUTDOWN ABORT").text(), "OK");
    assert_eq!(other.ask("SHUTDOWN ABORT").text(), "ERR No shutdown in progress.");
    assert_eq!(runner.read().text(), "done");
    assert_eq!(runner.ask("INCR held").int(), 2);
}

#[test]
fn commands_are_refused_while_a_signal_waits_for_an_endless_script() {
    let mut server = start(&["--busy-reply-threshold", "30"]);
    let (_runner, [mut first, mut second]) = begin(&server, WRITES);
    eventually("the script is busy", || first.ask("GET held").text() == BUSY);
    first.ok("SET free 1");
    server.signal("TERM");
    eventually("the end has begun", || first.ask("GET free").text() == BUSY);
    assert!(second.ask("SCRIPT KILL").text().starts_with("UNKILLABLE "));
    assert_eq!(second.ask("SHUTDOWN").text(), BUSY);
    second.send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
}

/// Starts a script that writes and goes on, directly or within EXEC.
fn begin_to_write(server: &Server, exec: bool) -> Client {
    const SCRIPT: &[u8] =
        b"redis.call('set', KEYS[1], '1') while true do redis.call('get', KEYS[1]) end
        redis.call('set', KEYS[2], '1')";
    let (mut runner, mut other) = (server.client(), server.client());
    let script = encode(&[b"EVAL", SCRIPT, b"2", b"first", b"last"]);
    if exec {
        runner.send_raw(&[request("MULTI"), request("SET before 1"), script].concat());
        (0..3).for_each(|_| drop(runner.read()));
        runner.send("EXEC");
    } else {
        runner.send_raw(&script);
    }
    let busy = Value::error(BUSY);
    eventually("the script is busy", || other.ask("GET first") == busy);
    runner
}

#[test]
fn writes_of_a_script_that_shutdown_ends_are_lost() {
    for (exec, policy) in [(false, "always"), (true, "everysec"), (true, "always")] {
        let options =
            ["--busy-reply-threshold", "30", "--appendonly", "yes", "--appendfsync", policy];
        let server = start(&options);
        server.client().ok("SET kept 1");
        let mut runner = begin_to_write(&server, exec);
        let mut other = server.client();
        other.send("SHUTDOWN NOSAVE");
        assert_eq!(runner.read_to_end(), b"", "EXEC {exec}");
        other.is_closed();
        let server = server.wait_and_start(&options);
        let keys = server.client().ask("KEYS *");
        assert_eq!(keys.items().len(), 1, "EXEC {exec}: {keys:?}");
    }
}

#[test]
fn shutdown_is_refused_when_a_script_that_has_written_becomes_busy() {
    let mut server = start(&["--busy-reply-threshold", "1000"]);
    let (_runner, [mut first, mut second]) = begin(&server, WRITES);
    first.send_raw(&[request("SHUTDOWN"), request("SHUTDOWN ABORT")].concat());
    assert_eq!(first.read().text(), BUSY);
    assert_eq!(first.read().text(), "ERR No shutdown in progress.");
    second.ok("SET free 1");
    second.send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
}

#[test]
fn the_last_save_cannot_be_aborted_and_no_write_is_acknowledged_during_it() {
    let threads = ["--io-threads", "3", "--io-threads-always-active", "yes"];
    let mut server = Server::start(&[&["--save", "3600 1"][..], &threads].concat());
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    (0..300).for_each(|n| clients[0].ok(&format!("SET key:{n} v")));
    clients[0].ok("CONFIG SET rdb-key-save-delay 2000");
    clients[0].send("SHUTDOWN");
    server.wait_for_log("Saving the final RDB snapshot before exiting.");
    clients[1..3].iter_mut().for_each(|client| client.send("SET late 1"));
    clients[3..].iter_mut().for_each(|client| client.send("SHUTDOWN ABORT"));
    let ended = server.wait();
    for client in &mut clients {
        while let Ok(reply) = client.try_read() {
            assert_ne!(reply.text(), "OK", "it is lost, or not called off");
        }
    }
    assert!(ended.success());
}

#[test]
fn a_signal_can_be_called_off_while_background_work_is_paused() {
    let mut server = Server::start(&["--enable-debug-command", "yes"]);
    let mut client = server.client();
    for pause in ["1", "0"] {
        client.ok(&format!("DEBUG PAUSE-CRON {pause}"));
        if pause == "1" {
            server.signal("TERM");
            server.wait_for_log("Received SIGTERM");
        }
        client.ok("SET k v");
        let reply = client.ask("SHUTDOWN ABORT");
        let expected = if pause == "1" { "OK" } else { "ERR No shutdown in progress." };
        assert_eq!(reply.text(), expected);
    }
    client.ok("DEBUG PAUSE-CRON 1");
    server.signal("TERM");
    client.ok("SET k v");
    client.ok("DEBUG PAUSE-CRON 0");
    assert!(server.wait().success());
}

/// Removes all keys, and goes on with other keys.
const EMPTIES: &str = "local done = redis.call('FLUSHALL')
    for at = 1, 5 do redis.call('SET', 'new:' .. at, '1') end return done";

#[test]
fn shutdown_keeps_no_keys_from_before_a_scripts_flushall() {
    let library = format!("#!lua name=lib\nredis.register_function('f', function() {EMPTIES} end)");
    let eval: &[&[u8]] = &[b"EVAL", EMPTIES.as_bytes(), b"0"];
    let fcall: &[&[u8]] = &[b"FCALL", b"f", b"0"];
    for (words, how, key_delay_us, kept) in [
        // Each save after FLUSHALL takes minutes, or a second.
        (eval, "SHUTDOWN NOSAVE", "100000000", 0),
        (fcall, "SHUTDOWN NOSAVE NOW FORCE", "100000000", 0),
        (eval, "SHUTDOWN", "200000", 5),
    ] {
        let mut server = start(&["--save", "3600 1000000"]);
        let mut others = std::iter::repeat_with(|| server.client());
        // Otherwise the main thread would not read the signal that ends it.
        let mut runner = others.find_map(|mut it| (thread_of(&mut it) != "0").then_some(it));
        let (mut runner, mut other) = (runner.take().unwrap(), server.client());
        assert_eq!(other.ask_args(&[b"FUNCTION", b"LOAD", library.as_bytes()]).text(), "lib");
        other.ok("SET old 1");
        other.ok("SAVE");
        other.ok(&format!("CONFIG SET rdb-key-save-delay {key_delay_us}"));
        runner.send_raw(&encode(words));
        let is_temporary = |name: &str| name.starts_with("temp-");
        eventually("it saves", || {
            let mut files = std::fs::read_dir(server.folder()).unwrap();
            files.any(|file| is_temporary(&file.unwrap().file_name().to_string_lossy()))
        });
        other.send(how);
        assert_eq!(runner.read().text(), "OK", "{}", server.log());
        assert!(server.wait().success());
        let options = ["--save", "3600 1000000"];
        let server = Server::start_in(server.into_folder(), &options);
        assert_eq!(server.client().ask("EXISTS old").int(), 0, "{how}");
        assert_eq!(server.client().ask("DBSIZE").int(), kept, "{how}");
    }
}

#[test]
fn a_script_killed_after_flushall_leaves_no_keys_in_the_file() {
    let script = b"redis.call('flushall') redis.call('set', 'half', '1') while true do end";
    let options = ["--save", "3600 1000000", "--busy-reply-threshold", "1"];
    let mut server = start(&options);
    let mut other = server.client();
    other.ok("SET old 1");
    other.ok("SAVE");
    let mut runner = server.client();
    runner.send_raw(&encode(&[b"EVAL", script, b"0"]));
    eventually("it is busy", || other.ask("GET old").text() == BUSY);
    other.send("SHUTDOWN NOSAVE");
    assert!(server.wait().success());
    assert!(runner.try_read().is_err(), "it is not answered");
    let server = Server::start_in(server.into_folder(), &options[..2]);
    assert_eq!(server.client().ask("DBSIZE").int(), 0);
}
