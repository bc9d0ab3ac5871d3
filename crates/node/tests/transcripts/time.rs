//! The time that commands see: a command starts when the previous one ends, even within a turn.

use std::time::Duration;

use crate::check::run;
use crate::fake::TestServer;

/// A server whose next commands all belong to one turn.
fn one_turn() -> TestServer {
    let mut server = TestServer::new(4);
    run(&mut server, "> PING\nPONG\n");
    server.in_one_turn = true;
    server
}

#[test]
fn a_command_starts_when_the_previous_one_ends() {
    let mut server = one_turn();
    server.host.ticks.set(400_000);
    run(&mut server, "> ECHO slow\n\"slow\"\n> ECHO slow\n\"slow\"\n");
    server.host.ticks.set(0);
    let text = r#"
> SET k v PX 300 -> OK
> PEXPIRETIME k -> 1700000001100
> PTTL k -> 300
> TIME -> ["1700000000", "800000"]
a> BLPOP nokey 0.3
"#;
    run(&mut server, text);
    server.in_one_turn = false;
    // The wait started at 800 ms, while the transcript's clock shows 0.
    run(&mut server, "@advance 1100\na<\n@advance 1\na< nil-array\n");
}

#[test]
fn short_commands_add_up() {
    let mut server = one_turn();
    server.host.ticks.set(100);
    for _ in 0..30 {
        run(&mut server, "> ECHO short\n\"short\"\n");
    }
    server.host.ticks.set(0);
    run(&mut server, "> SET k v PX 300\nOK\n> PEXPIRETIME k\n1700000000303\n");
}

#[test]
fn an_expiry_that_passes_within_a_turn_is_seen() {
    let mut server = one_turn();
    run(&mut server, "> SET k v PX 300\nOK\n");
    server.host.ticks.set(400_000);
    run(&mut server, "> ECHO slow\n\"slow\"\n> GET k\nnil\n");
}

#[test]
fn a_waiting_command_starts_when_it_has_its_shards() {
    let expiry = "> PEXPIRETIME k\n1700000000700\n";
    for command in ["SET k v PX 300\nOK", "MSETEX 2 k v l v PX 300\n1"] {
        let mut server = TestServer::new(4);
        run(&mut server, "> PING\nPONG\n");
        server.in_one_turn = true;
        server.delay_next(Duration::from_millis(400));
        run(&mut server, &format!("> {command}\n{expiry}"));
    }
    let mut server = TestServer::new(4);
    server.delay_next(Duration::from_millis(400));
    run(&mut server, "> TIME\n[\"1700000000\", \"400000\"]\n");
    server.delay_next(Duration::from_millis(400));
    run(&mut server, "a> BLPOP nokey 0.3\n@advance 700\na<\n@advance 1\na< nil-array\n");
}

#[test]
fn time_does_not_run_backwards_between_two_turns() {
    let mut server = TestServer::new(1);
    server.host.ticks.set(700);
    run(&mut server, "> ECHO short\n\"short\"\n");
    server.host.ticks.set(0);
    // The next turn's clock is slower by less than the permitted difference.
    run(
        &mut server,
        "> TIME\n[\"1700000000\", \"700\"]\n@advance 1\n> TIME\n[\"1700000000\", \"1000\"]\n",
    );
}
