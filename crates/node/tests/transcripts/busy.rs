//! A script on another thread that has run for too long: who needs what it holds is told so, and
//! what is no answer to anyone is done when it is over.

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
fn only_what_needs_its_keys_is_refused() {
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
fn a_script_is_told_what_it_needs() {
    let mut server = busy();
    let node = Arc::clone(&server.node);
    // As a script has it that may wait for shards.
    let alone = node.scripting.exclusive.lock();
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
    drop(alone);
    server.end_busy_script();
    run(&mut server, "> EVAL \"return redis.call('GET', KEYS[1])\" 1 free\n\"2\"\n");
    // What is known to keep to its keys waits for none.
    server.begin_busy_script(Some("held"));
    let _alone = node.scripting.exclusive.lock();
    run(
        &mut server,
        r#"
> EVAL "return redis.call('GET', KEYS[1])" 1 free -> "2"
> EVAL "return redis.call('GET', KEYS[1])" 1 held -> ~~ -BUSY *
"#,
    );
}

#[test]
fn transactions() {
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
fn watched_keys() {
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
    // Whoever began to watch it meanwhile may have missed a change.
    run(&mut server, "> MULTI\nOK\n> GET free\nQUEUED\n> EXEC\nnil-array\n> SET held 3\nOK\n");
    run(&mut server, "u> WATCH held\nu< OK\nu> MULTI\nu< OK\nu> GET held\nu< QUEUED\n");
    run(&mut server, "u> EXEC\nu< [\"3\"]\n");
}

#[test]
fn a_key_whose_shard_never_heard_of_the_watch_is_not_put_off() {
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
fn what_was_put_off_is_done_in_parts() {
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
fn who_is_blocked_leaves_when_it_is_over() {
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
fn who_is_served_elsewhere_has_it_when_it_is_over() {
    let mut server = TestServer::new(1024);
    run(&mut server, "b> BLPOP held other 0\n");
    server.begin_busy_script(Some("held"));
    run(&mut server, "> RPUSH other element\n1\n> LLEN other\n0\nb<\n");
    server.end_busy_script();
    run(&mut server, "@advance 20\nb< [\"other\", \"element\"]\n");
}

#[test]
fn behind_the_closed_gate_it_has_everything() {
    let mut server = busy();
    server.end_busy_script();
    server.begin_busy_script(None);
    run(&mut server, "> GET free\n~~ -BUSY *\n> WATCH free\nOK\n> RESET\nRESET\n");
    server.end_busy_script();
    run(&mut server, "> GET free\n\"2\"\n");
}

type Work = Box<dyn FnOnce()>;

/// A script that keeps to its keys until it needs one that another holds, runs beside others and
/// then begins again alone.
#[test]
fn a_script_is_killed_that_would_begin_again() {
    for lets_go in [true, false] {
        kill_before_it_begins_again(lets_go);
    }
}

/// Whether the thread lets go that holds what only one script may: otherwise it would begin later.
fn kill_before_it_begins_again(lets_go: bool) {
    let mut server = TestServer::new(1024);
    let script =
        "EVAL \"for i = 1, 1e5 do end if ARGV[1] then redis.pcall('GET', 'held') end\" 1 key";
    run(&mut server, &format!("> {script}\nnil\n"));
    server.begin_busy_script(Some("held"));
    // Another thread holds what only one script may.
    let (begun, is_held) = channel();
    let (release, released) = channel::<()>();
    let node = Arc::clone(&server.node);
    let other = std::thread::spawn(move || {
        let alone = node.scripting.exclusive.lock();
        begun.send(()).expect("the test waits for it");
        let _ = released.recv();
        drop(alone);
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
