//! The `redis` crate: its asynchronous client with a connection that reconnects.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::caching::CacheConfig;
use redis::{
    AsyncCommands, AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, PushInfo,
    PushKind, RedisConnectionInfo, RedisError, RedisResult, Script, TlsCertificates, pipe,
};

use super::{Address, Answer, Cached, Receiver, Subject, Subscription};

/// How often a subscriber in RESP2 checks whether it must unsubscribe or end.
const READ_MILLISECONDS_MAX: u64 = 20;

pub(crate) struct RedisRs {
    client: Client,
    resp3: bool,
    r: ConnectionManager,
}

/// A client of the crate for the address.
pub(crate) fn client(address: &Address) -> Client {
    let protocol = if address.resp3 { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
    let mut settings = RedisConnectionInfo::default().set_protocol(protocol);
    if let Some(user) = &address.user {
        settings = settings.set_username(user.name).set_password(user.password);
    }
    let scheme = if address.authority.is_some() { "rediss" } else { "redis" };
    let info = format!("{scheme}://localhost:{}", address.port).into_connection_info().unwrap();
    let info = info.set_redis_settings(settings);
    match &address.authority {
        None => Client::open(info).unwrap(),
        Some(pem) => {
            let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
            Client::build_with_tls(info, certificates).unwrap()
        }
    }
}

/// Without the default timeout of half a second, which is too short on a busy machine.
fn config() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new().set_response_timeout(None).set_connection_timeout(None)
}

fn text(error: RedisError) -> String {
    match error.code() {
        Some(code) => format!("{code} {}", error.detail().unwrap_or_default()),
        None => error.to_string(),
    }
}

impl Subject for RedisRs {
    type Subscription = Subscriber;
    type Cached = WithCache;
    const SEES_FLUSHALL: bool = true;

    async fn open(address: &Address) -> RedisRs {
        let client = client(address);
        let r = client.get_connection_manager_with_config(config()).await.unwrap();
        RedisRs { client, resp3: address.resp3, r }
    }

    async fn set(&self, key: &str, value: &str) -> Answer<()> {
        self.r.clone().set(key, value).await.map_err(text)
    }

    async fn get(&self, key: &str) -> Answer<Option<String>> {
        self.r.clone().get(key).await.map_err(text)
    }

    async fn set_and_get(&self, bytes: &[u8]) -> Answer<Vec<u8>> {
        let mut r = self.r.clone();
        r.set::<_, _, ()>(bytes, bytes).await.map_err(text)?;
        r.get(bytes).await.map_err(text)
    }

    async fn incr_by(&self, key: &str, amount: i64) -> Answer<i64> {
        self.r.clone().incr(key, amount).await.map_err(text)
    }

    async fn exists(&self, key: &str) -> Answer<bool> {
        self.r.clone().exists(key).await.map_err(text)
    }

    async fn hgetall(&self, key: &str) -> Answer<Vec<(String, String)>> {
        self.r.clone().hgetall(key).await.map_err(text)
    }

    async fn lpush(&self, key: &str, value: &str) -> Answer<i64> {
        self.r.clone().lpush(key, value).await.map_err(text)
    }

    async fn smembers(&self, key: &str) -> Answer<Vec<String>> {
        self.r.clone().smembers(key).await.map_err(text)
    }

    async fn zrange(&self, key: &str) -> Answer<Vec<(String, f64)>> {
        self.r.clone().zrange_withscores(key, 0, -1).await.map_err(text)
    }

    async fn pipeline(&self, pairs: &[(String, String)]) -> Answer<Vec<String>> {
        let mut all = pipe();
        for (key, value) in pairs {
            all.set(key, value).ignore().get(key);
        }
        all.query_async(&mut self.r.clone()).await.map_err(text)
    }

    async fn pipeline_of_error(&self, key: &str) -> (Answer<i64>, Answer<String>) {
        let mut all = pipe();
        all.set(key, "v").ignore().incr(key, 1).get(key).ignore_errors();
        let answers: RedisResult<(RedisResult<i64>, RedisResult<String>)> =
            all.query_async(&mut self.r.clone()).await;
        let (error, last) = answers.unwrap();
        (error.map_err(text), last.map_err(text))
    }

    async fn transaction(&self) -> Answer<(i64, i64, Vec<String>, Option<String>)> {
        let mut all = pipe();
        all.atomic().incr("n", 1).rpush("l", &["a", "b"]).lrange("l", 0, -1).get("none");
        all.query_async(&mut self.r.clone()).await.map_err(text)
    }

    async fn append_watched(&self, key: &str, text: &str, meanwhile: &mut dyn FnMut()) -> i64 {
        // A new connection, because the shared one would watch the key for all its users.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let own = self.client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        let append = |mut own, mut all: redis::Pipeline| {
            meanwhile();
            all.append(key, text);
            async move { all.query_async::<Option<(i64,)>>(&mut own).await }
        };
        let (length,) = redis::aio::transaction_async(own, &[key], append).await.unwrap();
        length
    }

    async fn script(&self, source: &str, keys: [&str; 2], amount: i64) -> Answer<Vec<i64>> {
        let script = Script::new(source);
        let mut run = script.prepare_invoke();
        run.key(&keys).arg(amount);
        run.invoke_async(&mut self.r.clone()).await.map_err(text)
    }

    async fn publish(&self, channel: &str, message: &str) -> Answer<i64> {
        self.r.clone().publish(channel, message).await.map_err(text)
    }

    async fn subscribe(&self, channel: &str, pattern: &str, receiver: Receiver) -> Subscriber {
        let names = [channel.to_owned(), pattern.to_owned()];
        if !self.resp3 {
            return Subscriber::Thread(Loop::start(self.client.clone(), names, receiver));
        }
        let mut own = self.pushes_to(receiver).await;
        own.subscribe(channel).await.unwrap();
        own.psubscribe(pattern).await.unwrap();
        Subscriber::Pushes(Box::new(own), names)
    }

    async fn publish_shard(&self, channel: &str, message: &str) -> Answer<i64> {
        self.r.clone().spublish(channel, message).await.map_err(text)
    }

    /// Only in RESP3: the crate's subscriber for RESP2 has no method for it.
    async fn subscribe_shard(&self, channel: &str, receiver: Receiver) -> Option<Box<dyn Any>> {
        if !self.resp3 {
            return None;
        }
        let mut own = self.pushes_to(receiver).await;
        let subscribe = redis::cmd("SSUBSCRIBE").arg(channel).clone();
        subscribe.exec_async(&mut own).await.unwrap();
        Some(Box::new(own))
    }

    async fn blpop(&self, keys: &[&str], seconds: f64) -> Answer<Option<(String, String)>> {
        let mut own =
            self.client.get_connection_manager_with_config(config()).await.map_err(text)?;
        own.blpop(keys, seconds).await.map_err(text)
    }

    async fn cached(&self) -> WithCache {
        let config = config().set_cache_config(CacheConfig::new());
        WithCache(self.client.get_connection_manager_with_config(config).await.unwrap())
    }
}

impl RedisRs {
    /// A connection in RESP3 whose messages go to `receiver`, and which subscribes again by itself.
    async fn pushes_to(&self, receiver: Receiver) -> ConnectionManager {
        let pushed = move |push: PushInfo| {
            let by_pattern = match push.kind {
                PushKind::Message | PushKind::SMessage => false,
                PushKind::PMessage => true,
                _ => return Ok(()),
            };
            let payload = push.data.last().map(redis::from_redis_value_ref::<String>);
            match payload {
                Some(Ok(payload)) => receiver.send((by_pattern, payload)).map_err(drop),
                _ => Ok(()),
            }
        };
        let config =
            ConnectionManagerConfig::new().set_push_sender(pushed).set_automatic_resubscription();
        self.client.get_connection_manager_with_config(config).await.unwrap()
    }
}

pub(crate) struct WithCache(ConnectionManager);

impl Cached for WithCache {
    async fn get(&self, key: &str) -> Option<String> {
        self.0.clone().get(key).await.unwrap()
    }
}

pub(crate) enum Subscriber {
    /// In RESP3 the connection reconnects and subscribes again by itself.
    Pushes(Box<ConnectionManager>, [String; 2]),
    /// In RESP2 a thread does so, as users of the crate write it.
    Thread(Loop),
}

impl Subscription for Subscriber {
    async fn leave_channel(&mut self) {
        match self {
            Subscriber::Pushes(own, [channel, _]) => own.unsubscribe(&*channel).await.unwrap(),
            Subscriber::Thread(thread) => thread.leave.send(Leave::Channel).unwrap(),
        }
    }

    async fn leave_pattern(&mut self) {
        match self {
            Subscriber::Pushes(own, [_, pattern]) => own.punsubscribe(&*pattern).await.unwrap(),
            Subscriber::Thread(thread) => thread.leave.send(Leave::Pattern).unwrap(),
        }
    }

    async fn close(self) {}
}

enum Leave {
    Channel,
    Pattern,
}

/// A thread that reads messages and reconnects.
pub(crate) struct Loop {
    leave: mpsc::Sender<Leave>,
    closed: Arc<AtomicBool>,
}

impl Loop {
    fn start(client: Client, names: [String; 2], receiver: Receiver) -> Loop {
        let (leave, asked) = mpsc::channel();
        let closed = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&closed);
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                // After an error the connection is lost, or could not be opened yet.
                let _ = listen(&client, &names, &receiver, &asked, &done);
            }
        });
        Loop { leave, closed }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

fn listen(
    client: &Client,
    [channel, pattern]: &[String; 2],
    receiver: &Receiver,
    asked: &mpsc::Receiver<Leave>,
    closed: &AtomicBool,
) -> RedisResult<()> {
    let mut own = client.get_connection()?;
    let mut messages = own.as_pubsub();
    messages.subscribe(channel)?;
    messages.psubscribe(pattern)?;
    let wait = Some(Duration::from_millis(READ_MILLISECONDS_MAX));
    messages.set_read_timeout(wait)?;
    while !closed.load(Ordering::Relaxed) {
        if let Ok(leave) = asked.try_recv() {
            messages.set_read_timeout(None)?;
            match leave {
                Leave::Channel => messages.unsubscribe(channel)?,
                Leave::Pattern => messages.punsubscribe(pattern)?,
            }
            messages.set_read_timeout(wait)?;
        }
        match messages.get_message() {
            Ok(message) => {
                let by_pattern = message.from_pattern();
                let _ = receiver.send((by_pattern, message.get_payload()?));
            }
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
