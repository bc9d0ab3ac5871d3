//! CONFIG SET of new certificates under load: open connections stay, new connections get the new
//! certificates, and unusable files change nothing.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use redis::{Client, Commands, Connection, RedisResult, TlsCertificates, Value};
use test_support::{Certificates, Launch, Ports};

use super::check::{equal, eventually, holds};

/// Connections that send commands during the changes.
const CLIENTS: usize = 4;
/// How often the certificates change.
const RELOADS: usize = 10;

#[test]
fn certificates_change_under_load() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let sets = [Certificates::new(), Certificates::new()];
    let files = |set: &Certificates| [set.file("server.pem"), set.file("server.key")];
    let launch = Launch::weft().ports(Ports::Tls).certified(&sets[0], "no");
    let server = launch.options(&["--io-threads", "3"]).start();
    let port = server.tls_port;

    let (stop, requests) = (&AtomicBool::new(false), &AtomicU64::new(0));
    thread::scope(|scope| {
        let load: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut r = open(port, &sets[0]).unwrap();
                scope.spawn(move || work(&mut r, number, stop, requests))
            })
            .collect();
        let mut admin = open(port, &sets[0]).unwrap();
        for round in 1..=RELOADS {
            let (new, old) = (&sets[round % 2], &sets[(round + 1) % 2]);
            let [cert, key] = files(new);
            let words = [("tls-cert-file", cert.as_str()), ("tls-key-file", key.as_str())];
            set(&mut admin, &words).unwrap();
            open(port, new).and_then(|mut r| r.ping::<String>()).unwrap();
            let answer = open(port, old).and_then(|mut r| r.ping::<String>());
            holds("the old certificate is no longer trusted", answer.is_err(), &answer);
            let before = requests.load(Ordering::Relaxed);
            eventually("the load goes on", || {
                requests.load(Ordering::Relaxed) > before + CLIENTS as u64
            });
        }
        let [cert, key] = files(&sets[RELOADS % 2]);
        for (name, file) in [
            ("tls-cert-file", "missing.pem".to_owned()),
            ("tls-key-file", sets[1 - RELOADS % 2].file("server.key")),
            ("tls-key-file", sets[0].file("ca.pem")),
            ("tls-ciphersuites", "TLS_NONSENSE".to_owned()),
            ("tls-protocols", "SSLv7".to_owned()),
        ] {
            let answer = set(&mut admin, &[(name, file.as_str())]);
            let text = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
            holds("an unusable setting is refused", text.contains(name), &answer);
            open(port, &sets[RELOADS % 2]).and_then(|mut r| r.ping::<String>()).unwrap();
        }
        for (name, file) in [("tls-cert-file", cert), ("tls-key-file", key)] {
            let kept: Vec<String> =
                redis::cmd("CONFIG").arg("GET").arg(name).query(&mut admin).unwrap();
            equal("CONFIG GET returns the value in force", &kept[1], &file);
        }
        stop.store(true, Ordering::Relaxed);
        for thread in load {
            thread.join().unwrap();
        }
    });
}

/// Writes and reads until `stop` is set. No command may fail.
fn work(r: &mut Connection, number: usize, stop: &AtomicBool, requests: &AtomicU64) {
    let key = format!("key:{number}");
    let mut round = 0u64;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        r.set::<_, _, ()>(&key, round).unwrap();
        assert_eq!(r.get::<_, u64>(&key).unwrap(), round);
        requests.fetch_add(1, Ordering::Relaxed);
    }
}

fn open(port: u16, trusted: &Certificates) -> RedisResult<Connection> {
    let root_cert = fs::read(trusted.file("ca.pem")).unwrap();
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(root_cert) };
    let address = format!("rediss://localhost:{port}");
    Client::build_with_tls(address, certificates)?.get_connection()
}

fn set(r: &mut Connection, pairs: &[(&str, &str)]) -> RedisResult<Value> {
    let mut words = redis::cmd("CONFIG");
    words.arg("SET");
    for (name, value) in pairs {
        words.arg(name).arg(value);
    }
    words.query(r)
}
