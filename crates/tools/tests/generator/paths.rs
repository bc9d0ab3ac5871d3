//! The load generator apart from plain load: at a limited rate while a server stalls, with a new
//! connection for each request, on the nodes of a cluster, and with an early end.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tools::Error;
use tools::bench::compare::{ComparedCase, ComparisonPlan, compare};
use tools::client::cluster::slot;
use tools::client::session::{Resp, ServerEndpoint};
use tools::load::drive::{drive, make_ready};
use tools::load::keys::{KeyPatterns, Law};
use tools::load::outcome::{WindowOutcome, WindowProgress, unobserved};
use tools::load::shape::{RequestShape, ValueSizes};
use tools::load::spec::LoadCommand;
use tools::load::spec::{LoadSpec, WindowExtent};
use tools::load::workload::names::{self, CONNECT};
use tools::servers::pin::Cpus;
use tools::servers::target::{Role, ServerTarget, TargetOrigin};

/// A server that answers each request, given as its words, on as many connections as come.
struct Mock {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Mock {
    fn start(reply: impl Fn(&[String]) -> String + Send + Sync + 'static) -> Mock {
        Mock::on(TcpListener::bind("127.0.0.1:0").unwrap(), reply)
    }

    fn on(
        listener: TcpListener,
        reply: impl Fn(&[String]) -> String + Send + Sync + 'static,
    ) -> Mock {
        let port = listener.local_addr().unwrap().port();
        let (connections, reply) = (Arc::new(AtomicUsize::new(0)), Arc::new(reply));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                let reply = Arc::clone(&reply);
                thread::spawn(move || answer(stream.unwrap(), &*reply));
            }
        });
        Mock { port, connections }
    }

    fn endpoint(&self) -> ServerEndpoint {
        ServerEndpoint::local(self.port)
    }
}

fn answer(mut stream: TcpStream, reply: &dyn Fn(&[String]) -> String) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 64 * 1024]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
        let mut replies = String::new();
        while let Some((words, len)) = request(&bytes) {
            replies.push_str(&reply(&words));
            bytes.drain(..len);
        }
        if stream.write_all(replies.as_bytes()).is_err() {
            return;
        }
    }
}

/// The first whole request, and its length.
fn request(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let line = |from: usize| {
        let end = from + bytes.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[from + 1..end]).unwrap().parse::<usize>().unwrap();
        Some((number, end + 2))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (len, start) = line(at)?;
        words.push(String::from_utf8_lossy(bytes.get(start..start + len)?).into_owned());
        at = start + len + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

fn load() -> LoadSpec {
    LoadSpec {
        clients: 4,
        threads: 2,
        warm_up: Duration::ZERO,
        extent: WindowExtent::Requests(200),
        shape: RequestShape { keys: 100, value_bytes: 8, ..RequestShape::default() },
        ..LoadSpec::default()
    }
}

fn row(name: &str) -> &'static tools::load::workload::Workload {
    names::find(name).unwrap()
}

/// A server that answers nothing for a while, 300 ms after the first request.
fn stalling(stall: Duration) -> Mock {
    let (first, lead) = (OnceLock::new(), Duration::from_millis(300));
    Mock::start(move |_| {
        let since = first.get_or_init(Instant::now).elapsed();
        if since >= lead && since < lead + stall {
            thread::sleep(lead + stall - since);
        }
        "+PONG\r\n".into()
    })
}

/// The requests that took this long.
fn as_late_as(outcome: &WindowOutcome, time: Duration) -> u64 {
    let values = outcome.latency.iter_recorded();
    let late = values.filter(|value| u128::from(value.value_iterated_to()) >= time.as_nanos());
    late.map(|value| value.count_at_value()).sum()
}

#[test]
fn requests_due_in_a_stall_have_waited_since() {
    let (stall, rate) = (Duration::from_millis(400), 500.0);
    let extent = WindowExtent::Time(Duration::from_millis(1200));
    let load = LoadSpec { rate: Some(rate), extent, ..load() };
    let endpoint = stalling(stall).endpoint();
    let outcome = drive(&endpoint, row("ping"), &load, None, &mut unobserved).unwrap();
    let longest = Duration::from_nanos(outcome.latency.max());
    assert!(longest >= stall - Duration::from_millis(50), "{longest:?}");
    // Of the 200 that were due in the stall, half waited for at least half of it.
    let late = as_late_as(&outcome, stall * 9 / 20);
    assert!(late >= 80, "{late}");
    // All that was due is in the latencies: nothing was left out because the server was busy.
    let due = (rate * outcome.wall.as_secs_f64()) as u64;
    assert!(outcome.latency.len() + 10 >= due, "{} of {due}", outcome.latency.len());
    // Without a limit of the rate each of the connections waits once.
    let endpoint = stalling(stall).endpoint();
    let load = LoadSpec { rate: None, ..load };
    let outcome = drive(&endpoint, row("ping"), &load, None, &mut unobserved).unwrap();
    let late = as_late_as(&outcome, stall * 9 / 20);
    assert!(late <= 20, "{late}");
}

#[test]
fn missing_replies_at_the_end_are_in_the_latencies() {
    let (stall, rate) = (Duration::from_millis(600), 200.0);
    let extent = WindowExtent::Time(Duration::from_millis(700));
    let load = LoadSpec { rate: Some(rate), extent, ..load() };
    let endpoint = stalling(stall).endpoint();
    let outcome = drive(&endpoint, row("ping"), &load, None, &mut unobserved).unwrap();
    // The window ends within the stall: 80 were due in it, and half of them waited for long.
    let late = as_late_as(&outcome, stall / 2);
    assert!(late >= 30, "{late}");
    assert!(outcome.requests < outcome.latency.len(), "{}", outcome.requests);
}

#[test]
fn a_window_has_only_requests_due_after_the_warm_up() {
    let (first, stall) = (OnceLock::new(), Duration::from_millis(1200));
    let server = Mock::start(move |_| {
        let since = first.get_or_init(Instant::now).elapsed();
        thread::sleep(stall.saturating_sub(since));
        "+PONG\r\n".into()
    });
    // The server answers nothing in the warm-up, in which 120 become due.
    let (rate, warm_up) = (200.0, Duration::from_millis(600));
    let extent = WindowExtent::Time(Duration::from_secs(1));
    let load = LoadSpec { rate: Some(rate), extent, warm_up, ..load() };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
    let (due, known) = (rate * outcome.wall.as_secs_f64(), outcome.latency.len() as f64);
    assert!((due - 10.0..due + 80.0).contains(&known), "{known} of {due}");
    assert!(outcome.requests <= outcome.latency.len(), "{}", outcome.requests);
    assert_eq!(outcome.warm_up, 4, "one on each connection");
    // The same of a number of requests.
    let server = Mock::start(|_| "+PONG\r\n".into());
    let load = LoadSpec {
        extent: WindowExtent::Requests(50),
        warm_up: Duration::from_millis(100),
        ..load
    };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len()), (50, 50));
}

/// A server that answers so many requests, and then nothing on connections that stay open.
fn falling_silent(answered: u64) -> Mock {
    let count = AtomicU64::new(0);
    Mock::start(move |_| match count.fetch_add(1, Ordering::Relaxed) < answered {
        true => "+PONG\r\n".into(),
        false => String::new(),
    })
}

#[test]
fn a_server_that_stops_answering_is_an_error_and_no_result() {
    let stall_time_max = Duration::from_millis(300);
    let extent = WindowExtent::Time(Duration::from_millis(100));
    let plain = LoadSpec { extent, stall_time_max, ..load() };
    // Whenever it falls silent, with a rate and without, in a time or in a number of requests.
    for load in [
        plain.clone(),
        LoadSpec { rate: Some(2000.0), ..plain.clone() },
        LoadSpec { extent: WindowExtent::Requests(1_000_000), ..plain.clone() },
        LoadSpec { pipeline: 7, ..plain.clone() },
    ] {
        for answered in [0, 4, 50] {
            let server = falling_silent(answered);
            let ended = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved);
            let error = ended.map(|outcome| outcome.requests).unwrap_err().to_string();
            assert!(error.contains("has not replied for "), "{error}");
        }
    }
    // An observer can end the wait.
    let (server, start) = (falling_silent(50), Instant::now());
    let load = LoadSpec { stall_time_max: Duration::from_secs(600), ..plain.clone() };
    let mut observe = |progress: &WindowProgress| match progress.share < 1.0 {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut observe).unwrap();
    assert!(outcome.interrupted && start.elapsed() < Duration::from_secs(60));
}

#[test]
fn replies_in_flight_at_the_end_are_awaited() {
    let (stall, extent) =
        (Duration::from_millis(600), WindowExtent::Time(Duration::from_millis(500)));
    let load = LoadSpec { extent, ..load() };
    let endpoint = stalling(stall).endpoint();
    let outcome = drive(&endpoint, row("ping"), &load, None, &mut unobserved).unwrap();
    // The window ends within the stall, and one request of each connection waits for all of it.
    assert_eq!(as_late_as(&outcome, stall - Duration::from_millis(50)), 4);
    assert_eq!(outcome.latency.len(), outcome.requests + 4);
    // A window lasts until something is answered.
    let slow = Mock::start(|_| {
        thread::sleep(Duration::from_millis(400));
        "+PONG\r\n".into()
    });
    let load = LoadSpec { extent: WindowExtent::Time(Duration::from_millis(50)), ..load };
    let outcome = drive(&slow.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
    assert!(outcome.requests >= 1 && outcome.wall >= Duration::from_millis(400), "{outcome:?}");
}

#[test]
fn a_rate_that_the_server_does_not_reach_ends_at_its_time() {
    for rate in [200_000.0, 4e9] {
        let server = Mock::start(|_| {
            thread::sleep(Duration::from_millis(1));
            "+PONG\r\n".into()
        });
        let (window, start) = (Duration::from_millis(400), Instant::now());
        let load = LoadSpec { rate: Some(rate), extent: WindowExtent::Time(window), ..load() };
        let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        // All that was due has a latency, what was never sent too.
        let due = rate * outcome.wall.as_secs_f64();
        let known = outcome.latency.len() as f64;
        assert!((0.8 * due..=1.3 * due).contains(&known), "{known} of {due}");
        assert!(outcome.unsent as f64 > due / 2.0, "{} of {due}", outcome.unsent);
        assert!(outcome.per_second() < 4100.0, "{}", outcome.per_second());
        // Requests that were due earlier have waited longer: half of them for half of the time.
        let half = outcome.latency.value_at_quantile(0.5);
        assert!(u128::from(half) >= (window / 2).as_nanos(), "{half}");
    }
}

#[test]
fn a_rate_is_kept() {
    let server = Mock::start(|_| "+PONG\r\n".into());
    let rate = Some(400.0);
    let extent = WindowExtent::Time(Duration::from_millis(1000));
    let load = LoadSpec { rate, pipeline: 2, extent, ..load() };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
    // A loaded machine sends late, but not more.
    let due = 400.0 * outcome.wall.as_secs_f64();
    assert!(outcome.requests as f64 <= due + 16.0, "{} of {due}", outcome.requests);
    assert!(outcome.latency.len() as f64 >= due - 16.0, "{} of {due}", outcome.latency.len());
    assert!(!outcome.lateness.is_empty());
    let extent = WindowExtent::Requests(50);
    let load = LoadSpec { pipeline: 1, extent, ..load };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut unobserved).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len(), outcome.unsent), (50, 50, 0));
    assert!(outcome.wall >= Duration::from_millis(100), "{:?}", outcome.wall);
}

#[test]
fn each_batch_may_have_its_own_connection() {
    let greetings = Arc::new(AtomicU64::new(0));
    let greeted = Arc::clone(&greetings);
    let server = Mock::start(move |words| {
        if words[0] == "HELLO" || words[0] == "AUTH" || words[0] == "SELECT" {
            greeted.fetch_add(1, Ordering::Relaxed);
            return "%1\r\n+server\r\n+mock\r\n".into();
        }
        "+PONG\r\n".into()
    });
    let plain = LoadSpec { reconnects: true, ..load() };
    let outcome = drive(&server.endpoint(), &CONNECT, &plain, None, &mut unobserved).unwrap();
    assert_eq!((outcome.requests, outcome.errors), (200, 0));
    // The threads also open one each to check that they may connect.
    assert_eq!(server.connections.load(Ordering::Relaxed), 200 + 4);
    assert_eq!(greetings.load(Ordering::Relaxed), 0);
    let password = Some("secret".into());
    let endpoint = ServerEndpoint { password, resp: Resp::Three, db: 3, ..server.endpoint() };
    let load = LoadSpec { pipeline: 5, ..plain };
    let outcome = drive(&endpoint, &CONNECT, &load, None, &mut unobserved).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len(), outcome.errors), (200, 200, 0));
    assert_eq!(greetings.load(Ordering::Relaxed), 3 * (40 + 4));
}

#[test]
fn a_new_connection_that_is_refused_or_not_let_in_is_an_error() {
    let count = AtomicU64::new(0);
    let server = Mock::start(move |words| match words[0].as_str() {
        "AUTH" if count.fetch_add(1, Ordering::Relaxed) < 10 => "+OK\r\n".into(),
        "AUTH" => "-WRONGPASS changed\r\n".into(),
        _ => "+PONG\r\n".into(),
    });
    let endpoint = ServerEndpoint { password: Some("secret".into()), ..server.endpoint() };
    let load = LoadSpec { reconnects: true, ..load() };
    let outcome = drive(&endpoint, &CONNECT, &load, None, &mut unobserved).unwrap();
    assert_eq!(outcome.first_error, "WRONGPASS changed");
    assert!(outcome.errors > 100, "{}", outcome.errors);
    // A server that goes away: it takes the first connections and then no more.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().take(6) {
            thread::spawn(move || answer(stream.unwrap(), &|_| "+PONG\r\n".into()));
        }
    });
    let gone =
        drive(&ServerEndpoint::local(port), &CONNECT, &load, None, &mut unobserved).unwrap_err();
    assert!(matches!(gone, Error::Io { .. } | Error::Connect { .. }), "{gone}");
}

/// A server for one connection that answers so many requests, hangs up and is gone.
fn going_away(answered: u64) -> ServerEndpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        drop(listener);
        let (closer, left) = (stream.try_clone().unwrap(), AtomicU64::new(answered));
        answer(stream, &|_| {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                let _ = closer.shutdown(Shutdown::Both);
            }
            "+PONG\r\n".into()
        });
    });
    ServerEndpoint::local(port)
}

#[test]
fn a_comparison_goes_on_without_a_server_that_is_gone() {
    let healthy = Mock::start(|_| "+PONG\r\n".into());
    let targets =
        [("a", going_away(50)), ("b", healthy.endpoint())].map(|(name, endpoint)| ServerTarget {
            name: name.into(),
            role: Role::Peer,
            origin: TargetOrigin::Running(Box::new(endpoint), Some(std::process::id())),
            cpus: Cpus::default(),
            tls: None,
        });
    let load = LoadSpec { clients: 1, threads: 1, ..load() };
    let cases = ["ping", "echo"].map(|name| ComparedCase { row: row(name), load: load.clone() });
    let plan = ComparisonPlan { cases: cases.into(), rounds: 2 };
    let table = compare(&targets, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert_eq!(table.lines.len(), 2);
    assert!(table.lines.iter().all(|line| line.cells[1].figures().is_some()), "{table}");
    let reasons: Vec<String> = table.failures().map(|failure| failure.to_string()).collect();
    assert!(reasons[0].starts_with("ping, pipeline 1 on a: FAILED: "), "{reasons:?}");
    assert!(reasons[1].starts_with("echo, pipeline 1 on a: FAILED: it is gone: "), "{reasons:?}");
    assert_eq!(reasons.len(), 2);
    // An invalid load is refused before a server is used.
    let plan = ComparisonPlan {
        cases: vec![ComparedCase { row: row("ping"), load: LoadSpec { clients: 0, ..load } }],
        rounds: 1,
    };
    let refused = compare(&targets, &plan, &AtomicBool::new(false), &mut |_, _| {});
    assert!(refused.unwrap_err().to_string().contains("must be at least 1"));
}

#[test]
fn every_node_of_a_cluster_gets_its_own_keys_only() {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
    let ranges = [(0, 5000), (5001, 9000), (9001, 16_383)];
    let node = |(port, (first, last)): (u16, (u32, u32))| {
        format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
    };
    let slots: String = ports.into_iter().zip(ranges).map(node).collect();
    let slots = format!("*3\r\n{slots}");
    let seen = [(); 3].map(|()| Arc::new(Mutex::new(HashSet::new())));
    for (index, listener) in listeners.into_iter().enumerate() {
        let (slots, seen) = (slots.clone(), Arc::clone(&seen[index]));
        let (first, last) = ranges[index];
        Mock::on(listener, move |words| {
            let Some(key) = words.get(1).filter(|_| words[0] != "CLUSTER") else {
                return slots.clone();
            };
            let slot = slot(key.as_bytes()) as u32;
            if slot < first || slot > last {
                return format!("-MOVED {slot} elsewhere\r\n");
            }
            seen.lock().unwrap().insert(key.clone());
            "+OK\r\n".into()
        });
    }
    let endpoint = ServerEndpoint::local(ports[0]);
    let load =
        LoadSpec { cluster: true, clients: 6, extent: WindowExtent::Requests(600), ..load() };
    let all = || -> usize { seen.iter().map(|seen| seen.lock().unwrap().drain().count()).sum() };
    make_ready(&endpoint, row("set"), &load, true).unwrap();
    assert_eq!(all(), 100, "the fill writes each key to its owner");
    for patterns in [
        KeyPatterns::default(),
        KeyPatterns { writes: Law::Sequential, reads: Law::Sequential },
        KeyPatterns { writes: Law::Zipf { exponent: 0.5 }, reads: Law::Uniform },
    ] {
        let load = LoadSpec { patterns, ..load.clone() };
        for name in ["set", "mixed", "incr"] {
            // The connections of a node that comes late share few of a run's requests.
            let mut runs = 0;
            loop {
                let outcome = drive(&endpoint, row(name), &load, None, &mut unobserved).unwrap();
                assert_eq!((outcome.errors, outcome.first_error.as_str()), (0, ""), "{name}");
                let each = seen.each_ref().map(|seen| seen.lock().unwrap().len());
                if each.iter().all(|keys| *keys > 5) {
                    break;
                }
                runs += 1;
                assert!(runs < 100, "{name}: {each:?}");
            }
            all();
        }
    }
    // A fixed key belongs to one node, and the others refuse it.
    let words = ["SET", "fixed", "x"].map(|word| word.as_bytes().to_vec()).to_vec();
    let commands = vec![LoadCommand { words, weight: 1, law: Law::Uniform }];
    let fixed = LoadSpec { commands, ..load.clone() };
    let outcome = drive(&endpoint, &names::COMMAND, &fixed, None, &mut unobserved).unwrap();
    assert!(outcome.errors > 0 && outcome.first_error.starts_with("MOVED"));
    // One key cannot be every node's.
    let one = LoadSpec { shape: RequestShape { keys: 1, ..load.shape.clone() }, ..load.clone() };
    let error = drive(&endpoint, row("set"), &one, None, &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("owns no key"), "{error}");
    let few = drive(&endpoint, row("set"), &LoadSpec { clients: 2, ..load }, None, &mut unobserved);
    assert!(few.unwrap_err().to_string().contains("3 nodes"));
}

#[test]
fn values_of_different_sizes_arrive_whole() {
    let sizes = Arc::new(Mutex::new(HashSet::new()));
    let seen = Arc::clone(&sizes);
    let server = Mock::start(move |words| {
        assert_eq!((words.len(), words[0].as_str()), (3, "SET"));
        seen.lock().unwrap().insert(words[2].len());
        "+OK\r\n".into()
    });
    let shape =
        RequestShape { sizes: Some(ValueSizes::list("1:1,20:1,3000:1").unwrap()), ..load().shape };
    let load = LoadSpec { shape, pipeline: 7, ..load() };
    let outcome = drive(&server.endpoint(), row("set"), &load, None, &mut unobserved).unwrap();
    assert_eq!(outcome.errors, 0);
    assert_eq!(*sizes.lock().unwrap(), HashSet::from([1, 20, 3000]));
}

#[test]
fn keys_in_parts_are_written_once_each() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let server = Mock::start(move |words| {
        seen.lock().unwrap().push(words[1].clone());
        "+OK\r\n".into()
    });
    let patterns = KeyPatterns { writes: Law::Parallel, reads: Law::Uniform };
    let load = LoadSpec { patterns, extent: WindowExtent::Requests(100), ..load() };
    drive(&server.endpoint(), row("set"), &load, None, &mut unobserved).unwrap();
    let mut keys = keys.lock().unwrap().clone();
    keys.sort();
    assert_eq!(keys, (0..100).map(|key| format!("key:{key:012}")).collect::<Vec<_>>());
}

#[test]
fn an_observer_sees_the_series_and_may_end_the_window() {
    let server = Mock::start(|_| "+PONG\r\n".into());
    let load = LoadSpec { extent: WindowExtent::Time(Duration::from_secs(600)), ..load() };
    let mut observe = |progress: &WindowProgress| match progress.last {
        Some(last) if progress.requests > 0 => {
            assert!(last.per_second > 0.0 && last.p99_us >= last.p50_us && last.p50_us > 0.0);
            assert!(progress.left().unwrap() > Duration::from_secs(60));
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let outcome = drive(&server.endpoint(), row("ping"), &load, None, &mut observe).unwrap();
    assert!(outcome.interrupted && outcome.requests > 0 && outcome.series.len() == 1);
    // Before anything was measured there is nothing to show.
    let load = LoadSpec { warm_up: Duration::from_secs(600), ..load };
    let error =
        drive(&server.endpoint(), row("ping"), &load, None, &mut |_| ControlFlow::Break(()));
    assert!(matches!(error.map(drop), Err(Error::Interrupted)));
}
