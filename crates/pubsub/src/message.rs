//! A published message, encoded once for all who receive it.
//!
//! ```text
//!   >3 \r\n $7 message \r\n               | $len channel \r\n $len payload \r\n
//!   *4 \r\n $8 pmessage $len pattern \r\n | $len channel \r\n $len payload \r\n
//!   what protocol and subscription decide | the body: the same for everyone
//! ```
//!
//! The body of a long message is shared by everyone's output until it is sent. If it tells of what
//! has happened to a key, no key is evicted for it as long as anyone has it.

use std::ops::Range;
use std::sync::Arc;

use base::uncounted::Uncounted;
use resp::out::Told;
use resp::{Out, Reply};

/// The name of a channel, or a pattern, as all who keep it share it.
pub type Name = Arc<[u8]>;

/// Bodies of more bytes are shared by the outputs of clients, not copied.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;

/// What a client is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// A channel.
    Channel,
    /// All channels that a pattern matches.
    Pattern,
    /// A shard channel, whose name has nothing to do with those of other channels.
    Shard,
    /// The requests that are executed, as MONITOR shows them. There is one such channel, whose name
    /// is empty.
    Requests,
}

/// A channel or pattern, whose name is borrowed or shared.
#[derive(Clone, Copy, Debug)]
pub struct ChannelId<N> {
    /// What it is.
    pub kind: ChannelKind,
    /// Its name.
    pub name: N,
    /// The hash of its name.
    pub hash: u64,
}

impl ChannelKind {
    /// The first element of what its subscribers receive. None: they receive the body as it is.
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
    /// When the message was published, among the changes of patterns.
    pub(crate) moment: u64,
    /// The patterns with their hashes.
    pub(crate) patterns: Vec<(Name, u64)>,
}

/// A message on its way to the subscribers of one thread.
#[derive(Debug)]
pub struct PublishedMessage {
    /// Any but [`ChannelKind::Pattern`].
    pub(crate) kind: ChannelKind,
    /// The hash of the channel's name.
    pub(crate) hash: u64,
    /// When it was published, among the changes of the channels of its bucket.
    pub(crate) moment: u64,
    body: Arc<Told>,
    /// Where the channel's name lies in the body.
    channel: Range<usize>,
    /// None: no pattern matches.
    pub(crate) matches: Option<Arc<Matches>>,
    /// To how many subscriptions it goes on the thread that it is sent to.
    receivers: u32,
    /// What it takes of memory beside its body until it is delivered, if it tells of what has
    /// happened to a key: no key is evicted for that. Otherwise 0.
    uncounted: Uncounted,
}

/// What a delivery of a message takes beside its body, about, in bytes.
pub(crate) const DELIVERY_BYTES: usize = 64;
/// What an event takes on its way to a thread beside its body, about, in bytes, and what it takes
/// for each subscription.
const EVENT_BYTES: usize = 256;
const PENDING_BYTES: usize = 16;

impl PublishedMessage {
    pub(crate) fn new(
        kind: ChannelKind,
        hash: u64,
        moment: u64,
        body: Arc<Told>,
        channel: Range<usize>,
        matches: Option<Arc<Matches>>,
    ) -> Self {
        let uncounted = Uncounted::default();
        Self { kind, hash, moment, body, channel, matches, receivers: 0, uncounted }
    }

    /// Whether it shows a request to clients that MONITOR.
    pub fn is_request(&self) -> bool {
        self.kind == ChannelKind::Requests
    }

    /// The name of the channel that it was published to.
    pub fn channel(&self) -> &[u8] {
        &self.body[self.channel.clone()]
    }

    /// Bytes that every receiver gets of it.
    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    /// What every receiver gets of it.
    pub(crate) fn body(&self) -> &Arc<Told> {
        &self.body
    }

    /// The same for a thread with so many subscriptions that receive it.
    pub(crate) fn to(&self, receivers: usize) -> Self {
        let bytes = EVENT_BYTES + PENDING_BYTES * receivers;
        Self {
            kind: self.kind,
            hash: self.hash,
            moment: self.moment,
            body: Arc::clone(&self.body),
            channel: self.channel.clone(),
            matches: self.matches.clone(),
            receivers: u32::try_from(receivers).unwrap_or(u32::MAX),
            uncounted: Uncounted::new(if self.body.is_of_keys() { bytes } else { 0 }),
        }
    }

    /// Drops the body: nobody waits for it.
    pub(crate) fn drop_body(&mut self) {
        (self.body, self.channel, self.matches) = (Arc::default(), 0..0, None);
        self.uncounted = Uncounted::default();
    }

    /// Bytes that it will have taken in memory when it is delivered, about.
    pub fn weight(&self) -> usize {
        let receivers = self.receivers as usize;
        match self.body.len() {
            len @ 0..=COPIED_BYTES_MAX => (len + DELIVERY_BYTES) * receivers,
            len => len + DELIVERY_BYTES * receivers,
        }
    }
}

/// The body of a message, which may tell of what has happened to a key, and where the channel's
/// name lies in it.
pub(crate) fn encode(channel: &[u8], payload: &[u8], is_event: bool) -> (Arc<Told>, Range<usize>) {
    let mut out = Out::default();
    // Two lengths with what surrounds them take no more.
    out.bytes.reserve_exact(channel.len() + payload.len() + 32);
    let mut reply = Reply::new(&mut out, false);
    reply.bulk(channel);
    let end = reply.mark().bytes - b"\r\n".len();
    reply.bulk(payload);
    let body = if is_event { Told::of_keys(out.bytes) } else { Told::new(out.bytes) };
    (Arc::new(body), end - channel.len()..end)
}

/// Writes a message as a client receives it that is subscribed to the channel, or to `pattern`.
pub(crate) fn write(
    body: &Arc<Told>,
    kind: ChannelKind,
    pattern: Option<&Name>,
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
        _ => out.push_told(Arc::clone(body)),
    }
    if body.is_of_keys() {
        out.note_telling(out.bytes.len() - before);
    }
}
