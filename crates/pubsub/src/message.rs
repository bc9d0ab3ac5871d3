//! A published message, encoded once for all receivers.
//!
//! ```text
//!   >3 \r\n $7 message \r\n               | $len channel \r\n $len payload \r\n
//!   *4 \r\n $8 pmessage $len pattern \r\n | $len channel \r\n $len payload \r\n
//!   depends on protocol and subscription  | the body: the same for all receivers
//! ```
//!
//! The outputs of all receivers share the body of a long message until it is sent. While a receiver
//! still keeps the body of a keyspace event, no key is evicted for its memory.

use std::ops::Range;
use std::sync::Arc;

use base::uncounted::Uncounted;
use resp::out::SharedMessage;
use resp::{Out, Reply};

/// The name of a channel or a pattern, shared by everything that keeps it.
pub type SharedName = Arc<[u8]>;

/// Bodies of more bytes are shared by the outputs of clients and not copied.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;

/// The kinds of subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// A channel.
    Channel,
    /// All channels that a pattern matches.
    Pattern,
    /// A shard channel. Its name is independent of other channels' names.
    Shard,
    /// The executed requests, as MONITOR shows them. There is one such channel, with an empty name.
    Requests,
}

/// A channel or pattern, whose name is borrowed or shared.
#[derive(Clone, Copy, Debug)]
pub struct ChannelId<N> {
    /// The kind of subscription.
    pub kind: ChannelKind,
    /// Its name.
    pub name: N,
    /// The hash of its name.
    pub hash: u64,
}

impl ChannelKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Channel, Self::Pattern, Self::Shard, Self::Requests];

    /// The first element of what subscribers receive, or `None` if they receive only the body.
    fn word(self) -> Option<&'static [u8]> {
        match self {
            Self::Channel => Some(b"message"),
            Self::Pattern => Some(b"pmessage"),
            Self::Shard => Some(b"smessage"),
            Self::Requests => None,
        }
    }
}

/// The patterns that match a message's channel.
#[derive(Debug)]
pub struct Matches {
    /// The moment of publication, in the sequence of pattern changes.
    pub(crate) moment: u64,
    /// The patterns with their hashes.
    pub(crate) patterns: Vec<(SharedName, u64)>,
}

/// A message on its way to the subscribers of one thread.
#[derive(Debug)]
pub struct PublishedMessage {
    /// Any but [`ChannelKind::Pattern`].
    pub(crate) kind: ChannelKind,
    /// The hash of the channel's name.
    pub(crate) hash: u64,
    /// The moment of publication, in the sequence of channel changes in its bucket.
    pub(crate) moment: u64,
    /// The epoch in which it was published.
    pub(crate) epoch: usize,
    body: Arc<SharedMessage>,
    /// The position of the channel's name in the body.
    channel: Range<usize>,
    /// `None` if no pattern matches.
    pub(crate) matches: Option<Arc<Matches>>,
    /// The number of subscriptions that receive it on the destination thread.
    receivers: u32,
    /// The memory of a keyspace event in addition to its body, until it is delivered: no key is
    /// evicted for it. Otherwise 0.
    _uncounted: Uncounted,
}

/// The approximate bytes that a delivery takes in addition to the message's body.
pub(crate) const DELIVERY_BYTES: usize = 64;
/// The approximate bytes that an event takes on its way to a thread in addition to its body, and
/// those for each subscription.
const EVENT_BYTES: usize = 256;
const PENDING_BYTES: usize = 16;

impl PublishedMessage {
    pub(crate) fn new(
        kind: ChannelKind,
        hash: u64,
        moment: u64,
        body: Arc<SharedMessage>,
        channel: Range<usize>,
        matches: Option<Arc<Matches>>,
    ) -> Self {
        let _uncounted = Uncounted::default();
        Self { kind, hash, moment, epoch: 0, body, channel, matches, receivers: 0, _uncounted }
    }

    /// Whether it shows a request to MONITOR clients.
    pub fn is_request(&self) -> bool {
        self.kind == ChannelKind::Requests
    }

    /// The name of the channel that it was published to.
    pub fn channel(&self) -> &[u8] {
        &self.body[self.channel.clone()]
    }

    /// Bytes that every receiver gets.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// The bytes that every receiver gets.
    pub(crate) fn body(&self) -> &Arc<SharedMessage> {
        &self.body
    }

    /// A copy for a thread with this number of receiving subscriptions.
    pub(crate) fn to(&self, receivers: usize) -> Self {
        let bytes = EVENT_BYTES + PENDING_BYTES * receivers;
        Self {
            kind: self.kind,
            hash: self.hash,
            moment: self.moment,
            epoch: self.epoch,
            body: Arc::clone(&self.body),
            channel: self.channel.clone(),
            matches: self.matches.clone(),
            receivers: u32::try_from(receivers).unwrap_or(u32::MAX),
            _uncounted: Uncounted::new(if self.body.is_about_keys() { bytes } else { 0 }),
        }
    }

    /// The approximate memory that it will take when it is delivered.
    pub fn weight(&self) -> usize {
        // It is taken in also where clients are about to arrive.
        let receivers = self.receivers.max(1) as usize;
        match self.body.len() {
            len @ 0..=COPIED_BYTES_MAX => (len + DELIVERY_BYTES) * receivers,
            len => len + DELIVERY_BYTES * receivers,
        }
    }
}

/// The body of a message and the position of the channel's name in it.
pub(crate) fn encode(
    channel: &[u8],
    payload: &[u8],
    is_event: bool,
) -> (Arc<SharedMessage>, Range<usize>) {
    let mut out = Out::default();
    // Two lengths and their delimiters take no more than this.
    out.bytes.reserve_exact(channel.len() + payload.len() + 32);
    let mut reply = Reply::new(&mut out, false);
    reply.bulk(channel);
    let end = reply.mark().bytes - b"\r\n".len();
    reply.bulk(payload);
    let body =
        if is_event { SharedMessage::about_keys(out.bytes) } else { SharedMessage::new(out.bytes) };
    (Arc::new(body), end - channel.len()..end)
}

/// Writes a message for a client that is subscribed to the channel, or to `pattern`.
pub(crate) fn write(
    body: &Arc<SharedMessage>,
    kind: ChannelKind,
    pattern: Option<&SharedName>,
    out: &mut Out,
    resp3: bool,
) {
    let before = out.bytes.len();
    let mut reply = Reply::new(out, resp3);
    let kind = if pattern.is_some() { ChannelKind::Pattern } else { kind };
    if let Some(word) = kind.word() {
        reply.push(3 + usize::from(pattern.is_some()));
        reply.bulk(word);
    }
    if let Some(pattern) = pattern {
        reply.bulk(pattern);
    }
    match body.len() {
        0..=COPIED_BYTES_MAX => reply.raw(body),
        _ => out.push_message(Arc::clone(body)),
    }
    if body.is_about_keys() {
        out.count_notification(out.bytes.len() - before);
    }
}
