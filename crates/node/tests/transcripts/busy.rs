//! A script on another thread that has run for too long: commands that need its shard get BUSY, and
//! work without a reply is deferred until the script ends.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::check::run;
use crate::fake::TestServer;

/// A server on which a busy script holds the key `held`.
fn busy() -> TestServer {
    let mut server = TestServer::new(1024);
    run(&mut server, "> MSET held 1 free 2\nOK\n");
    server.begin_busy_script(Some("held"));
    server
}

#[test]
fn only_commands_that_need_its_keys_are_refused() {
    run(
        &mut busy(),
        r#"
> GET free -> "2"
> GET held
-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
> SET held 1 -> ~~ -BUSY *
> MGET free held -> ~~ -BUSY *
> MGET free other -> ["2", nil]
> BLPOP other held 0 -> ~~ -BUSY *
> KEYS * -> ~~ -BUSY *
> KEYS free -> ["free"]
> FLUSHALL -> ~~ -BUSY *
> SORT free BY * -> ~~ -BUSY *
> EVAL "return redis.call('GET', KEYS[1])" 1 held -> ~~ -BUSY *
> DBSIZE -> 2
> PING -> PONG
> SHUTDOWN -> ~~ -BUSY *
> CLIENT REPLY SKIP
> GET held
> GET free -> "2"
"#,
    );
}

#[test]
fn a_script_that_needs_a_held_shard_gets_an_error() {
    let mut server = busy();
    let node = Arc::clone(&server.node);
    // Like a script that may wait for shards.
    let exclusive = node.scripting.exclusive.lock();
    run(
        &mut server,
        r#"
> EVAL "return redis.call('GET', KEYS[1])" 1 free -> ~~ -BUSY *
> MULTI -> OK
> EVAL "return redis.call('GET', 'free')" 0 -> QUEUED
> EXEC -> ~~ -EXECABORT Transaction discarded because of: BUSY *
> MULTI -> OK
> SCRIPT EXISTS x -> QUEUED
> EXEC -> ~~ -EXECABORT Transaction discarded because of: BUSY *
> SCRIPT FLUSH -> ~~ -BUSY *
> SCRIPT LOAD "return 1" -> ~~ -BUSY *
> FUNCTION LOAD x -> ~~ -BUSY *
> FUNCTION RESTORE x -> ~~ -BUSY *
> FUNCTION DELETE l -> ~~ -BUSY *
> FUNCTION FLUSH -> ~~ -BUSY *
> SCRIPT EXISTS x -> [0]
> FUNCTION LIST -> []
"#,
    );
    drop(exclusive);
    server.end_busy_script();
    run(&mut server, "> EVAL \"return redis.call('GET', KEYS[1])\" 1 free\n\"2\"\n");
    // A script that uses only its declared keys does not wait.
    server.begin_busy_script(Some("held"));
    let _exclusive = node.scripting.exclusive.lock();
    run(
        &mut server,
        r#"
> EVAL "return redis.call('GET', KEYS[1])" 1 free -> "2"
> EVAL "return redis.call('GET', KEYS[1])" 1 held -> ~~ -BUSY *
"#,
    );
}

#[test]
fn transactions_that_need_its_keys_are_refused() {
    run(
        &mut busy(),
        r#"
> MULTI -> OK
> GET held -> QUEUED
> EXEC
-EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. You can only call
   SCRIPT KILL or SHUTDOWN NOSAVE.
> EXEC -> -ERR EXEC without MULTI
> WATCH free -> OK
> MULTI -> OK
> GET free -> QUEUED
> EXEC -> ["2"]
> MULTI -> OK
> FLUSHALL -> QUEUED
> EXEC -> ~~ -EXECABORT *
"#,
    );
}

#[test]
fn watched_keys_stop_exec() {
    let mut server = TestServer::new(1024);
    run(&mut server, "w> WATCH held free\nw< OK\nu> WATCH held free\nu< OK\n");
    server.begin_busy_script(Some("held"));
    run(
        &mut server,
        r#"
> WATCH held -> OK
> MULTI -> OK
> GET free -> QUEUED
> EXEC -> ~~ -EXECABORT *
> WATCH held -> OK
w> MULTI -> OK
w> PING -> QUEUED
w> EXEC -> ~~ -EXECABORT *
u> UNWATCH -> OK
u> MULTI -> OK
u> PING -> QUEUED
u> EXEC -> [PONG]
"#,
    );
    assert!(server.has_deferred());
    server.end_busy_script();
    // A WATCH that started meanwhile may have missed a change.
    run(&mut server, "> MULTI\nOK\n> GET free\nQUEUED\n> EXEC\nnil-array\n> SET held 3\nOK\n");
    run(&mut server, "u> WATCH held\nu< OK\nu> MULTI\nu< OK\nu> GET held\nu< QUEUED\n");
    run(&mut server, "u> EXEC\nu< [\"3\"]\n");
}

#[test]
fn an_unwatch_is_not_deferred_for_a_shard_without_the_watch() {
    let mut server = TestServer::new(1024);
    server.begin_busy_script(Some("held"));
    for end in ["UNWATCH\nOK\n", "MULTI\nOK\n> DISCARD\nOK\n"] {
        run(&mut server, &format!("> WATCH held free held\nOK\n> {end}"));
        assert!(!server.has_deferred(), "{end}");
    }
    run(&mut server, "> WATCH held\nOK\n@close a\n");
    assert!(!server.has_deferred());
    server.end_busy_script();
}

#[test]
fn deferred_work_is_done_in_parts() {
    let mut server = TestServer::new(1024);
    for client in 0..1000 {
        run(&mut server, &format!("c{client}> WATCH held\nc{client}< OK\n"));
    }
    server.begin_busy_script(Some("held"));
    for client in 0..1000 {
        run(&mut server, &format!("@close c{client}\n"));
    }
    let parts = server.catch_up_after_busy_script();
    assert!((3..20).contains(&parts), "{parts}");
}

#[test]
fn a_blocked_client_leaves_when_the_script_ends() {
    let mut server = TestServer::new(1024);
    run(&mut server, "b> BLPOP held other 1\nc> BLPOP held other 0\n");
    server.begin_busy_script(Some("held"));
    run(
        &mut server,
        r#"
@advance 1500
b<
@close c
> RPUSH other element -> 1
> LPOP other -> "element"
b<
"#,
    );
    server.end_busy_script();
    run(
        &mut server,
        r#"
@advance 20
b< nil-array
b> BLPOP held 0
> RPUSH other element -> 1
b<
> RPUSH held element -> 1
b< ["held", "element"]
"#,
    );
}

#[test]
fn a_client_served_by_another_key_leaves_when_the_script_ends() {
    let mut server = TestServer::new(1024);
    run(&mut server, "b> BLPOP held other 0\n");
    server.begin_busy_script(Some("held"));
    run(&mut server, "> RPUSH other element\n1\n> LLEN other\n0\nb<\n");
    server.end_busy_script();
    run(&mut server, "@advance 20\nb< [\"other\", \"element\"]\n");
}

#[test]
fn behind_a_closed_gate_a_script_has_all_shards() {
    let mut server = busy();
    server.end_busy_script();
    server.begin_busy_script(None);
    run(&mut server, "> GET free\n~~ -BUSY *\n> WATCH free\nOK\n> RESET\nRESET\n");
    server.end_busy_script();
    run(&mut server, "> GET free\n\"2\"\n");
}

type Work = Box<dyn FnOnce()>;

/// A script that uses only its declared keys runs in parallel to others. When it needs a shard that
/// another script holds, it starts again with exclusive access.
#[test]
fn a_kill_before_the_retry_of_a_script_counts() {
    for lets_go in [true, false] {
        kill_before_it_begins_again(lets_go);
    }
}

/// The thread that holds the exclusive slot must release it, so that the script does not start
/// later.
fn kill_before_it_begins_again(lets_go: bool) {
    let mut server = TestServer::new(1024);
    let script =
        "EVAL \"for i = 1, 1e5 do end if ARGV[1] then redis.pcall('GET', 'held') end\" 1 key";
    run(&mut server, &format!("> {script}\nnil\n"));
    server.begin_busy_script(Some("held"));
    // Another thread holds the exclusive slot.
    let (begun, is_held) = channel();
    let (release, released) = channel::<()>();
    let node = Arc::clone(&server.node);
    let other = std::thread::spawn(move || {
        let exclusive = node.scripting.exclusive.lock();
        begun.send(()).expect("the test waits for it");
        let _ = released.recv();
        drop(exclusive);
    });
    is_held.recv().expect("it locks the mutex");
    let node = Arc::clone(&server.node);
    let kill = move || {
        node.scripting.busy.end(1);
        let running = node.scripting.candidates();
        assert!(running.iter().all(|running| running.kill_state.kill()) && running.len() == 1);
    };
    let let_go = move || {
        drop(release);
        other.join().expect("it has not failed");
    };
    let (now, later): (Work, Work) = match lets_go {
        true => (Box::new(let_go), Box::new(|| ())),
        false => (Box::new(|| ()), Box::new(let_go)),
    };
    server.meanwhile(kill, now);
    server.look_takes(Duration::from_micros(100));
    run(&mut server, &format!("> {script} again\n~~ -ERR Script killed by user *\n"));
    later();
}

/// Keys of different shards.
fn keys_of_different_shards(server: &TestServer, count: usize) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in (0..).map(|number| format!("k{number}")) {
        if keys.len() == count {
            break;
        }
        if keys.iter().all(|other| server.shard_of(other) != server.shard_of(&key)) {
            keys.push(key);
        }
    }
    keys
}

/// Sends EVAL of a script that reads these undeclared keys in order. Returns the reply.
fn read_in_order(server: &mut TestServer, keys: &[String]) -> String {
    let calls = keys.iter().map(|key| format!("redis.call('GET', '{key}') "));
    let script = format!("{} return 'read'", calls.collect::<String>());
    let request = ["EVAL", &script, "0"].map(|word| word.as_bytes().to_vec());
    String::from_utf8(server.request("a", &request).0).expect("it is text")
}

/// Commands that follow one another hold the keys in turn. The script needs all of them at once, so
/// it does not give up the ones that it has waited for.
#[test]
fn a_deferred_script_keeps_the_undeclared_keys_that_it_needs() {
    let mut server = TestServer::new(1024);
    let keys = keys_of_different_shards(&server, 2);
    for round in 0..50 {
        server.set_slow(Some(&keys[round % 2]));
        assert_eq!(read_in_order(&mut server, &keys), "", "it is deferred");
        let needed = &keys[..(round + 1).min(2)];
        assert!(server.take_needed(needed), "in round {round} it does not ask for {needed:?}");
    }
    server.set_slow(None);
    assert_eq!(read_in_order(&mut server, &keys), "$4\r\nread\r\n");
    let info = ["INFO", "stats"].map(|word| word.as_bytes().to_vec());
    let info = String::from_utf8(server.request("a", &info).0).expect("it is text");
    assert!(info.contains("\r\ntotal_error_replies:0\r\n"), "{info}");
    // The next request of the client is another one.
    server.take_most_held();
    assert_eq!(read_in_order(&mut server, &[]), "$4\r\nread\r\n");
    assert_eq!(server.take_most_held(), 0);
}

#[test]
fn a_script_that_needs_ever_further_keys_waits_for_them_in_the_end() {
    let mut server = TestServer::new(1024);
    let keys = keys_of_different_shards(&server, 20);
    for key in &keys[..8] {
        server.set_slow(Some(key));
        assert_eq!(read_in_order(&mut server, &keys), "", "it is deferred");
    }
    server.take_most_held();
    server.set_slow(Some(&keys[8]));
    server.end_slow_when_refused();
    assert_eq!(read_in_order(&mut server, &keys), "$4\r\nread\r\n");
    assert_eq!(server.take_most_held(), 8, "it has begun again");
}
