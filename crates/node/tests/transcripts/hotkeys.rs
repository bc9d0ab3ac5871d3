//! HOTKEYS, which Redis has from version 8.6 on.

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn the_options_of_a_session_are_checked() {
    check(
        r##"
> HOTKEYS GET -> nil
> HOTKEYS STOP -> nil
> HOTKEYS RESET -> OK
> HOTKEYS START -> -ERR METRICS parameter is required
> HOTKEYS START METRICS -> -ERR METRICS parameter is required
> HOTKEYS START COUNT 1 METRICS 1 CPU -> -ERR METRICS parameter is required
> HOTKEYS START METRICS 0 -> -ERR METRICS count must be > 0 and <= 2
> HOTKEYS START METRICS 3 CPU NET -> -ERR METRICS count must be > 0 and <= 2
> HOTKEYS START METRICS x CPU -> -ERR METRICS count must be > 0 and <= 2
> HOTKEYS START METRICS 2 CPU -> -ERR METRICS count does not match number of metric types provided
> HOTKEYS START METRICS 1 GPU -> -ERR METRICS no valid metrics passed. Supported: CPU|NET
> HOTKEYS START METRICS 2 cpu CPU -> -ERR METRICS CPU defined more than once!
> HOTKEYS START METRICS 2 NET net -> -ERR METRICS NET defined more than once!
> HOTKEYS START METRICS 1 CPU NET -> -ERR syntax error
> HOTKEYS START METRICS 1 CPU COUNT -> -ERR syntax error
> HOTKEYS START METRICS 1 CPU NOSUCH 1 -> -ERR syntax error
> HOTKEYS START METRICS 1 CPU COUNT 0 -> -ERR COUNT must be between 1 and 64
> HOTKEYS START METRICS 1 CPU COUNT 65 -> -ERR COUNT must be between 1 and 64
> HOTKEYS START METRICS 1 CPU DURATION 0 -> -ERR DURATION must be between 1 and 1000000
> HOTKEYS START METRICS 1 CPU DURATION 1000001 -> -ERR DURATION must be between 1 and 1000000
> HOTKEYS START METRICS 1 CPU SAMPLE 0 -> -ERR SAMPLE ratio must be positive
> HOTKEYS START METRICS 1 CPU SLOTS 1 0 -> -ERR SLOTS parameter cannot be used in non-cluster mode
> HOTKEYS GET x -> -ERR wrong number of arguments for 'hotkeys|get' command
> HOTKEYS NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try HOTKEYS HELP.
> HOTKEYS HELP -> ~~ \[HOTKEYS <subcommand> *
> HOTKEYS START METRICS 2 GPU CPU -> OK
> HOTKEYS START METRICS 1 NET -> -ERR hotkey tracking session already in progress
> HOTKEYS RESET -> -ERR hotkey tracking session in progress, stop tracking first
> HOTKEYS STOP -> OK
> HOTKEYS STOP -> nil
> HOTKEYS RESET -> OK
> HOTKEYS GET -> nil
"##,
    );
}

#[test]
fn keys_are_measured() {
    let mut server = TestServer::new(4);
    run(&mut server, "> SET before 1\nOK\n> HOTKEYS START METRICS 2 CPU NET\nOK\n");
    server.host.ticks.set(100);
    run(
        &mut server,
        r##"
> SET a 1 -> OK
> MSET a 1 b 2 -> OK
> PING -> PONG
> GET b -> "2"
> EVAL "return redis.call('get', 'a')" 1 a -> "1"
> MULTI -> OK
> GET c -> QUEUED
> EXEC -> [nil]
"##,
    );
    server.host.ticks.set(0);
    // SET a 1: 27 + 5 bytes. MSET a 1 b 2: 42 + 5. GET b: 20 + 7. EVAL: 64 + 7. GET c: 20 + 5.
    run(
        &mut server,
        r##"
@advance 250
> HOTKEYS GET
[["tracking-active", 1, "sample-ratio", 1, "selected-slots", [[0, 16383]],
   "all-commands-all-slots-us", 400, "net-bytes-all-commands-all-slots", 202,
   "collection-start-time-unix-ms", 1700000000000, "collection-duration-ms", 250,
   "total-cpu-time-user-ms", 0, "total-cpu-time-sys-ms", 0, "total-net-bytes", 201,
   "by-cpu-time-us", ["a", 250, "b", 150], "by-net-bytes", ["a", 126, "b", 50, "c", 25]]]
> HOTKEYS STOP -> OK
> GET a -> "1"
@advance 1000
> HELLO 3 -> ~~ {*
> HOTKEYS GET
~~ \[{"tracking-active": 0, *"collection-duration-ms": 250, *"total-net-bytes": 201, *
> HOTKEYS START METRICS 1 NET COUNT 1 -> OK
> GET a -> "1"
> GET bbbbbbbb -> nil
> HOTKEYS GET -> ~~ \[{"tracking-active": 1, *"by-net-bytes": \["bbbbbbbb", ??\]}\]
"##,
    );
}

#[test]
fn info_shows_the_session_until_it_is_reset() {
    run(
        &mut TestServer::new(4),
        r##"
> INFO hotkeys -> ""
> HOTKEYS START METRICS 2 CPU NET -> OK
> SET k v -> OK
> INFO hotkeys
~~ "# Hotkeys\\r\\ntracking-active:1\\r\\nused-memory:??*\\r\\ncpu-time:0\\r\\n"
> INFO all -> ~~ *used_cpu_user_main_thread:*# Hotkeys\\r\\ntracking-active:1*# Modules*
> INFO -> ~~ *# CPU\\r\\n*# Hotkeys\\r\\ntracking-active:1*# Modules*
> HOTKEYS STOP -> OK
> INFO everything -> ~~ *# Hotkeys\\r\\ntracking-active:0*
> HOTKEYS RESET -> OK
> INFO hotkeys -> ""
"##,
    );
}

#[test]
fn a_session_ends_after_its_duration() {
    run(
        &mut TestServer::new(1),
        r##"
> HOTKEYS START METRICS 1 NET DURATION 2 SAMPLE 1000000000 -> OK
> SET k v -> OK
@advance 1999
> HOTKEYS GET
~~ \[\["tracking-active", 1, "sample-ratio", 1000000000, *"net-bytes-all-commands-all-slots", 32
  , *"total
  -net-bytes", 0, "by-net-bytes", \[\]\]\]
@advance 1
> SET k v -> OK
> HOTKEYS GET
~~ \[\["tracking-active", 0, *"net-bytes-all-commands-all-slots", 32, *"collection-duration-ms"
  , 2000, *
> HOTKEYS STOP -> nil
> HOTKEYS RESET -> OK
"##,
    );
}
