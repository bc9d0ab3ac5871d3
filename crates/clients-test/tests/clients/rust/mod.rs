//! The cases of `cases/clients.txt` for the `redis` crate and fred, in this process. A library is a
//! [`Subject`], which maps what the cases need to the library's methods.

use std::any::Any;
use std::fs;
use std::sync::mpsc::Sender;

use clients_test::{KINDS, TestUser, case_names, scenario_server};
use tokio::runtime::Runtime;

mod cases;
mod check;
mod reload;
mod with_fred;
mod with_redis;

use check::ask;

#[test]
fn redis_rs() {
    run::<with_redis::RedisRs>();
}

#[test]
fn fred() {
    run::<with_fred::Fred>();
}

/// A reply, or the server's error as text.
type Answer<T> = Result<T, String>;

/// How to connect.
struct Address {
    port: u16,
    resp3: bool,
    /// The authority of the server's certificate as PEM, for TLS.
    authority: Option<Vec<u8>>,
    user: Option<TestUser>,
}

/// Gets the messages of a subscription, and whether they came by its pattern.
type Receiver = Sender<(bool, String)>;

/// A library on one kind of connection.
trait Subject: Sized {
    type Subscription: Subscription;
    type Cached: Cached;
    /// Whether the library understands the invalidation message of FLUSHALL.
    const SEES_FLUSHALL: bool;

    async fn open(address: &Address) -> Self;

    async fn set(&self, key: &str, value: &str) -> Answer<()>;
    async fn get(&self, key: &str) -> Answer<Option<String>>;
    /// SET and GET with these bytes as key and as value.
    async fn set_and_get(&self, bytes: &[u8]) -> Answer<Vec<u8>>;
    async fn incr_by(&self, key: &str, amount: i64) -> Answer<i64>;
    async fn exists(&self, key: &str) -> Answer<bool>;

    async fn hgetall(&self, key: &str) -> Answer<Vec<(String, String)>>;
    async fn lpush(&self, key: &str, value: &str) -> Answer<i64>;
    async fn smembers(&self, key: &str) -> Answer<Vec<String>>;
    async fn zrange(&self, key: &str) -> Answer<Vec<(String, f64)>>;

    /// SET and GET of each pair in one pipeline; returns the replies of GET.
    async fn pipeline(&self, pairs: &[(String, String)]) -> Answer<Vec<String>>;
    /// SET, INCR and GET in one pipeline; returns the replies of INCR and GET.
    async fn pipeline_of_error(&self, key: &str) -> (Answer<i64>, Answer<String>);
    /// INCR n, RPUSH l, LRANGE l and GET none in a transaction.
    async fn transaction(&self) -> Answer<(i64, i64, Vec<String>, Option<String>)>;
    /// APPEND in a transaction that watches the key, retried while another client changes the key.
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
    async fn publish_shard(&self, channel: &str, text: &str) -> Answer<i64>;
    /// Subscribes to a shard channel until the returned value is dropped. Returns `None` if the
    /// library has no method for it.
    async fn subscribe_shard(&self, channel: &str, receiver: Receiver) -> Option<Box<dyn Any>>;
    /// Returns the key and the value.
    async fn blpop(&self, keys: &[&str], seconds: f64) -> Answer<Option<(String, String)>>;
    async fn cached(&self) -> Self::Cached;
}

/// A client that caches what it reads until the server invalidates it.
trait Cached {
    async fn get(&self, key: &str) -> Option<String>;
}

/// A subscription to a channel and to a pattern, which ends on drop.
trait Subscription {
    async fn leave_channel(&mut self);
    async fn leave_pattern(&mut self);
    async fn close(self);
}

/// Runs the cases with a library, on each kind of connection.
fn run<S: Subject>() {
    // The provider must not depend on what else the workspace's tests link.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (server, files) = scenario_server();
    let authority = fs::read(files.file("ca.pem")).unwrap();
    for kind in KINDS {
        let (port, authority) = match kind {
            "tls" => (server.tls_port, Some(authority.clone())),
            _ => (server.port, None),
        };
        let user = (kind != "resp3").then_some(TestUser::WORKER);
        let address = Address { port, resp3: kind != "resp2", authority, user };
        let observer = Address { port: server.port, resp3: false, authority: None, user: None };
        let mut admin = with_redis::client(&observer).get_connection().unwrap();
        Runtime::new().unwrap().block_on(async {
            let subject = S::open(&address).await;
            for name in case_names() {
                if kind == "resp2" && name.starts_with("tracking: ") {
                    continue;
                }
                ask::<()>(&mut admin, "FLUSHALL");
                let cases = cases::Cases { s: &subject, address: &address, admin: &mut admin };
                cases.run(&name).await;
                println!("ok case {kind}: {name}");
            }
        });
    }
}
