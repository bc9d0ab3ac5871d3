//! The `redis` crate and fred drive the server, in this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use clients_test::{Certificates, Server, tls_servers};
use redis::{
    Client, ClientTlsConfig, Commands, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    ProtocolVersion, RedisConnectionInfo, RedisResult, TlsCertificates, Value,
};

mod admin;
mod check;
mod clients;
mod combined;
mod keys;
mod load;
mod reload;
mod replies;
mod scripts;
mod strings;
mod transactions;
mod users;
mod waiting;

use check::{ask, equal, holds, refused, try_ask};

const PROTOCOLS: [ProtocolVersion; 2] = [ProtocolVersion::RESP2, ProtocolVersion::RESP3];
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

#[test]
fn redis_rs() {
    clients::run::<clients::RedisRs>();
}

#[test]
fn fred() {
    clients::run::<clients::Fred>();
}

#[test]
fn resp2() {
    commands(ProtocolVersion::RESP2, 2);
}

#[test]
fn resp3() {
    commands(ProtocolVersion::RESP3, 3);
}

fn commands(protocol: ProtocolVersion, number: i64) {
    let server = Server::start(&["--io-threads", "3"]);
    let client = client(tcp(server.port), settings(protocol));
    let mut r = client.get_connection().unwrap();
    strings::run(&mut r);
    keys::run(&mut r);
    admin::run(&mut r, &client, number);
    ask::<()>(&mut r, "FLUSHALL");
    replies::run(&mut r);
    combined::run(&mut r, &client);
    load::run(&mut r, &client);
}

#[test]
fn auth() {
    let password = "correct horse \"battery\"";
    let server = Server::start(&["--requirepass", password]);
    let open = |settings: RedisConnectionInfo| client(tcp(server.port), settings).get_connection();
    for protocol in PROTOCOLS {
        let mut r = open(settings(protocol).set_password(password)).unwrap();
        equal("SET with the password", r.set::<_, _, String>("k", "v").unwrap().as_str(), "OK");
        let named = settings(protocol).set_username("default").set_password(password);
        let value: String = open(named).unwrap().get("k").unwrap();
        equal("with the user default too", value.as_str(), "v");
        let without = open(settings(protocol)).and_then(|mut r| r.ping::<Value>());
        let code = without.as_ref().err().and_then(|error| error.code());
        equal("without", code, Some("NOAUTH"));
        let wrong = open(settings(protocol).set_password("wrong"));
        holds("a wrong password", wrong.is_err(), wrong.is_err());
        let nobody = open(settings(protocol).set_username("nobody").set_password(password));
        holds("a wrong user", nobody.is_err(), nobody.is_err());
    }
    let mut r = open(settings(ProtocolVersion::RESP3).set_password(password)).unwrap();
    refused("AUTH with a wrong one", WRONG, try_ask::<Value>(&mut r, "AUTH wrong"));
    equal("the old login holds", r.get::<_, String>("k").unwrap().as_str(), "v");
    let set: String = ask(&mut r, "CONFIG SET requirepass new");
    equal("CONFIG SET requirepass", set.as_str(), "OK");
    let old = open(settings(ProtocolVersion::RESP3).set_password(password));
    holds("the old one is refused", old.is_err(), old.is_err());
    let renewed = open(settings(ProtocolVersion::RESP3).set_password("new"));
    equal("the new one is taken", renewed.unwrap().ping::<String>().unwrap().as_str(), "PONG");
}

#[test]
fn tls() {
    // Which provider is in use must not depend on what else the workspace's tests link.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let files = Certificates::new();
    let read = |name: &str| fs::read(files.file(name)).unwrap();
    let own =
        || ClientTlsConfig { client_cert: read("client.pem"), client_key: read("client.key") };
    let (server, mutual) = tls_servers(&files, &["--io-threads", "3"]);
    let open = |port, protocol, client_tls, root_cert| -> RedisResult<redis::Connection> {
        let certificates = TlsCertificates { client_tls, root_cert };
        let info = format!("rediss://localhost:{port}").into_connection_info()?;
        let info = info.set_redis_settings(settings(protocol));
        Client::build_with_tls(info, certificates)?.get_connection()
    };
    for protocol in PROTOCOLS {
        let mut r = open(server.tls_port, protocol, None, Some(read("ca.pem"))).unwrap();
        equal("PING over TLS", r.ping::<String>().unwrap().as_str(), "PONG");
        let value = "x".repeat(3_000_000);
        r.set::<_, _, ()>("k", &value).unwrap();
        holds("GET of 3 MB over TLS", r.get::<_, String>("k").unwrap() == value, "");
        let mut pipe = redis::pipe();
        for i in 0..2_000 {
            pipe.set(format!("k:{i}"), i).ignore().get(format!("k:{i}"));
        }
        let answers: Vec<i64> = pipe.query(&mut r).unwrap();
        equal("a pipeline over TLS", answers, (0..2_000).collect());
        waiting::run(&mut r, open(server.tls_port, protocol, None, Some(read("ca.pem"))).unwrap());
    }
    let resp3 = ProtocolVersion::RESP3;
    let mut r = open(mutual.tls_port, resp3, Some(own()), Some(read("ca.pem"))).unwrap();
    equal("PING with a client certificate", r.ping::<String>().unwrap().as_str(), "PONG");
    let ping = |mut r: redis::Connection| r.ping::<Value>();
    let anonymous = open(mutual.tls_port, resp3, None, Some(read("ca.pem"))).and_then(ping);
    holds("refused: without a client certificate", anonymous.is_err(), &anonymous);
    let other = Certificates::new();
    let stranger = Some(fs::read(other.file("ca.pem")).unwrap());
    let unknown = open(server.tls_port, resp3, None, stranger).and_then(ping);
    holds("refused: an unknown authority", unknown.is_err(), &unknown);
    let plain = client(tcp(server.tls_port), settings(resp3)).get_connection().and_then(ping);
    holds("refused: no TLS at all", plain.is_err(), &plain);
}

#[test]
fn unix() {
    let server = Server::start(&["--io-threads", "3"]);
    for protocol in PROTOCOLS {
        let socket = ConnectionAddr::Unix(server.socket.clone().into());
        let mut r = client(socket, settings(protocol)).get_connection().unwrap();
        equal("PING over the socket", r.ping::<String>().unwrap().as_str(), "PONG");
        equal("SET over it", r.set::<_, _, String>("k", "v").unwrap().as_str(), "OK");
        let info: String = ask(&mut r, "CLIENT INFO");
        let path = format!(" addr={}:0 ", server.socket);
        holds("CLIENT INFO has the path", info.contains(&path), &info);
        let mut over_tcp = client(tcp(server.port), settings(protocol)).get_connection().unwrap();
        equal("TCP sees the same keys", over_tcp.get::<_, String>("k").unwrap().as_str(), "v");
        waiting::run(&mut over_tcp, r);
    }
}

fn client(address: ConnectionAddr, settings: RedisConnectionInfo) -> Client {
    let info: ConnectionInfo = address.into_connection_info().unwrap();
    Client::open(info.set_redis_settings(settings)).unwrap()
}

fn tcp(port: u16) -> ConnectionAddr {
    ConnectionAddr::Tcp("127.0.0.1".to_owned(), port)
}

fn settings(protocol: ProtocolVersion) -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_protocol(protocol)
}

/// Seconds since 1970.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
