//! The cases; `cases/clients.txt` says what each asserts.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use clients_test::shared_file;
use redis::{Connection, InfoDict};

use super::check::{ask, equal, eventually, holds};
use super::{Address, Cached, Subject, Subscription};

const CHANNEL: &str = "news:sport";
const PATTERN: &str = "news:*";
/// How long a case waits for a message or a reply.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A library on one kind of connection. `admin` observes the server without it.
pub(crate) struct Cases<'a, S> {
    pub(crate) s: &'a S,
    pub(crate) address: &'a Address,
    pub(crate) admin: &'a mut Connection,
}

/// A subscription to the channel and the pattern, with the messages that arrive.
struct Inbox<P> {
    subscription: P,
    messages: Receiver<(bool, String)>,
}

impl<P> Inbox<P> {
    /// Checks that the next messages by channel and those by pattern are `want`.
    fn arrived(&self, name: &str, want: &[String]) {
        let next = |_| self.messages.recv_timeout(WAIT_MAX).expect(name);
        let all: Vec<(bool, String)> = (0..2 * want.len()).map(next).collect();
        for (by_pattern, way) in [(false, "channel"), (true, "pattern")] {
            let of_way = all.iter().filter(|(way, _)| *way == by_pattern);
            let got: Vec<&String> = of_way.map(|(_, text)| text).collect();
            equal(&format!("{name}: the {way}'s"), got, want.iter().collect());
        }
    }
}

impl<S: Subject> Cases<'_, S> {
    pub(crate) async fn run(mut self, name: &str) {
        match name {
            "connect: protocol and user" => self.connected().await,
            "types: strings" => self.strings().await,
            "types: collections" => self.collections().await,
            "types: errors" => self.errors().await,
            "pipeline: replies in order" => self.pipeline().await,
            "pipeline: an error inside" => self.pipeline_error().await,
            "transaction: replies in order" => self.transaction().await,
            "transaction: a watched key" => self.watched().await,
            "script: before and after SCRIPT FLUSH" => self.script().await,
            "script: an error" => self.script_error().await,
            "pubsub: channel and pattern" => self.pubsub().await,
            "pubsub: unsubscribed" => self.unsubscribed().await,
            "pubsub: shard channel" => self.shard_channel().await,
            "pubsub: after CLIENT KILL" => self.pubsub_killed().await,
            "blocking: served" => self.served().await,
            "blocking: timed out" => self.timed_out().await,
            "reconnection: after CLIENT KILL" => self.reconnection().await,
            "tracking: cached until invalidated" => self.cached().await,
            name => panic!("no such case: {name}"),
        }
    }

    async fn connected(&mut self) {
        equal("GET", self.s.get("k").await, Ok(None));
        let protocol = if self.address.resp3 { 3 } else { 2 };
        let user = self.address.user.as_ref().map_or("default", |user| user.name);
        let user = format!(" user={user} ");
        let right = |line: &str| {
            let line = format!("{line} ");
            line.contains(&format!(" resp={protocol} ")) && line.contains(&user)
        };
        eventually("protocol and user", || {
            let others = self.other_clients();
            !others.is_empty() && others.iter().all(|line| right(line))
        });
    }

    async fn strings(&self) {
        let every: Vec<u8> = (0..=255).collect();
        equal("SET", self.s.set("k", "zażółć 🦀").await, Ok(()));
        equal("GET", self.s.get("k").await, Ok(Some("zażółć 🦀".to_owned())));
        equal("every byte", self.s.set_and_get(&every).await, Ok(every));
        equal("GET of a missing key", self.s.get("none").await, Ok(None));
        equal("INCRBY", self.s.incr_by("n", 41).await, Ok(41));
        equal("INCRBY again", self.s.incr_by("n", 1).await, Ok(42));
    }

    async fn collections(&mut self) {
        for line in ["HSET h a 1 b 2", "SADD s a b", "ZADD z 2.5 b 1 a"] {
            ask::<i64>(self.admin, line);
        }
        let pairs = [("a", "1"), ("b", "2")].map(|(f, v)| (f.to_owned(), v.to_owned()));
        let mut found = self.s.hgetall("h").await.unwrap();
        found.sort();
        equal("HGETALL", found, pairs.to_vec());
        let mut members = self.s.smembers("s").await.unwrap();
        members.sort();
        equal("SMEMBERS", members, ["a", "b"].map(str::to_owned).to_vec());
        let scores = vec![("a".to_owned(), 1.0), ("b".to_owned(), 2.5)];
        equal("ZRANGE WITHSCORES", self.s.zrange("z").await, Ok(scores));
    }

    async fn errors(&self) {
        self.s.set("k", "v").await.unwrap();
        let text = "WRONGTYPE Operation against a key holding the wrong kind of value";
        equal("LPUSH to a string", self.s.lpush("k", "x").await, Err(text.to_owned()));
        equal("the connection stays usable", self.s.get("k").await, Ok(Some("v".to_owned())));
    }

    async fn pipeline(&self) {
        let pair = |i: i32| (format!("p:{i}"), i.to_string());
        let pairs: Vec<(String, String)> = (0..1_000).map(pair).collect();
        let want = pairs.iter().map(|(_, value)| value.clone()).collect();
        equal("replies", self.s.pipeline(&pairs).await, Ok(want));
    }

    async fn pipeline_error(&self) {
        let (error, last) = self.s.pipeline_of_error("k").await;
        let text = "ERR value is not an integer or out of range";
        equal("the error", error, Err(text.to_owned()));
        equal("the reply after it", last, Ok("v".to_owned()));
    }

    async fn transaction(&self) {
        let list = vec!["a".to_owned(), "b".to_owned()];
        equal("EXEC", self.s.transaction().await, Ok((1, 2, list, None)));
    }

    async fn watched(&mut self) {
        let mut tries = 0;
        let admin = &mut *self.admin;
        let mut change_once = || {
            tries += 1;
            if tries == 1 {
                ask::<()>(admin, "SET k other");
            }
        };
        let length = self.s.append_watched("k", "+mine", &mut change_once).await;
        equal("EXEC, and the number of attempts", (length, tries), (10, 2));
        equal("what it left", self.s.get("k").await, Ok(Some("other+mine".to_owned())));
    }

    async fn script(&mut self) {
        let source = shared_file("transfer.lua");
        ask::<()>(self.admin, "MSET a 100 b 1");
        equal("the first run", self.s.script(&source, ["a", "b"], 10).await, Ok(vec![90, 11]));
        ask::<()>(self.admin, "SCRIPT FLUSH");
        equal("the run after it", self.s.script(&source, ["b", "a"], 1).await, Ok(vec![10, 91]));
    }

    async fn script_error(&self) {
        let source = shared_file("transfer.lua");
        let poor = self.s.script(&source, ["a", "b"], 1).await;
        equal("of the script", poor, Err("POOR a has 0".to_owned()));
    }

    async fn subscribed(&mut self) -> Inbox<S::Subscription> {
        let (sender, messages) = mpsc::channel();
        let subscription = self.s.subscribe(CHANNEL, PATTERN, sender).await;
        self.subscribers("both are subscribed", 1, 1);
        Inbox { subscription, messages }
    }

    /// Waits until the channel and the pattern have as many subscribers.
    fn subscribers(&mut self, name: &str, channels: i64, patterns: i64) {
        eventually(name, || {
            let (_, count): (String, i64) = ask(self.admin, &format!("PUBSUB NUMSUB {CHANNEL}"));
            (count, ask(self.admin, "PUBSUB NUMPAT")) == (channels, patterns)
        });
    }

    async fn pubsub(&mut self) {
        let p = self.subscribed().await;
        let sent: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        for text in &sent {
            assert_eq!(self.s.publish(CHANNEL, text).await, Ok(2), "PUBLISH counts both");
        }
        p.arrived("each arrives twice", &sent);
        p.subscription.close().await;
        self.subscribers("the end", 0, 0);
    }

    async fn unsubscribed(&mut self) {
        let mut p = self.subscribed().await;
        p.subscription.leave_channel().await;
        self.subscribers("the channel has no subscriber", 0, 1);
        equal("PUBLISH counts the pattern", self.s.publish(CHANNEL, "1").await, Ok(1));
        let first = p.messages.recv_timeout(WAIT_MAX);
        equal("the pattern's message", first, Ok((true, "1".to_owned())));
        p.subscription.leave_pattern().await;
        self.subscribers("the pattern has no subscriber", 0, 0);
        equal("PUBLISH counts no client", self.s.publish(CHANNEL, "2").await, Ok(0));
        p.subscription.close().await;
        let rest: Vec<(bool, String)> = p.messages.try_iter().collect();
        equal("nothing more came", rest, vec![]);
    }

    async fn pubsub_killed(&mut self) {
        let p = self.subscribed().await;
        self.s.publish(CHANNEL, "before").await.unwrap();
        p.arrived("before", &["before".to_owned()]);
        self.kill();
        eventually("it subscribes again", || {
            // PUBSUB may still count the closed connection.
            let list: String = ask(self.admin, "CLIENT LIST");
            let has_one = |field| list.split(' ').filter(|word| *word == field).count() == 1;
            has_one("sub=1") && has_one("psub=1")
        });
        ask::<()>(self.admin, &format!("PUBLISH {CHANNEL} after"));
        p.arrived("after", &["after".to_owned()]);
        p.subscription.close().await;
        self.subscribers("the end", 0, 0);
        self.reconnected().await;
    }

    async fn shard_channel(&mut self) {
        let (sender, messages) = mpsc::channel();
        let Some(subscription) = self.s.subscribe_shard(CHANNEL, sender).await else { return };
        self.shard_subscribers("it subscribes", 1);
        let sent: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        for text in &sent {
            assert_eq!(self.s.publish_shard(CHANNEL, text).await, Ok(1), "SPUBLISH counts it");
        }
        let next = |_| messages.recv_timeout(WAIT_MAX).expect("a message").1;
        equal("messages", (0..sent.len()).map(next).collect(), sent);
        drop(subscription);
        self.shard_subscribers("the end", 0);
    }

    fn shard_subscribers(&mut self, name: &str, want: i64) {
        eventually(name, || {
            let (_, count): (String, i64) =
                ask(self.admin, &format!("PUBSUB SHARDNUMSUB {CHANNEL}"));
            count == want
        });
    }

    async fn served(&mut self) {
        let keys = ["q", "other"];
        let admin = &mut *self.admin;
        let serve = async {
            let waits = |line: &str| line.contains(" flags=b") && line.contains(" cmd=blpop ");
            let waiting =
                |admin: &mut Connection| ask::<String>(admin, "CLIENT LIST").lines().any(waits);
            while !waiting(admin) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            equal("RPUSH", ask(admin, "RPUSH q job"), 1);
        };
        let serve = tokio::time::timeout(WAIT_MAX, serve);
        let popped = self.s.blpop(&keys, WAIT_MAX.as_secs_f64());
        let (popped, served) = tokio::join!(popped, serve);
        served.expect("BLPOP waits");
        equal("BLPOP", popped, Ok(Some(("q".to_owned(), "job".to_owned()))));
        equal("the list is empty", self.s.exists("q").await, Ok(false));
    }

    async fn timed_out(&self) {
        equal("BLPOP", self.s.blpop(&["q"], 0.05).await, Ok(None));
    }

    async fn reconnection(&mut self) {
        equal("before", self.s.set("k", "v").await, Ok(()));
        self.kill();
        self.reconnected().await;
        equal("after", self.s.get("k").await, Ok(Some("v".to_owned())));
        equal("INCR", self.s.incr_by("n", 1).await, Ok(1));
    }

    async fn cached(&mut self) {
        let own = self.s.cached().await;
        let text = |text: &str| Some(text.to_owned());
        ask::<()>(self.admin, "SET k old");
        equal("the first GET", own.get("k").await, text("old"));
        let before = self.gets();
        for _ in 0..10 {
            equal("more GETs", own.get("k").await, text("old"));
        }
        equal("the server saw none of them", self.gets(), before);
        ask::<()>(self.admin, "SET k new");
        reads("SET invalidates it", &own, text("new")).await;
        let before = self.gets();
        equal("it is cached again", own.get("k").await, text("new"));
        equal("the server did not see it", self.gets(), before);
        ask::<()>(self.admin, if S::SEES_FLUSHALL { "FLUSHALL" } else { "DEL k" });
        reads("its removal invalidates it", &own, None).await;
    }

    /// How often GET ran.
    fn gets(&mut self) -> Option<String> {
        ask::<InfoDict>(self.admin, "INFO commandstats")
            .get::<String>("cmdstat_get")
            .and_then(|stats| stats.split(',').next().map(str::to_owned))
    }

    /// Waits until the library has reconnected. It may notice the lost connection at a request.
    async fn reconnected(&self) {
        let again = async {
            while self.s.exists("none").await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WAIT_MAX, again).await.expect("the library reconnects");
    }

    /// Kills all connections except the admin's, and waits until they are closed.
    fn kill(&mut self) {
        let old = self.ids();
        holds("there are connections", !old.is_empty(), &old);
        for kind in ["normal", "pubsub"] {
            ask::<i64>(self.admin, &format!("CLIENT KILL TYPE {kind}"));
        }
        eventually("the connections are closed", || self.ids().is_disjoint(&old));
    }

    fn ids(&mut self) -> BTreeSet<String> {
        let id = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        self.other_clients().iter().map(id).collect()
    }

    /// The lines of CLIENT LIST except the admin's.
    fn other_clients(&mut self) -> Vec<String> {
        let own = format!("id={} ", ask::<i64>(self.admin, "CLIENT ID"));
        let list: String = ask(self.admin, "CLIENT LIST");
        list.lines().filter(|line| !line.starts_with(&own)).map(str::to_owned).collect()
    }
}

/// Waits until a cache returns the value.
async fn reads(name: &str, own: &impl Cached, want: Option<String>) {
    let changed = async {
        while own.get("k").await != want {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_MAX, changed).await.expect(name);
}
