//! The load generator against servers inside the test: the floor, one that answers with errors, one
//! that speaks TLS, and one that hangs up.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tools::Error;
use tools::bench::compare::{ComparedCase, ComparisonPlan, compare};
use tools::bench::floor::{Floor, FloorStopper};
use tools::bench::requests::RequestCounter;
use tools::client::session::{Resp, ServerEndpoint, ServerSession};
use tools::client::tls::{TlsConnector, TlsOptions};
use tools::load::drive::{drive, make_ready};
use tools::load::fill::fill;
use tools::load::outcome::{WindowOutcome, WindowProgress, unobserved};
use tools::load::shape::RequestShape;
use tools::load::spec::{LoadSpec, WindowExtent};
use tools::load::workload::Workload;
use tools::load::workload::WorkloadUser;
use tools::load::workload::names;
use tools::load::workload::table::TABLE;
use tools::servers::pin::Cpus;
use tools::servers::target::{Role, ServerTarget, TargetOrigin};

/// A floor server on its own thread, ended when dropped.
struct Running {
    port: u16,
    stop: FloorStopper,
    thread: Option<std::thread::JoinHandle<Result<(), Error>>>,
}

impl Running {
    fn start(value_bytes: usize) -> Running {
        let floor = Floor::bind("127.0.0.1:0", value_bytes).unwrap();
        let (port, stop) = (floor.local_addr().unwrap().port(), floor.stopper().unwrap());
        let thread = std::thread::Builder::new().name("floor".into()).spawn(|| floor.serve());
        Running { port, stop, thread: Some(thread.unwrap()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn load() -> LoadSpec {
    LoadSpec {
        clients: 7,
        threads: 2,
        pipeline: 3,
        shape: RequestShape { keys: 100, value_bytes: 64, ..RequestShape::default() },
        warm_up: Duration::from_millis(20),
        extent: WindowExtent::Time(Duration::from_millis(200)),
        ..LoadSpec::default()
    }
}

fn run(endpoint: &ServerEndpoint, row: &str, load: &LoadSpec) -> Result<WindowOutcome, Error> {
    let row = names::find(row).unwrap();
    drive(endpoint, row, load, Some(std::process::id()), &mut unobserved)
}

#[test]
fn every_workload_runs_against_the_floor() {
    let floor = Running::start(64);
    let load = LoadSpec { extent: WindowExtent::Requests(300), warm_up: Duration::ZERO, ..load() };
    for row in TABLE {
        let outcome = run(&ServerEndpoint::local(floor.port), row.name, &load).unwrap();
        assert_eq!((outcome.errors, outcome.nulls_per_reply), (0, 0.0), "{}", row.name);
        assert!(outcome.requests >= 300, "{}: {}", row.name, outcome.requests);
    }
}

#[test]
fn an_interruption_ends_a_comparison_however_many_rounds_are_left() {
    let floor = Running::start(64);
    let endpoint = Box::new(ServerEndpoint::local(floor.port));
    let origin = TargetOrigin::Running(endpoint, None);
    let cpus = Cpus::default();
    let target = ServerTarget { name: "a".into(), role: Role::Peer, origin, cpus, tls: None };
    let extent = WindowExtent::Requests(10);
    let load = LoadSpec { extent, warm_up: Duration::ZERO, ..load() };
    let cases = vec![ComparedCase { row: names::find("get").unwrap(), load }];
    let plan = ComparisonPlan { cases, rounds: usize::MAX };
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let stop = AtomicBool::new(false);
        let mut observe = |text: &str, _| stop.store(text == "get x3 3 a", Ordering::Relaxed);
        let table = compare(&[target], &plan, &stop, &mut observe).unwrap();
        let _ = ended.send(table);
    });
    let table = end.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(table.interrupted && table.lines[0].cells[0].figures().is_some());
}

#[test]
fn a_number_of_requests_is_met_exactly() {
    let floor = Running::start(64);
    let load = LoadSpec { extent: WindowExtent::Requests(1000), warm_up: Duration::ZERO, ..load() };
    let outcome = run(&ServerEndpoint::local(floor.port), "get", &load).unwrap();
    // The last batch of each of the two threads is a smaller one.
    assert_eq!(outcome.requests, 1000);
    assert_eq!(outcome.latency.len(), 1000);
    assert_eq!(outcome.load.threads.len(), 2);
}

#[test]
fn a_number_of_requests_is_met_exactly_after_a_warm_up() {
    let (port, sent) = serve_one(None, |_| b"$1\r\nv\r\n");
    let one = LoadSpec { clients: 1, threads: 1, extent: WindowExtent::Requests(1000), ..load() };
    let outcome = run(&ServerEndpoint::local(port), "get", &one).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len()), (1000, 1000));
    assert!(outcome.warm_up > 0);
    assert_eq!(sent.join().unwrap(), outcome.warm_up + 1000);

    let floor = Running::start(64);
    let load = LoadSpec { extent: WindowExtent::Requests(1000), ..load() };
    let outcome = run(&ServerEndpoint::local(floor.port), "get", &load).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len()), (1000, 1000));
}

#[test]
fn a_time_window_excludes_the_warm_up_and_counts_cpu() {
    let floor = Running::start(64);
    let endpoint = ServerEndpoint { resp: Resp::Three, ..ServerEndpoint::local(floor.port) };
    let mut shares = Vec::new();
    let row = names::find("mixed").unwrap();
    let pid = Some(std::process::id());
    let mut observe = |progress: &WindowProgress| {
        shares.push(progress.share);
        ControlFlow::Continue(())
    };
    let outcome = drive(&endpoint, row, &load(), pid, &mut observe).unwrap();
    assert!(outcome.requests > 0 && outcome.wall >= Duration::from_millis(200));
    // Latencies and requests are windowed by different threads: at most the batches in flight and
    // one turn of each thread lie between them.
    assert!(outcome.latency.len() <= outcome.requests + 2 * 256 * 3);
    assert!(outcome.server.unwrap().threads.iter().any(|thread| thread.name == "floor"));
    assert!(shares.is_sorted() && shares.last() == Some(&1.0));
}

#[test]
fn values_larger_than_the_sockets_get_through_both_ways() {
    let floor = Running::start(3_000_000);
    let shape = RequestShape { value_bytes: 3_000_000, ..load().shape };
    let extent = WindowExtent::Requests(8);
    let load = LoadSpec { clients: 2, threads: 1, pipeline: 2, shape, extent, ..load() };
    for row in ["get", "set"] {
        let outcome = run(&ServerEndpoint::local(floor.port), row, &load).unwrap();
        assert!(outcome.requests >= 8, "{row}");
    }
}

#[test]
fn a_fill_sends_every_key_once() {
    let (port, counted) = serve_one(None, |_| b"+OK\r\n");
    let shape =
        RequestShape { keys: 1000, key_bytes: 10, value_bytes: 8, ..RequestShape::default() };
    let mut session = ServerSession::open(&ServerEndpoint::local(port)).unwrap();
    fill(&mut session, "SET {key} {value}", &shape, 1).unwrap();
    drop(session);
    assert_eq!(counted.join().unwrap(), 1000);
}

#[test]
fn a_preparation_is_sent_once_and_its_user_carries_the_load() {
    let row = Workload {
        read: Some("GET {key}"),
        fill: Some("SET {key} {value}"),
        prepare: Some("ACL SETUSER reader on ; SCRIPT LOAD x"),
        user: Some(WorkloadUser { name: "reader", password: "secret" }),
        ..Workload::new("reader")
    };
    let (port, sent) = serve_one(None, |_| b"+OK\r\n");
    let load = load();
    make_ready(&ServerEndpoint::local(port), &row, &load, false).unwrap();
    assert_eq!(sent.join().unwrap(), 2);
    let (port, _) =
        serve_one(None, |n| if n == 1 { b"-ERR unknown command\r\n" } else { b"+OK\r\n" });
    let refused = make_ready(&ServerEndpoint::local(port), &row, &load, false).unwrap_err();
    assert!(refused.to_string().contains("the preparation: ERR unknown"), "{refused}");
    // The first request of a connection under load is AUTH, which alone is refused here.
    let refusing = |n| if n == 0 { &b"-WRONGPASS\r\n"[..] } else { b"+OK\r\n" };
    let (port, _) = serve_one(None, refusing);
    let one = LoadSpec { clients: 1, threads: 1, ..load };
    let refused =
        drive(&ServerEndpoint::local(port), &row, &one, None, &mut unobserved).unwrap_err();
    assert!(refused.to_string().contains("AUTH: WRONGPASS"), "{refused}");
}

/// A server for one connection that answers the n-th request with `reply(n)`; gives their number.
fn serve_one(
    tls: Option<Arc<ServerConfig>>,
    reply: impl Fn(u64) -> &'static [u8] + Send + 'static,
) -> (u16, std::thread::JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        match tls {
            None => answer(stream, reply),
            Some(config) => {
                answer(StreamOwned::new(ServerConnection::new(config).unwrap(), stream), reply)
            }
        }
    });
    (port, thread)
}

fn answer(mut stream: impl Read + Write, reply: impl Fn(u64) -> &'static [u8]) -> u64 {
    let (mut counter, mut buffer, mut count) = (RequestCounter::default(), [0; 4096], 0);
    loop {
        let bytes = match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return count,
            Ok(bytes) => bytes,
        };
        let mut replies = Vec::new();
        let parsed = counter.feed(&buffer[..bytes], |_| {
            replies.extend_from_slice(reply(count));
            count += 1;
        });
        if parsed.is_err() || stream.write_all(&replies).and_then(|()| stream.flush()).is_err() {
            return count;
        }
    }
}

#[test]
fn error_replies_are_counted_and_refuse_a_fill() {
    let few = |n| if n % 4 == 1 { &b"-ERR no such thing\r\n"[..] } else { &b"$-1\r\n"[..] };
    let one = LoadSpec { clients: 1, threads: 1, ..load() };
    let (port, _) = serve_one(None, few);
    let outcome = run(&ServerEndpoint::local(port), "get", &one).unwrap();
    assert!(outcome.errors > 0);
    assert_eq!(outcome.first_error, "ERR no such thing");
    assert!((0.5..1.0).contains(&outcome.nulls_per_reply), "{}", outcome.nulls_per_reply);

    let (port, _) = serve_one(None, few);
    let mut session = ServerSession::open(&ServerEndpoint::local(port)).unwrap();
    let refused = fill(&mut session, "SET {key} {value}", &load().shape, 1).unwrap_err();
    assert!(refused.to_string().contains("no such thing"), "{refused}");
}

#[test]
fn what_is_answered_before_it_is_sent_is_still_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut counter, mut buffer, mut count) = (RequestCounter::default(), [0; 4096], 0);
        let mut begun = false;
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            let before = count;
            counter.feed(&buffer[..bytes], |_| count += 1).unwrap();
            // The first answer comes when little of its request has been read.
            if !begun || count == 2 && before < 2 {
                stream.write_all(b"+OK\r\n").unwrap();
            }
            begun = true;
        }
        count
    });
    let one = LoadSpec {
        clients: 1,
        threads: 1,
        pipeline: 1,
        shape: RequestShape { value_bytes: 20_000_000, ..load().shape },
        warm_up: Duration::ZERO,
        extent: WindowExtent::Requests(2),
        stall_time_max: Duration::from_secs(5),
        ..load()
    };
    assert_eq!(run(&ServerEndpoint::local(port), "set", &one).unwrap().requests, 2);
    assert_eq!(server.join().unwrap(), 2);
}

#[test]
fn a_request_of_several_commands_counts_once() {
    // The EXEC of every fourth transaction is refused.
    let (port, sent) = serve_one(None, |n| match (n % 3, n / 3 % 4) {
        (0, _) => b"+OK\r\n",
        (1, _) => b"+QUEUED\r\n",
        (_, 0) => b"*-1\r\n",
        (_, _) => b"*1\r\n$1\r\nv\r\n",
    });
    let request = Some("MULTI ; GET {key} ; EXEC");
    let row = Workload { read: request, ..Workload::new("transaction") };
    let extent = WindowExtent::Requests(100);
    let load =
        LoadSpec { clients: 1, threads: 1, pipeline: 2, warm_up: Duration::ZERO, extent, ..load() };
    let outcome = drive(&ServerEndpoint::local(port), &row, &load, None, &mut unobserved).unwrap();
    assert_eq!((outcome.requests, outcome.latency.len(), outcome.errors), (100, 100, 0));
    assert_eq!((outcome.aborted_per_request, outcome.nulls_per_reply), (0.25, 0.0));
    assert_eq!(sent.join().unwrap(), 300);
}

#[test]
fn a_password_stays_out_of_messages() {
    let (port, _) = serve_one(None, |_| b"-WRONGPASS invalid\r\n");
    let endpoint =
        ServerEndpoint { password: Some("secret".into()), ..ServerEndpoint::local(port) };
    let text = ServerSession::open(&endpoint).unwrap_err().to_string();
    assert!(text.contains("AUTH") && text.contains("WRONGPASS") && !text.contains("secret"));
}

#[test]
fn a_server_that_hangs_up_ends_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let error =
        run(&ServerEndpoint::local(port), "get", &LoadSpec { clients: 1, ..load() }).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    server.join().unwrap();
}

#[test]
fn what_is_not_resp_ends_the_run() {
    let (port, _) = serve_one(None, |_| b"HTTP/1.1 400 Bad Request\r\n");
    let error =
        run(&ServerEndpoint::local(port), "get", &LoadSpec { clients: 1, ..load() }).unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
}

#[test]
fn an_unreachable_server_is_reported_with_its_address() {
    // Port 1 is reserved and in use nowhere; a port freed here could be another test's by now.
    let error = run(&ServerEndpoint::local(1), "get", &load()).unwrap_err();
    assert!(error.to_string().contains("127.0.0.1:1:"), "{error}");
}

/// The configuration of a server called `bench.test`, and its certificate as PEM.
fn certified() -> (Arc<ServerConfig>, String) {
    let certified = rcgen::generate_simple_self_signed(["bench.test".to_string()]).unwrap();
    let key = PrivateKeyDer::from_pem_slice(certified.key_pair.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = builder.with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
    (Arc::new(config), certified.cert.pem())
}

#[test]
fn tls_verifies_the_server_unless_it_is_insecure() {
    let (config, authority) = certified();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, authority).unwrap();
    let trusting =
        TlsOptions { cacert: Some(file), sni: Some("bench.test".into()), ..TlsOptions::default() };
    let wrong_name = TlsOptions { sni: Some("other.test".into()), ..trusting.clone() };
    let insecure = TlsOptions { insecure: true, ..TlsOptions::default() };
    for (options, accepted) in [(trusting, true), (insecure, true), (wrong_name, false)] {
        let (port, _) = serve_one(Some(Arc::clone(&config)), |_| b"$3\r\nabc\r\n");
        let tls = Some(TlsConnector::new(&options, "127.0.0.1").unwrap());
        let endpoint = ServerEndpoint { tls, ..ServerEndpoint::local(port) };
        let outcome = run(&endpoint, "get", &LoadSpec { clients: 1, threads: 1, ..load() });
        match outcome {
            Ok(outcome) => assert!(accepted && outcome.errors == 0 && outcome.requests > 0),
            Err(error) => assert!(!accepted, "{error}"),
        }
    }
    assert!(TlsConnector::new(&TlsOptions::default(), "localhost").is_err(), "nothing to trust");
}

#[test]
fn new_connections_may_speak_tls() {
    let (config, listener) = (certified().0, TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = StreamOwned::new(tls, stream.unwrap());
            std::thread::spawn(move || answer(stream, |_| b"+OK\r\n"));
        }
    });
    let options = TlsOptions { insecure: true, ..TlsOptions::default() };
    let tls = Some(TlsConnector::new(&options, "127.0.0.1").unwrap());
    let password = Some("secret".into());
    for endpoint in [
        ServerEndpoint { tls: tls.clone(), ..ServerEndpoint::local(port) },
        ServerEndpoint { tls, password, ..ServerEndpoint::local(port) },
    ] {
        let extent = WindowExtent::Requests(60);
        let load = LoadSpec { reconnects: true, extent, warm_up: Duration::ZERO, ..load() };
        let outcome = run(&endpoint, "get", &load).unwrap();
        assert_eq!((outcome.requests, outcome.latency.len(), outcome.errors), (60, 60, 0));
    }
}

#[test]
fn the_floor_counts_requests_under_any_split() {
    let floor = Running::start(5);
    let requests =
        b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nget\r\n$0\r\n\r\n";
    let expected = b"$5\r\nxxxxx\r\n+OK\r\n$5\r\nxxxxx\r\n";
    for split in 1..requests.len() {
        let mut stream = TcpStream::connect(("127.0.0.1", floor.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&requests[..split]).unwrap();
        stream.write_all(&requests[split..]).unwrap();
        let mut replies = vec![0; expected.len()];
        stream.read_exact(&mut replies).unwrap();
        assert_eq!(replies, expected, "split at {split}");
        // Nothing more follows: after the half-close the floor hangs up at once.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read_to_end(&mut replies).unwrap(), 0);
    }
}

#[test]
fn the_floor_hangs_up_on_what_is_no_request() {
    let floor = Running::start(5);
    let mut stream = TcpStream::connect(("127.0.0.1", floor.port)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut replies = Vec::new();
    assert!(!matches!(stream.read_to_end(&mut replies), Ok(count) if count > 0));
}
