//! What every client library does, for the `redis` crate and fred: the cases are in
//! `cases/clients.txt`, and a library is a [`Subject`] that does with its own methods what they
//! need.

use std::fs;
use std::sync::mpsc::Sender;

use clients_test::{Certificates, KINDS, both_server, case_names};
use tokio::runtime::Runtime;

use crate::check::ask;

mod cases;
mod with_fred;
mod with_redis;

pub use with_fred::Fred;
pub use with_redis::RedisRs;

/// A reply, or the server's error as text.
type Answer<T> = Result<T, String>;

/// How to connect.
pub struct Address {
    port: u16,
    resp3: bool,
    /// The authority of a server that speaks TLS, as PEM.
    authority: Option<Vec<u8>>,
}

/// An entry of a stream with one field.
type Entry = (String, String, String);

/// Gets the messages of a subscription, and whether they came by its pattern.
type Receiver = Sender<(bool, String)>;

/// A library on one kind of connection.
pub trait Subject: Sized {
    type Subscription: Subscription;
    type Cached: Cached;
    /// Whether the library understands what the server sends to caches for FLUSHALL.
    const SEES_FLUSHALL: bool;

    async fn open(address: &Address) -> Self;

    async fn set(&self, key: &str, value: &str) -> Answer<()>;
    async fn get(&self, key: &str) -> Answer<Option<String>>;
    /// SET and GET of a key that is as its value.
    async fn set_and_get(&self, bytes: &[u8]) -> Answer<Vec<u8>>;
    async fn incr_by(&self, key: &str, amount: i64) -> Answer<i64>;
    async fn exists(&self, key: &str) -> Answer<bool>;

    async fn hset(&self, key: &str, fields: &[(&str, &str)]) -> Answer<i64>;
    async fn hgetall(&self, key: &str) -> Answer<Vec<(String, String)>>;
    async fn rpush(&self, key: &str, values: &[&str]) -> Answer<i64>;
    async fn lpush(&self, key: &str, value: &str) -> Answer<i64>;
    async fn lrange(&self, key: &str) -> Answer<Vec<String>>;
    async fn sadd(&self, key: &str, members: &[&str]) -> Answer<i64>;
    async fn smembers(&self, key: &str) -> Answer<Vec<String>>;
    async fn zadd(&self, key: &str, scores: &[(f64, &str)]) -> Answer<i64>;
    async fn zrange(&self, key: &str) -> Answer<Vec<(String, f64)>>;
    async fn xadd(&self, key: &str, field: &str, value: &str) -> Answer<String>;
    async fn xrange(&self, key: &str) -> Answer<Vec<Entry>>;

    /// SET and GET of each pair in one pipeline: what GET gave.
    async fn pipeline(&self, pairs: &[(String, String)]) -> Answer<Vec<String>>;
    /// SET, INCR and GET in one pipeline: the error of INCR, and what GET gave.
    async fn pipeline_of_error(&self, key: &str) -> (Answer<i64>, Answer<String>);
    /// INCR n, RPUSH l a b, LRANGE l and GET none.
    async fn transaction(&self) -> Answer<(i64, i64, Vec<String>, Option<String>)>;
    /// APPEND in a transaction that watches the key, until it was not changed meanwhile.
    async fn append_watched(&self, key: &str, text: &str, meanwhile: &mut dyn FnMut()) -> i64;
    /// Runs the script with two keys and an amount.
    async fn script(&self, source: &str, keys: [&str; 2], amount: i64) -> Answer<Vec<i64>>;

    async fn publish(&self, channel: &str, text: &str) -> Answer<i64>;
    async fn subscribe(
        &self,
        channel: &str,
        pattern: &str,
        receiver: Receiver,
    ) -> Self::Subscription;
    /// The key and the value.
    async fn blpop(&self, keys: &[&str], seconds: f64) -> Answer<Option<(String, String)>>;
    async fn cached(&self) -> Self::Cached;
}

/// A client that keeps what it reads until the server says that it changed.
pub trait Cached {
    async fn get(&self, key: &str) -> Option<String>;
}

/// A subscription to a channel and to a pattern, which is closed on drop.
pub trait Subscription {
    async fn leave_channel(&mut self);
    async fn leave_pattern(&mut self);
    async fn close(self);
}

/// Runs the cases with a library, on each kind of connection.
pub fn run<S: Subject>() {
    // Which provider is in use must not depend on what else the workspace's tests link.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let files = Certificates::new();
    let server = both_server(&files, &["--io-threads", "3"]);
    let authority = fs::read(files.file("ca.pem")).unwrap();
    for kind in KINDS {
        let (port, authority) = match kind {
            "tls" => (server.tls_port, Some(authority.clone())),
            _ => (server.port, None),
        };
        let address = Address { port, resp3: kind != "resp2", authority };
        let client = with_redis::client(&address);
        let mut admin = client.get_connection().unwrap();
        Runtime::new().unwrap().block_on(async {
            let subject = S::open(&address).await;
            for name in case_names("clients.txt") {
                if kind == "resp2" && name.starts_with("caching: ") {
                    continue;
                }
                ask::<()>(&mut admin, "FLUSHALL");
                cases::Cases { s: &subject, admin: &mut admin }.run(&name).await;
                println!("ok case {kind}: {name}");
            }
        });
    }
}
