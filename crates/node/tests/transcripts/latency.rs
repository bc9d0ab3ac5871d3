//! LATENCY, `# Latencystats` of INFO, and the parameters of both.

use std::time::Duration;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn no_event_is_recorded_without_a_threshold() {
    check(
        r##"
> LATENCY LATEST -> []
> LATENCY HISTORY command -> []
> LATENCY RESET -> 0
> LATENCY RESET command fast-command -> 0
> LATENCY GRAPH command -> -ERR No samples available for event 'command'
> LATENCY GRAPH -> -ERR wrong number of arguments for 'latency|graph' command
> LATENCY HISTORY -> -ERR wrong number of arguments for 'latency|history' command
> LATENCY LATEST x -> -ERR wrong number of arguments for 'latency|latest' command
> LATENCY DOCTOR x -> -ERR wrong number of arguments for 'latency|doctor' command
> LATENCY NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try LATENCY HELP.
> LATENCY -> -ERR wrong number of arguments for 'latency' command
> LATENCY DOCTOR -> ~~ "?*latency-monitor-threshold*"
> LATENCY HELP -> ~~ \[LATENCY <subcommand> *
"##,
    );
}

#[test]
fn slow_events_are_recorded() {
    let mut server = TestServer::new(1);
    run(&mut server, "> CONFIG SET latency-monitor-threshold 20\nOK\n");
    server.host.ticks.set(25_000);
    run(&mut server, "> SET k v\nOK\n> GET k\n\"v\"\n> GET k\n\"v\"\n");
    server.host.ticks.set(30_999);
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    run(&mut server, &format!("@advance 4000\n> SORT k\n{wrong_type}\n"));
    server.host.ticks.set(41_000);
    run(&mut server, "> GET k\n\"v\"\n");
    server.host.ticks.set(19_999);
    run(
        &mut server,
        r##"
> LATENCY LATEST -> [["command", 1700000004, 30, 30], ["fast-command", 1700000004, 41, 41]]
> LATENCY HISTORY command -> [[1700000000, 25], [1700000004, 30]]
> LATENCY HISTORY fast-command -> [[1700000000, 25], [1700000004, 41]]
> LATENCY HISTORY FAST-COMMAND -> []
> LATENCY GRAPH command
~~ "command - high 30 ms, low 25 ms (all time high 30 ms)\\n--------*--\\n #\\n |\\n |\\n_|\\n  \\n
  40\\nss\\n"
> LATENCY DOCTOR -> ~~ "command: 2 events, *"
> LATENCY RESET nosuch FAST-command -> 1
> LATENCY LATEST -> [["command", 1700000004, 30, 30]]
> HELLO 3 -> ~~ {*
> LATENCY DOCTOR -> ~~ =txt:command: *
> LATENCY GRAPH command -> ~~ =txt:command - high *
> LATENCY RESET -> 1
> CONFIG SET latency-monitor-threshold 0 -> OK
"##,
    );
    server.host.ticks.set(1_000_000);
    run(&mut server, "> GET k\n\"v\"\n> LATENCY LATEST\n[]\n");
}

#[test]
fn evictions_are_events() {
    let mut server = TestServer::new(1);
    run(
        &mut server,
        "> CONFIG SET latency-monitor-threshold 20 maxmemory-policy allkeys-random
OK
> SET a 1 -> OK
> SET b 1 -> OK
> CONFIG SET maxmemory 1001500 -> OK
> LATENCY RESET -> 0
",
    );
    server.look_takes(Duration::from_millis(30));
    run(&mut server, "> SET c 1\nOK\n> SET d 1\nOK\n");
    server.look_takes(Duration::ZERO);
    run(
        &mut server,
        r##"
> LATENCY HISTORY evict-del -> [[1700000000, 30]]
> LATENCY HISTORY eviction-cycle -> [[1700000000, 90]]
> LATENCY DOCTOR -> ~~ *evict-del: 1 events*eviction-cycle: 1 events*below maxmemory*
"##,
    );
}

#[test]
fn the_slow_log_has_a_threshold_of_its_own() {
    let mut server = TestServer::new(1);
    run(&mut server, "> CONFIG SET latency-monitor-threshold 5 slowlog-log-slower-than -1\nOK\n");
    server.host.ticks.set(6_000);
    run(&mut server, "> GET k\nnil\n> SLOWLOG LEN\n0\n");
    run(
        &mut server,
        "> CONFIG SET latency-monitor-threshold 50 slowlog-log-slower-than 3000\nOK\n",
    );
    run(&mut server, "> LATENCY RESET\n2\n> SLOWLOG LEN\n2\n> LATENCY LATEST\n[]\n");
}

#[test]
fn the_latencies_of_commands_are_recorded() {
    let mut server = TestServer::new(1);
    run(&mut server, "> LATENCY HISTOGRAM nosuch\n[]\n> LATENCY HISTOGRAM get\n[]\n");
    server.host.ticks.set(5);
    run(
        &mut server,
        "> SET k v\nOK\n> GET k\n\"v\"\n> GET k\n\"v\"\n> CONFIG GET hz\n[\"hz\", \"10\"]\n",
    );
    server.host.ticks.set(40);
    run(&mut server, "> GET k\n\"v\"\n");
    server.host.ticks.set(3_000_000);
    run(&mut server, "> GET k\n\"v\"\n");
    server.host.ticks.set(0);
    run(
        &mut server,
        r##"
> LATENCY HISTOGRAM get GET set nosuch
["get", ["calls", 4, "histogram_usec", [8, 2, 66, 3, 1082130, 4]], "get", ["calls", 4, "histogram_
  usec", [8, 2, 66, 3, 1082130, 4]], "set", ["calls", 1, "histogram_usec", [8, 1]]]
> LATENCY HISTOGRAM config -> ["config|get", ["calls", 1, "histogram_usec", [8, 1]]]
> LATENCY HISTOGRAM CONFIG|get config|set config|
["config|get", ["calls", 1, "histogram_usec", [8, 1]]]
> LATENCY HISTOGRAM latency|histogram
~~ \["latency|histogram", \["calls", *, "histogram_usec", \[1, *\]\]\]
> HELLO 3 -> ~~ {*
> LATENCY HISTOGRAM set -> {"set": {"calls": 1, "histogram_usec": {8: 1}}}
> HELLO 2 -> ~~ \[*
> INFO latencystats
~~ "# Latencystats\\r\\nlatency_percentiles_usec_get:p50=5.000,p99=*,p99.9=*\\r\\nlatency_percentil
  es_usec_set:p50=5.000,p99=5.000,p99.9=5.000\\r\\n*latency_percentiles_usec_config|get:p50=5.000,p9
  9=5.000,p99.9=5.000\\r\\n*
> CONFIG SET latency-tracking-info-percentiles "0 75.5 100" -> OK
> CONFIG RESETSTAT -> OK
> LATENCY HISTOGRAM get -> []
> SET k v -> OK
> INFO latencystats -> ~~ "*latency_percentiles_usec_set:p0=0.000,p75.5=0.000,p100=0.000\\r\\n*
> CONFIG SET latency-tracking no -> OK
> SET k v -> OK
> INFO latencystats
"# Latencystats\r\n"
> LATENCY HISTOGRAM set -> ["set", ["calls", 1, "histogram_usec", [1, 1]]]
> CONFIG SET latency-tracking-info-percentiles "" -> OK
> CONFIG GET latency-tracking* -> ~~ \[*"latency-tracking-info-percentiles", ""*
"##,
    );
}

#[test]
fn percentiles_are_checked() {
    check(
        r##"
> CONFIG GET latency-*
["latency-monitor-threshold", "0", "latency-tracking", "yes", "latency-tracking-info-percentiles",
   "50 99 99.9"]
> CONFIG SET latency-tracking-info-percentiles "50.0 x"
-ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') - Invalid
   latency-tracking-info-percentiles parameters
> CONFIG SET latency-tracking-info-percentiles "50.0 101"
-ERR CONFIG SET failed (possibly related to argument 'latency-tracking-info-percentiles') - latency
  -tracking-info-percentiles parameters should sit between [0.0,100.0]
> CONFIG SET latency-monitor-threshold -1
-ERR CONFIG SET failed (possibly related to argument 'latency-monitor-threshold') - argument must be
   between 0 and 9223372036854775807 inclusive
> CONFIG SET latency-tracking-info-percentiles "50.00 100" -> OK
> CONFIG GET latency-tracking-info-percentiles -> ["latency-tracking-info-percentiles", "50 100"]
"##,
    );
}
