//! fred.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fred::clients::SubscriberClient;
use fred::interfaces::TrackingInterface;
use fred::prelude::*;
use fred::types::config::TlsConnector;
use fred::types::scripts::Script;
use fred::types::{Message, MessageKind, RespVersion};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::{Address, Answer, Cached, Receiver, Subject, Subscription};

/// How long fred waits before it reconnects.
const RECONNECT_MILLISECONDS: u32 = 10;

pub(crate) struct Fred {
    builder: Builder,
    r: Client,
}

fn text(error: Error) -> String {
    error.details().to_owned()
}

impl Subject for Fred {
    type Subscription = Subscriber;
    type Cached = WithCache;
    const SEES_FLUSHALL: bool = false;

    async fn open(address: &Address) -> Fred {
        let tls = address.authority.as_ref().map(|pem| {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
            let config = ClientConfig::builder().with_root_certificates(roots);
            TlsConnector::from(config.with_no_client_auth()).into()
        });
        let config = Config {
            server: ServerConfig::new_centralized("127.0.0.1", address.port),
            version: if address.resp3 { RespVersion::RESP3 } else { RespVersion::RESP2 },
            tls,
            username: address.user.as_ref().map(|user| user.name.to_owned()),
            password: address.user.as_ref().map(|user| user.password.to_owned()),
            ..Config::default()
        };
        let mut builder = Builder::from_config(config);
        builder.set_policy(ReconnectPolicy::new_constant(0, RECONNECT_MILLISECONDS));
        // fred drops messages beyond this number if they are read late.
        builder.with_performance_config(|config| config.broadcast_channel_capacity = 1024);
        let r = builder.build().unwrap();
        r.init().await.unwrap();
        Fred { builder, r }
    }

    async fn set(&self, key: &str, value: &str) -> Answer<()> {
        self.r.set(key, value, None, None, false).await.map_err(text)
    }

    async fn get(&self, key: &str) -> Answer<Option<String>> {
        self.r.get(key).await.map_err(text)
    }

    async fn set_and_get(&self, bytes: &[u8]) -> Answer<Vec<u8>> {
        self.r.set::<(), _, _>(bytes, bytes, None, None, false).await.map_err(text)?;
        let value: Value = self.r.get(bytes).await.map_err(text)?;
        Ok(value.into_owned_bytes().unwrap_or_default())
    }

    async fn incr_by(&self, key: &str, amount: i64) -> Answer<i64> {
        self.r.incr_by(key, amount).await.map_err(text)
    }

    async fn exists(&self, key: &str) -> Answer<bool> {
        self.r.exists(key).await.map_err(text)
    }

    async fn hgetall(&self, key: &str) -> Answer<Vec<(String, String)>> {
        let all: HashMap<String, String> = self.r.hgetall(key).await.map_err(text)?;
        Ok(all.into_iter().collect())
    }

    async fn lpush(&self, key: &str, value: &str) -> Answer<i64> {
        self.r.lpush(key, value).await.map_err(text)
    }

    async fn smembers(&self, key: &str) -> Answer<Vec<String>> {
        self.r.smembers(key).await.map_err(text)
    }

    async fn zrange(&self, key: &str) -> Answer<Vec<(String, f64)>> {
        self.r.zrange(key, 0, -1, None, false, None, true).await.map_err(text)
    }

    async fn pipeline(&self, pairs: &[(String, String)]) -> Answer<Vec<String>> {
        let all = self.r.pipeline();
        for (key, value) in pairs {
            all.set::<(), _, _>(key, value, None, None, false).await.map_err(text)?;
            all.get::<(), _>(key).await.map_err(text)?;
        }
        let answers: Vec<String> = all.all().await.map_err(text)?;
        Ok(answers.into_iter().skip(1).step_by(2).collect())
    }

    async fn pipeline_of_error(&self, key: &str) -> (Answer<i64>, Answer<String>) {
        let all = self.r.pipeline();
        all.set::<(), _, _>(key, "v", None, None, false).await.unwrap();
        all.incr::<(), _>(key).await.unwrap();
        all.get::<(), _>(key).await.unwrap();
        let mut answers = all.try_all::<Value>().await.into_iter().skip(1);
        let mut next = || answers.next().expect("three answers").map_err(text);
        let (error, last) = (next(), next());
        (error.map(|value| value.convert().unwrap()), last.map(|value| value.convert().unwrap()))
    }

    async fn transaction(&self) -> Answer<(i64, i64, Vec<String>, Option<String>)> {
        let all = self.r.multi();
        all.incr::<(), _>("n").await.map_err(text)?;
        all.rpush::<(), _, _>("l", vec!["a", "b"]).await.map_err(text)?;
        all.lrange::<(), _>("l", 0, -1).await.map_err(text)?;
        all.get::<(), _>("none").await.map_err(text)?;
        all.exec(true).await.map_err(text)
    }

    async fn append_watched(&self, key: &str, text: &str, meanwhile: &mut dyn FnMut()) -> i64 {
        loop {
            self.r.watch(key).await.unwrap();
            meanwhile();
            let all = self.r.multi();
            all.append::<(), _, _>(key, text).await.unwrap();
            let answers: Value = all.exec(true).await.unwrap();
            if !answers.is_null() {
                return answers.into_array()[0].clone().convert().unwrap();
            }
        }
    }

    async fn script(&self, source: &str, keys: [&str; 2], amount: i64) -> Answer<Vec<i64>> {
        let script = Script::from_lua(source);
        script.evalsha_with_reload(&self.r, keys.to_vec(), amount).await.map_err(text)
    }

    async fn publish(&self, channel: &str, message: &str) -> Answer<i64> {
        self.r.publish(channel, message).await.map_err(text)
    }

    async fn subscribe(&self, channel: &str, pattern: &str, receiver: Receiver) -> Subscriber {
        let own = self.builder.build_subscriber_client().unwrap();
        own.init().await.unwrap();
        own.on_message(move |message: Message| {
            let by_pattern = message.kind == MessageKind::PMessage;
            // The case may have ended.
            let _ = receiver.send((by_pattern, message.value.convert().unwrap()));
            async { Ok(()) }
        });
        own.manage_subscriptions();
        own.subscribe(channel).await.unwrap();
        own.psubscribe(pattern).await.unwrap();
        Subscriber { own, channel: channel.to_owned(), pattern: pattern.to_owned() }
    }

    async fn publish_shard(&self, channel: &str, message: &str) -> Answer<i64> {
        self.r.spublish(channel, message).await.map_err(text)
    }

    async fn subscribe_shard(&self, channel: &str, receiver: Receiver) -> Option<Box<dyn Any>> {
        let own = self.builder.build_subscriber_client().unwrap();
        own.init().await.unwrap();
        own.on_message(move |message: Message| {
            let _ = receiver.send((false, message.value.convert().unwrap()));
            async { Ok(()) }
        });
        own.ssubscribe(channel).await.unwrap();
        Some(Box::new(ShardSubscriber(own)))
    }

    async fn blpop(&self, keys: &[&str], seconds: f64) -> Answer<Option<(String, String)>> {
        let own = self.r.clone_new();
        own.init().await.map_err(text)?;
        let popped = own.blpop(keys.to_vec(), seconds).await;
        own.quit().await.map_err(text)?;
        match popped {
            Ok(pair) => Ok(Some(pair)),
            // fred reports a null reply as a timeout.
            Err(error) if *error.kind() == ErrorKind::Timeout => Ok(None),
            Err(error) => Err(text(error)),
        }
    }

    async fn cached(&self) -> WithCache {
        let own = self.r.clone_new();
        own.init().await.unwrap();
        let values = Values::default();
        let of_task = Arc::clone(&values);
        own.on_invalidation(move |invalidation| {
            let mut values = of_task.lock().unwrap();
            for key in invalidation.keys {
                values.remove(key.as_str().unwrap_or_default());
            }
            Ok(())
        });
        own.start_tracking(None, false, false, false, false).await.unwrap();
        WithCache { own, values }
    }
}

type Values = Arc<Mutex<HashMap<String, Option<String>>>>;

/// fred reports invalidated keys; its users store the values.
pub(crate) struct WithCache {
    own: Client,
    values: Values,
}

impl Cached for WithCache {
    async fn get(&self, key: &str) -> Option<String> {
        if let Some(value) = self.values.lock().unwrap().get(key) {
            return value.clone();
        }
        let value: Option<String> = self.own.get(key).await.unwrap();
        self.values.lock().unwrap().insert(key.to_owned(), value.clone());
        value
    }
}

struct ShardSubscriber(SubscriberClient);

impl Drop for ShardSubscriber {
    fn drop(&mut self) {
        let own = self.0.clone();
        tokio::spawn(async move { own.quit().await });
    }
}

pub(crate) struct Subscriber {
    own: SubscriberClient,
    channel: String,
    pattern: String,
}

impl Subscription for Subscriber {
    async fn leave_channel(&mut self) {
        self.own.unsubscribe(self.channel.as_str()).await.unwrap();
    }

    async fn leave_pattern(&mut self) {
        self.own.punsubscribe(self.pattern.as_str()).await.unwrap();
    }

    async fn close(self) {
        self.own.quit().await.unwrap();
    }
}
