//! Pub/sub: a subscriber sees each message between the confirmations of its subscription and of
//! its end, once and in order, and no message before or after.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use test_support::Value;

use crate::actor::act;
use crate::connection::{Connection, REPLY_TIME_MAX};
use crate::fault::Fault;
use crate::trouble::{Trouble, wrong};
use crate::world::{World, lock};

/// Channels, each with one publisher that numbers its messages.
pub const CHANNELS: usize = 4;
/// Channels from this number on are shard channels.
const SHARD_CHANNELS_FROM: usize = 3;
const PATTERN: &str = "news:*";
/// How long a subscription lasts at most, in milliseconds.
const STAY_MS_MAX: u64 = 40;

/// The messages of one publisher.
#[derive(Default)]
struct Published {
    /// The number of the last message that was sent.
    begun: AtomicU64,
    /// The number of the last message whose PUBLISH got its reply.
    acknowledged: AtomicU64,
    /// Messages whose PUBLISH has no reply.
    uncertain: Mutex<BTreeSet<u64>>,
}

/// All publishers.
#[derive(Default)]
pub struct Publishers([Published; CHANNELS]);

fn name(channel: usize) -> String {
    format!("{}:{channel}", if channel < SHARD_CHANNELS_FROM { "news" } else { "shard" })
}

/// Publishes on a channel until the run is over.
pub fn publish(world: &World, publishers: &Publishers, channel: usize) {
    let (own, name) = (&publishers.0[channel], name(channel));
    let command = if channel < SHARD_CHANNELS_FROM { "PUBLISH" } else { "SPUBLISH" };
    let script = format!("return redis.call('{command}', ARGV[1], ARGV[2])");
    act(world, &format!("publisher {channel}"), channel % 2 == 1, |connection| {
        let first = own.begun.load(Ordering::Relaxed) + 1;
        let numbers: Vec<String> =
            (first..=first + fastrand::u64(0..5)).map(|number| number.to_string()).collect();
        let last = first + numbers.len() as u64 - 1;
        lock(&own.uncertain).extend(first..=last);
        own.begun.store(last, Ordering::SeqCst);
        let (is_script, is_queued) = (fastrand::u32(0..4) == 0, fastrand::u32(0..4) == 0);
        let publications: Vec<Vec<&str>> = numbers
            .iter()
            .map(|number| match is_script {
                true => vec!["EVAL", &script, "0", &name, number],
                false => vec![command, &name, number],
            })
            .collect();
        let mut requests: Vec<&[&str]> = publications.iter().map(Vec::as_slice).collect();
        if is_queued {
            requests.insert(0, &["MULTI"]);
            requests.push(&["EXEC"]);
        }
        let replies = connection.ask_all(&requests)?;
        let counts = match is_queued {
            true => replies.last().map(Value::elements).unwrap_or_default(),
            false => &replies,
        };
        if counts.len() != numbers.len() || counts.iter().any(|count| count.integer().is_none()) {
            return wrong(format!("{command} is {:?}", replies));
        }
        lock(&own.uncertain).retain(|number| *number < first);
        own.acknowledged.store(last, Ordering::SeqCst);
        let received: i64 = counts.iter().filter_map(Value::integer).sum();
        world.met("messages published", numbers.len() as u64);
        world.met("receivers in replies to publishers", received.unsigned_abs());
        std::thread::sleep(Duration::from_micros(fastrand::u64(0..2000)));
        Ok(())
    });
}

/// One subscription of one client.
struct Subscription {
    /// The last message that was sent before the confirmation: later ones must be seen.
    after: u64,
    /// The last message that was seen.
    seen: Option<u64>,
}

/// The subscriptions of a client by channel.
type Subscriptions = BTreeMap<usize, Subscription>;

/// A message, or a confirmation.
enum Notice {
    Message(usize, u64),
    Begun(Vec<usize>),
    Ended(Vec<usize>),
}

/// Subscribes and unsubscribes until the run is over.
pub fn follow(world: &World, publishers: &Publishers, number: usize) {
    act(world, &format!("subscriber {number}"), number % 2 == 1, |connection| {
        let wanted: Vec<usize> = match fastrand::u32(0..3) {
            0 => (0..SHARD_CHANNELS_FROM).collect(),
            1 => (SHARD_CHANNELS_FROM..CHANNELS).collect(),
            _ => vec![fastrand::usize(0..SHARD_CHANNELS_FROM)],
        };
        let is_pattern = wanted.len() == SHARD_CHANNELS_FROM && fastrand::bool();
        let prefix = match (is_pattern, wanted[0] >= SHARD_CHANNELS_FROM) {
            (true, _) => "P",
            (_, true) => "S",
            _ => "",
        };
        let names: Vec<String> = wanted.iter().map(|channel| name(*channel)).collect();
        let names: Vec<&str> = match is_pattern {
            true => vec![PATTERN],
            false => names.iter().map(String::as_str).collect(),
        };
        let mut round = Round { world, publishers, subscribed: Subscriptions::new() };
        round.begin(connection, &format!("{prefix}SUBSCRIBE"), &names, wanted.len())?;
        let until = Instant::now() + Duration::from_millis(fastrand::u64(0..STAY_MS_MAX));
        while Instant::now() < until {
            round.stay(connection)?;
        }
        round.end(connection, &format!("{prefix}UNSUBSCRIBE"), &names)
    });
}

/// One subscription command with its end.
struct Round<'w> {
    world: &'w World,
    publishers: &'w Publishers,
    subscribed: Subscriptions,
}

impl Round<'_> {
    fn begin(
        &mut self,
        connection: &mut Connection,
        command: &str,
        names: &[&str],
        channels: usize,
    ) -> Result<(), Trouble> {
        let request: Vec<&str> = std::iter::once(command).chain(names.iter().copied()).collect();
        connection.send(&[&request])?;
        while self.subscribed.len() < channels {
            match notice(connection, REPLY_TIME_MAX)? {
                None => return Err(Trouble::Silent),
                Some(Notice::Begun(begun)) => {
                    for channel in begun {
                        let after = self.publishers.0[channel].begun.load(Ordering::SeqCst);
                        self.subscribed.insert(channel, Subscription { after, seen: None });
                    }
                }
                Some(Notice::Message(channel, number)) => self.see(channel, number)?,
                Some(Notice::Ended(_)) => return wrong("an unexpected end of a subscription"),
            }
        }
        self.world.met("subscriptions", channels as u64);
        Ok(())
    }

    /// Reads for a while, or sends another command that a subscriber may send.
    fn stay(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        if connection.resp3 && fastrand::u32(0..8) == 0 {
            let requests: [&[&str]; 4] = [
                &["GET", "counter:0"],
                &["CONFIG", "GET", "io-threads"],
                &["BLPOP", "no-list", "0.01"],
                &["EVAL", "return {1, {2, 3}}", "0"],
            ];
            let request = requests[fastrand::usize(0..requests.len())];
            let reply = connection.ask(request)?;
            if reply.is_error() {
                return wrong(format!("{request:?} of a subscriber is {reply}"));
            }
            self.world.met("requests of subscribers", 1);
        }
        match notice(connection, Duration::from_millis(5))? {
            None => Ok(()),
            Some(Notice::Message(..)) if self.world.plants(Fault::LostMessage, 50) => Ok(()),
            Some(Notice::Message(channel, number)) => {
                if self.world.plants(Fault::RepeatedMessage, 50) {
                    self.see(channel, number)?;
                }
                self.see(channel, number)
            }
            Some(_) => wrong("an unexpected confirmation"),
        }
    }

    fn end(
        mut self,
        connection: &mut Connection,
        command: &str,
        names: &[&str],
    ) -> Result<(), Trouble> {
        let acknowledged: BTreeMap<usize, u64> = self
            .subscribed
            .keys()
            .map(|channel| {
                (*channel, self.publishers.0[*channel].acknowledged.load(Ordering::SeqCst))
            })
            .collect();
        let request: Vec<&str> = std::iter::once(command).chain(names.iter().copied()).collect();
        connection.send(&[&request])?;
        let mut last = None;
        while !self.subscribed.is_empty() {
            match notice(connection, REPLY_TIME_MAX)? {
                None => return Err(Trouble::Silent),
                Some(Notice::Message(channel, number)) => {
                    last = Some((channel, number + 1));
                    self.see(channel, number)?;
                }
                Some(Notice::Ended(ended)) => {
                    for channel in ended {
                        let Some(subscription) = self.subscribed.remove(&channel) else {
                            return wrong(format!("{} was left twice", name(channel)));
                        };
                        let reached = subscription.seen.unwrap_or(subscription.after);
                        self.no_gap(channel, reached, acknowledged[&channel] + 1)?;
                    }
                }
                Some(Notice::Begun(_)) => return wrong("an unexpected subscription"),
            }
        }
        if let Some((channel, number)) = last
            && self.world.plants(Fault::LateMessage, 10)
        {
            self.see(channel, number)?;
        }
        // No message follows: the next value is this reply.
        match connection.ask(&["PING"])? {
            pong if pong.bytes() == Some(b"PONG") => {}
            other => return wrong(format!("{other} arrived after the end of a subscription")),
        }
        match connection.message(Duration::ZERO)? {
            Some(late) => wrong(format!("{late} arrived after the end of a subscription")),
            None => Ok(()),
        }
    }

    /// Checks a message: its channel is subscribed, and no message is missing before it.
    fn see(&mut self, channel: usize, number: u64) -> Result<(), Trouble> {
        self.world.met("messages received", 1);
        let Some(subscription) = self.subscribed.get_mut(&channel) else {
            return wrong(format!("message {number} of {} without subscription", name(channel)));
        };
        let (after, seen) = (subscription.after, subscription.seen.replace(number));
        match seen {
            Some(seen) if number <= seen => {
                wrong(format!("message {number} of {} after {seen}", name(channel)))
            }
            Some(seen) => self.no_gap(channel, seen, number),
            // Messages that were published while the subscription began may be missing.
            None => self.no_gap(channel, after, number),
        }
    }

    /// Fails if a message between these two was certainly published.
    fn no_gap(&self, channel: usize, seen: u64, number: u64) -> Result<(), Trouble> {
        let uncertain = lock(&self.publishers.0[channel].uncertain);
        match (seen + 1..number).find(|number| !uncertain.contains(number)) {
            Some(missing) => {
                wrong(format!("message {missing} of {} is missing before {number}", name(channel)))
            }
            None => Ok(()),
        }
    }
}

/// The next message or confirmation; `None` if none arrives within this time.
fn notice(connection: &mut Connection, within: Duration) -> Result<Option<Notice>, Trouble> {
    let Some(value) = connection.message(within)? else { return Ok(None) };
    let texts: Vec<String> = value
        .elements()
        .iter()
        .map(|element| String::from_utf8_lossy(element.bytes().unwrap_or_default()).into_owned())
        .collect();
    let channels = |name: &str| match name {
        PATTERN => Some((0..SHARD_CHANNELS_FROM).collect()),
        name => Some(vec![name.split_once(':')?.1.parse::<usize>().ok()?]),
    };
    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
    let notice = match &words[..] {
        ["message" | "smessage", channel, number] | ["pmessage", PATTERN, channel, number] => {
            channel.split_once(':').and_then(|(_, channel)| {
                Some(Notice::Message(channel.parse().ok()?, number.parse().ok()?))
            })
        }
        ["subscribe" | "psubscribe" | "ssubscribe", name, _] => channels(name).map(Notice::Begun),
        ["unsubscribe" | "punsubscribe" | "sunsubscribe", name, _] => {
            channels(name).map(Notice::Ended)
        }
        _ => None,
    };
    match notice {
        Some(notice) => Ok(Some(notice)),
        None => wrong(format!("{value} is no message")),
    }
}
