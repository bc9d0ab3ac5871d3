//! Tests of the metrics by name, and of the health.

use super::*;
use crate::config::EvictionPolicy;
use crate::state::refusals::Cause;

fn process() -> ProcessInfo {
    ProcessInfo { tsc_per_micro: 1000.0, uptime_seconds: 5, ..ProcessInfo::default() }
}

fn page(node: &Node) -> String {
    node.metrics(&process(), Time { unix_us: 1_700_000_000_000_000, steady_ms: 5000 })
}

/// The value of a sample, by its name and labels.
#[track_caller]
fn value(page: &str, sample: &str) -> f64 {
    let mut lines = page.lines();
    let found = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
}

#[test]
fn metrics_add_up_all_threads_since_the_start() {
    let node = Node::new(Config::default(), 1, 1);
    let get = node.table.find(b"get").map_or(0, |entry| usize::from(entry.index));
    let entries = node.table.entries().len();
    for thread in 0..2 {
        let counters = node.thread_counters(thread, entries);
        counters.commands[get].calls.add(2);
        counters.commands[get].record_latency(1_500);
        counters.commands[get].record_latency(40_000_000);
        counters.clients.set(3 + thread as u64);
        counters.busy_tsc.add(2_000_000_000);
        counters.denied_keys.add(1);
        counters.note_error("WRONGTYPE no");
    }
    node.reset_totals(0);
    let page = page(&node);
    for (sample, expected) in [
        ("weft_commands_total{command=\"get\"}", 4.0),
        ("weft_thread_commands_total{thread=\"1\"}", 2.0),
        ("weft_thread_clients{thread=\"1\"}", 4.0),
        ("weft_thread_busy_seconds_total{thread=\"0\"}", 2.0),
        ("weft_acl_denied_total{reason=\"key\"}", 2.0),
        ("weft_error_replies_total", 2.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"0.000001\"}", 0.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"0.000002\"}", 2.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"0.02\"}", 2.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"0.05\"}", 4.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"+Inf\"}", 4.0),
        ("weft_command_duration_seconds_count{command=\"get\"}", 4.0),
        ("process_start_time_seconds", 1_699_999_995.0),
        ("weft_keys{db=\"0\"}", 0.0),
    ] {
        assert_eq!(value(&page, sample), expected, "{sample} of\n{page}");
    }
    let sum = value(&page, "weft_command_duration_seconds_sum{command=\"get\"}");
    assert!((sum / 0.080_003 - 1.0).abs() < 0.01, "{sum}");
    assert!(!page.contains("command=\"set\""), "SET was not called");
}

#[test]
fn names_are_unique_and_follow_the_conventions() {
    let node = Node::new(Config::default(), 1, 1);
    let page = page(&node);
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut seen = Vec::new();
    for line in types {
        let (name, kind) = line.split_once(' ').unwrap_or_default();
        assert!(!seen.contains(&name), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.bytes().all(is_word), "{name}");
        assert!(name.starts_with("weft_") || name.starts_with("process_"), "{name}");
        for unit in ["_ms", "_usec", "_kb", "_percent"] {
            assert!(!name.contains(unit), "{name}: seconds, bytes and ratios");
        }
        seen.push(name);
    }
    assert!(seen.len() > 60, "{}", seen.len());
}

#[test]
fn health_gives_the_most_severe_reason() {
    let config = Config::default();
    let node = Node::new(config.clone(), 1, 1);
    assert_eq!(node.health(), Ok(()));
    let mut limited = config;
    limited.eviction.maxmemory = 1000;
    node.set_config(limited.clone());
    let own = node.used_memory.of_thread(0);
    node.used_memory.end_turn(&own, 1001, 1000);
    assert_eq!(node.health(), Err(Unwell::OutOfMemory));
    limited.eviction.maxmemory_policy = EvictionPolicy::AllKeysLru;
    node.set_config(limited);
    assert_eq!(node.health(), Ok(()));
    node.refuse_writes(Cause::AppendOnly, Some("MISCONF Errors writing".to_owned()));
    assert_eq!(node.health(), Err(Unwell::WritesRefused("MISCONF Errors writing".to_owned())));
    node.set_loading(true);
    assert_eq!(node.health(), Err(Unwell::Loading));
    node.pause_for_ever();
    assert_eq!(node.health(), Err(Unwell::Ending));
    node.end_pause_for_ever();
    node.set_loading(false);
    node.refuse_writes(Cause::AppendOnly, None);
    assert_eq!(node.health(), Ok(()));
}
