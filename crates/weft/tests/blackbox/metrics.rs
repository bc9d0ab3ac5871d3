//! Metrics over HTTP: their values, health, and clients that are slow, hostile or wrong.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use test_support::{Launch, WAIT_MAX, encode, eventually, free_port, output_of_server, printed};

use crate::{Client, Server};

/// The most connections at a time.
const CONNECTIONS_MAX: usize = 16;

/// Lets a server serve metrics on a free port.
fn serve(client: &mut Client) -> SocketAddr {
    loop {
        let port = free_port();
        let reply = client.ask(&format!("CONFIG SET metrics-port {port}")).text();
        if reply == "OK" {
            return SocketAddr::from(([127, 0, 0, 1], port));
        }
        // Another process has taken it.
        assert!(reply.contains("Unable to listen on this port"), "{reply}");
    }
}

fn start(options: &[&str]) -> (Server, Client, SocketAddr) {
    let server = Server::start(options);
    let mut client = server.client();
    let metrics = serve(&mut client);
    (server, client, metrics)
}

fn connect(metrics: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(metrics).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
    stream
}

/// The bytes of the reply up to the end of the connection.
fn exchange(metrics: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(metrics);
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The body of a reply with this status.
#[track_caller]
fn body(metrics: SocketAddr, path: &str, status: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answer = exchange(metrics, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
    body.to_owned()
}

/// The value of a sample with this name and labels.
fn value(metrics: SocketAddr, sample: &str) -> Option<f64> {
    let text = body(metrics, "/metrics", "200 OK");
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

#[track_caller]
fn becomes(metrics: SocketAddr, sample: &str, expected: f64) {
    eventually(&format!("{sample} {expected}"), || value(metrics, sample) == Some(expected));
}

#[test]
fn counts_follow_what_clients_do() {
    let (server, mut client, metrics) = start(&["--io-threads", "3"]);
    for words in ["SET k v", "GET k", "GET none", "LPUSH k v", "HELLO 3", "NONSENSE"] {
        client.ask(words);
    }
    for (sample, expected) in [
        ("weft_commands_total{command=\"get\"}", 2.0),
        ("weft_commands_failed_total{command=\"lpush\"}", 1.0),
        ("weft_command_duration_seconds_count{command=\"get\"}", 2.0),
        ("weft_command_duration_seconds_bucket{command=\"get\",le=\"+Inf\"}", 2.0),
        ("weft_errors_total{code=\"WRONGTYPE\"}", 1.0),
        ("weft_error_replies_total", 2.0),
        ("weft_keyspace_hits_total", 1.0),
        ("weft_keyspace_misses_total", 1.0),
        ("weft_keys{db=\"0\"}", 1.0),
        ("weft_connected_clients", 1.0),
        ("weft_loading", 0.0),
        ("weft_aof_enabled", 0.0),
        ("weft_threads", 3.0),
    ] {
        becomes(metrics, sample, expected);
    }
    // A reset does not show: a tool that sums rates would take it for a restart.
    client.ok("CONFIG RESETSTAT");
    client.ask("GET k");
    becomes(metrics, "weft_commands_total{command=\"get\"}", 3.0);
    let mut other = server.client();
    other.ask("SUBSCRIBE c");
    becomes(metrics, "weft_pubsub_subscribed{kind=\"channel\"}", 1.0);
    client.send("BLPOP list 0");
    becomes(metrics, "weft_blocked_clients", 1.0);
    // Each thread with clients has been busy, and their sum is positive.
    let busy =
        |thread| value(metrics, &format!("weft_thread_busy_seconds_total{{thread=\"{thread}\"}}"));
    assert!(busy(1).unwrap() + busy(2).unwrap() > 0.0);
    assert!(value(metrics, "weft_memory_used_bytes").unwrap() > 100_000.0);
    assert!(value(metrics, "process_resident_memory_bytes").unwrap() > 1_000_000.0);
}

#[test]
fn expired_evicted_and_denied_are_counted() {
    let (server, mut client, metrics) = start(&[]);
    client.ok("SET short v PX 1");
    becomes(metrics, "weft_keys_expired_total", 1.0);
    client.ok("ACL SETUSER u on nopass ~only +get");
    let mut user = server.client();
    user.ok("AUTH u any");
    assert!(user.ask("SET only v").text().starts_with("NOPERM"));
    assert!(user.ask("GET other").text().starts_with("NOPERM"));
    assert!(user.ask("AUTH nobody x").text().starts_with("WRONGPASS"));
    for reason in ["command", "key", "auth"] {
        becomes(metrics, &format!("weft_acl_denied_total{{reason=\"{reason}\"}}"), 1.0);
    }
    client.ok("SET k v");
    client.ok("CONFIG SET maxmemory-policy allkeys-lru");
    client.ok("CONFIG SET maxmemory 1");
    eventually("keys are evicted", || value(metrics, "weft_keys_evicted_total") > Some(0.0));
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    client.ok("CONFIG SET maxmemory-policy noeviction");
    let reason = body(metrics, "/healthz", "503 Service Unavailable");
    assert!(reason.starts_with("writes are refused: memory exceeds maxmemory"), "{reason}");
}

#[test]
fn the_port_comes_and_goes_with_the_configuration() {
    let (server, mut client, metrics) = start(&[]);
    let names = || server.process().threads();
    eventually("it has its name", || names().contains_key("weft-metrics"));
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    // The same port on another address.
    client.ok("CONFIG SET metrics-bind 127.0.0.2");
    assert!(TcpStream::connect(metrics).is_err());
    let other = SocketAddr::from(([127, 0, 0, 2], metrics.port()));
    assert_eq!(body(other, "/healthz", "200 OK"), "ok\n");
    // A port that cannot be bound changes nothing.
    let taken = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = client.ask(&format!("CONFIG SET metrics-port {port}")).text();
    assert!(refused.contains("Unable to listen on this port"), "{refused}");
    assert_eq!(body(other, "/healthz", "200 OK"), "ok\n");
    server.wait_for_log("choose another port with --metrics-port");
    client.ok("CONFIG SET metrics-port 0");
    assert!(TcpStream::connect(other).is_err());
    assert!(!names().contains_key("weft-metrics"), "{:?}", names());
}

/// A page of another site may have its own name point to this address, and so read the answers.
#[test]
fn names_of_other_hosts_are_refused() {
    let (server, mut client, metrics) = start(&[]);
    let status = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        exchange(metrics, request.as_bytes()).split(' ').nth(1).map(str::to_owned)
    };
    for path in ["/metrics", "/healthz", "/"] {
        for (host, expected) in [
            ("127.0.0.1:9121", "200"),
            ("localhost", "200"),
            ("[::1]", "200"),
            ("evil.example.org", "403"),
            ("weft.example.org:9121", "403"),
        ] {
            assert_eq!(status(host, path).as_deref(), Some(expected), "{host}{path}");
        }
    }
    server.wait_for_log("Refused an HTTP request for the host \"evil.example.org\"");
    client.ok("CONFIG SET metrics-allowed-hosts weft.example.org");
    assert_eq!(status("weft.example.org:9121", "/metrics").as_deref(), Some("200"));
    assert_eq!(status("evil.example.org", "/metrics").as_deref(), Some("403"));
}

#[test]
fn a_server_that_cannot_serve_metrics_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (own, bind) = (free_port().to_string(), "127.0.0.1");
    let args = ["--port", &own, "--bind", bind, "--metrics-port", &port, "--metrics-bind", bind];
    let output = output_of_server(folder.path(), &args);
    assert!(!output.status.success());
    let said = printed(&output);
    assert!(said.contains("Address already in use"), "{said}");
    assert!(said.contains("--metrics-port"), "{said}");
}

#[test]
fn health_says_why_not() {
    let options = ["--save", "3600 1", "--dbfilename", "dump.rdb"];
    let (server, mut client, metrics) = start(&options);
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    // A folder with the name of the file.
    std::fs::create_dir(server.path("dump.rdb")).unwrap();
    client.ok("SET k v");
    client.ask("BGSAVE");
    becomes(metrics, "weft_rdb_last_save_success", 0.0);
    becomes(metrics, "weft_writes_refused", 1.0);
    let reason = body(metrics, "/healthz", "503 Service Unavailable");
    assert!(reason.starts_with("writes are refused: MISCONF"), "{reason}");
    client.ok("CONFIG SET stop-writes-on-bgsave-error no");
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
}

#[test]
fn health_says_that_a_script_keeps_clients_waiting() {
    let (server, mut client, metrics) = start(&["--busy-reply-threshold", "100"]);
    let mut other = server.client();
    other.send_raw(&encode(&[b"EVAL", b"while true do end", b"0"]));
    eventually("the script is busy", || {
        exchange(metrics, b"GET /healthz HTTP/1.1\r\n\r\n").contains("503 Service Unavailable")
    });
    let reason = body(metrics, "/healthz", "503 Service Unavailable");
    assert!(reason.starts_with("not all clients are served: BUSY "), "{reason}");
    client.ok("SCRIPT KILL");
    assert!(other.read().text().contains("killed"));
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
}

#[test]
fn health_names_a_pause_that_was_asked_for() {
    let (_server, mut client, metrics) = start(&[]);
    client.ok("CLIENT PAUSE 100000 WRITE");
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok; CLIENT PAUSE holds writes\n");
    client.ok("CLIENT UNPAUSE");
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    client.ok("CLIENT PAUSE 100000");
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok; CLIENT PAUSE holds all commands\n");
}

#[test]
fn health_says_that_keys_are_loaded() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.ask_args(&[b"EVAL", b"for i = 1, 300 do redis.call('set', 'key:' .. i, i) end", b"0"]);
    client.ok("SAVE");
    let folder = {
        let mut server = server;
        server.signal("KILL");
        server.wait();
        server.into_folder()
    };
    let initialized = "Server initialized";
    let options = ["--key-load-delay", "20000"];
    let server = Launch::weft().in_folder(folder).options(&options).until(initialized).start();
    let mut client = server.client();
    let metrics = serve(&mut client);
    let reason = body(metrics, "/healthz", "503 Service Unavailable");
    assert_eq!(reason, "keys are being loaded\n");
    becomes(metrics, "weft_loading", 1.0);
    client.ok("CONFIG SET key-load-delay 0");
    eventually("it is loaded", || {
        let answer = exchange(metrics, b"GET /healthz HTTP/1.0\r\n\r\n");
        answer.starts_with("HTTP/1.1 200 OK\r\n")
    });
}

#[test]
fn requests_that_are_wrong_are_refused() {
    let (_server, _client, metrics) = start(&[]);
    let line = "x".repeat(9000);
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200 OK"),
        ("GET /metrics?a=b HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET /nothing HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("GET /../etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed"),
        ("DELETE / HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("GET / HTTP/3.0\r\n\r\n", "400 Bad Request"),
        ("\0\u{1}\r\n\r\n", "400 Bad Request"),
        ("*1\r\n$4\r\nPING\r\n", "400 Bad Request"),
        (&format!("GET /{line} HTTP/1.1\r\n\r\n"), "431 Request Header Fields Too Large"),
        (&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65)), "431 Request Header"),
        // Pipelined requests: each connection serves one.
        ("GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", "200 OK"),
    ] {
        let answer = exchange(metrics, request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{request:?}: {answer}");
    }
    let head = exchange(metrics, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    // In pieces.
    let mut stream = connect(metrics);
    for piece in ["GET /he", "althz HT", "TP/1.1\r", "\nHost: localhost\r\n\r", "\n"] {
        stream.write_all(piece.as_bytes()).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
}

/// Whether the server has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0; 16]) {
        Err(error) => error.kind() != ErrorKind::WouldBlock,
        Ok(count) => count == 0,
    }
}

#[test]
fn slow_clients_are_closed_and_delay_no_other() {
    let (server, mut client, metrics) = start(&["--io-threads", "1"]);
    let before = server.process().files();
    // More connections than the limit; half of them send nothing, half a part of a request.
    let mut slow: Vec<_> = (0..3 * CONNECTIONS_MAX).map(|_| connect(metrics)).collect();
    for stream in slow.iter_mut().skip(1).step_by(2) {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nA: ");
    }
    let started = Instant::now();
    assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    eventually("the oldest make room", || {
        slow.iter_mut().map(is_closed).filter(|is| *is).count() >= 2 * CONNECTIONS_MAX
    });
    assert!(server.process().files() <= before + CONNECTIONS_MAX + 1);
    // Commands are served in the meantime.
    client.ok("SET k v");
    eventually("their time is over", || slow.iter_mut().all(is_closed));
    assert!(started.elapsed() < WAIT_MAX);
    eventually("no descriptor is left", || server.process().files() <= before);
}

#[test]
fn unread_replies_cost_no_more_memory_than_read_ones() {
    let (server, mut client, metrics) = start(&[]);
    // Many error codes make a long reply, which exceeds an unread socket.
    for number in 0..100 {
        let code = format!("E{number}{}", "x".repeat(100));
        client.ask_args(&[b"EVAL", b"return redis.error_reply(ARGV[1])", b"0", code.as_bytes()]);
    }
    let mut streams: Vec<_> = (0..CONNECTIONS_MAX).map(|_| connect(metrics)).collect();
    for stream in &mut streams {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
    }
    for _ in 0..20 {
        assert_eq!(body(metrics, "/healthz", "200 OK"), "ok\n");
    }
    let used = server.info("used_memory").parse::<u64>().unwrap();
    assert!(used < 64 << 20, "{used}");
}

#[test]
fn a_flood_of_connections_leaves_the_processor_to_others() {
    let (server, _client, metrics) = start(&[]);
    let busy_ns = || server.process().threads().get("weft-metrics").copied().unwrap_or(0);
    let (before_ns, started) = (busy_ns(), Instant::now());
    let mut accepted = 0;
    while started.elapsed() < Duration::from_millis(1500) {
        accepted += 1;
        let _ = exchange(metrics, b"GET /metrics HTTP/1.1\r\n\r\n");
    }
    let busy = (busy_ns() - before_ns) as f64 / 1e9;
    let seconds = started.elapsed().as_secs_f64();
    assert!(f64::from(accepted) <= 220.0 * (seconds + 0.1), "{accepted} in {seconds} s");
    assert!(busy > 0.0 && busy <= 0.9 * seconds, "{busy} of {seconds} s");
}

/// The page and the documentation name only existing metrics.
#[test]
fn every_metric_is_documented_and_the_page_reads_no_other() {
    let (_server, mut client, metrics) = start(&[]);
    client.ask("PING");
    let text = body(metrics, "/metrics", "200 OK");
    let families: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documented = std::fs::read_to_string(root.join("docs/metrics.md")).unwrap();
    for family in &families {
        assert!(documented.contains(&format!("`{family}`")), "{family} is not in docs/metrics.md");
    }
    let page = body(metrics, "/", "200 OK");
    for (place, text) in [("docs/metrics.md", &documented), ("the page", &page)] {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if !word.starts_with("weft_") || word == "weft_" {
                continue;
            }
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            assert!(families.contains(&family), "{place} names {word}");
        }
    }
}
