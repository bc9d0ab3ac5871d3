//! Reports from given lines of INFO.

use std::time::{Duration, Instant};

use super::*;
use crate::top::host::HostLook;
use crate::top::view::TopView;

fn look(at: Instant, info: &str, host: Option<&[(&str, f64)]>) -> ServerLook {
    ServerLook {
        at,
        info: Info::parse(info),
        ping: Duration::from_micros(80),
        host: host.map(|cpu| HostLook {
            cpu: cpu.iter().map(|(name, seconds)| ((*name).to_owned(), *seconds)).collect(),
            processors: 4,
            idle: 0.0,
        }),
        slow: None,
        hot: None,
        io_threads: None,
    }
}

/// A report of two seconds.
fn report(before: &str, now: &str, hosts: Option<[&[(&str, f64)]; 2]>) -> TopReport {
    let start = Instant::now();
    let [first, last] = hosts.map_or([None, None], |hosts| hosts.map(Some));
    let before = look(start, before, first);
    let mut now = look(start + Duration::from_secs(2), now, last);
    // Two processors were free.
    if let Some(host) = &mut now.host {
        host.idle = 4.0;
    }
    TopReport::between(&before, &now)
}

const WEFT: [&str; 2] = [
    "weft_version:0.1.0\nredis_version:8.0.6\nprocess_id:7\n\
     io_thread_0:clients=0,reads=0,writes=0\n\
     io_thread_1:clients=5,reads=100,writes=100\nweft_thread_0:commands=10,busy_usec=1000\n\
     weft_thread_1:commands=1000,busy_usec=500000\ntotal_commands_processed:1010\n\
     keyspace_hits:10\nkeyspace_misses:0\ncmdstat_get:calls=1000,usec=2000,failed_calls=0\n",
    "weft_version:0.1.0\nredis_version:8.0.6\nprocess_id:7\n\
     io_thread_0:clients=0,reads=0,writes=0\n\
     io_thread_1:clients=5,reads=300,writes=500\nweft_thread_0:commands=10,busy_usec=1000\n\
     weft_thread_1:commands=3000,busy_usec=2400000\ntotal_commands_processed:3010\n\
     keyspace_hits:25\nkeyspace_misses:5\ncmdstat_get:calls=3000,usec=8000,failed_calls=4\n\
     cmdstat_config|get:calls=0,usec=0\nlatency_percentiles_usec_get:p50=1.5,p99=9.5\n\
     db0:keys=7,expires=0\ndb12:keys=3,expires=1\nrole:master\naof_enabled:1\n\
     aof_last_write_status:ok\n",
];

#[test]
fn rates_are_those_between_two_looks() {
    let report = report(WEFT[0], WEFT[1], None);
    assert_eq!(report.server, "Weft 0.1.0");
    assert!((report.commands_per_second - 1000.0).abs() < 1.0);
    let [main, io] = &report.threads[..] else { panic!("{:?}", report.threads) };
    assert_eq!((main.name.as_str(), main.busy), ("main", Some(0.0)));
    assert_eq!((io.name.as_str(), io.clients, io.cpu), ("1", Some(5.0), None));
    assert!((io.busy.unwrap_or(0.0) - 0.95).abs() < 0.01, "{io:?}");
    assert_eq!((io.reads_per_second, io.writes_per_second), (Some(100.0), Some(200.0)));
    assert_eq!(io.commands_per_second, Some(1000.0));
    let [get] = &report.commands[..] else { panic!("{:?}", report.commands) };
    assert_eq!((get.name.as_str(), get.per_second, get.mean_us), ("get", 1000.0, 3.0));
    assert_eq!((get.p50_us, get.p99_us, get.failed_per_second), (Some(1.5), Some(9.5), 2.0));
    assert_eq!((report.keys.count, report.keys.hit_rate), (10.0, Some(0.75)));
    assert!(report.files.append_only && report.files.append_only_ok);
    assert_eq!(report.verdict.limit, "I/O threads", "{:?}", report.verdict);
}

#[test]
fn counts_after_a_reset_are_no_rates() {
    let report = report(WEFT[1], WEFT[0], None);
    assert_eq!(report.commands_per_second, 0.0);
    assert_eq!(report.keys.hit_rate, None);
}

#[test]
fn threads_of_the_peers_are_found() {
    let redis = [
        "redis_version:8.0.6\nio_thread_0:clients=0,reads=0,writes=0\n\
         io_thread_1:clients=9,reads=100,writes=100\neventloop_duration_sum:0\n",
        "redis_version:8.0.6\nio_thread_0:clients=0,reads=0,writes=0\n\
         io_thread_1:clients=9,reads=300,writes=300\neventloop_duration_sum:1900000\n\
         total_commands_processed:400\n",
    ];
    let hosts: [&[(&str, f64)]; 2] =
        [&[("main", 1.0), ("1", 0.5)], &[("main", 2.9), ("1", 1.5), ("other", 0.1)]];
    let report_of_redis = report(redis[0], redis[1], Some(hosts));
    let [main, io] = &report_of_redis.threads[..] else { panic!("{:?}", report_of_redis.threads) };
    assert!((main.cpu.unwrap_or(0.0) - 0.95).abs() < 0.01, "{main:?}");
    assert!((main.busy.unwrap_or(0.0) - 0.95).abs() < 0.01, "{main:?}");
    assert_eq!((main.commands_per_second, io.commands_per_second), (Some(200.0), Some(0.0)));
    assert_eq!((io.cpu, io.busy, io.clients), (Some(0.5), None, Some(9.0)));
    assert_eq!(report_of_redis.verdict.limit, "main thread");

    // Its threads spin: their busy time says more than their CPU time.
    let valkey = [
        "server_name:valkey\nvalkey_version:9.1.2\nused_active_time_main_thread:0.5\n\
         used_active_time_io_thread_1:0.1\n",
        "server_name:valkey\nvalkey_version:9.1.2\nused_active_time_main_thread:1.1\n\
         used_active_time_io_thread_1:0.3\ntotal_commands_processed:400\n",
    ];
    let hosts: [&[(&str, f64)]; 2] = [&[("main", 0.0), ("1", 0.0)], &[("main", 2.0), ("1", 2.0)]];
    let report_of_valkey = report(valkey[0], valkey[1], Some(hosts));
    assert_eq!(report_of_valkey.server, "Valkey 9.1.2");
    let loads: Vec<_> = report_of_valkey.threads.iter().map(|thread| thread.busy).collect();
    assert!((loads[0].unwrap_or(0.0) - 0.3).abs() < 1e-9, "{loads:?}");
    assert!((loads[1].unwrap_or(0.0) - 0.1).abs() < 1e-9, "{loads:?}");
    assert_eq!(report_of_valkey.verdict.limit, "clients");
}

#[test]
fn texts_of_a_server_have_a_bounded_length() {
    let long = "k".repeat(70_000);
    let info = format!(
        "weft_version:{long}\nrole:a\u{1b}[2Jb\nio_thread_0:clients=0\nio_thread_{long}:clients=1\n\
         maxmemory:5\nmaxmemory_policy:{long}\ncmdstat_{long}:calls=9,usec=1\n"
    );
    let (before, mut now) = (look(Instant::now(), "", None), look(Instant::now(), &info, None));
    now.hot = Some(vec![HotKeyEntry { db: 0, key: long.clone(), requests_per_second: 1 }]);
    now.slow = Some(vec![SlowLogEntry { unix_seconds: i64::MIN, micros: -1, words: long }]);
    let text = TopView::new(&TopReport::between(&before, &now), "here", 0).text();
    assert!(text.contains("HOT KEYS") && text.contains("SLOW LOG") && text.contains("a.[2Jb"));
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(600), "{widest:?}");
}
