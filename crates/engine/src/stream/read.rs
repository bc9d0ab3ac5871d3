//! XREAD: reads new entries of streams, or waits for them.

use ds::stream::Id;
use resp::{Args, Reply};
use store::{Key, Lookup, StreamValue};

use crate::args::count::COUNT;
use crate::blocking::{BlockRequest, BlockedOn, ServeOutcome};
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::BlockingHandler;
use command::{Flags, Row};

use super::entry::reply_entries;
use super::id::{parse, to_vec};
use super::request::{BLOCK, STREAMS, StreamRequest, XREAD_KEYS};
use super::spec;
use crate::error::stream::StreamError;

pub(super) const XREAD: Row<BlockingHandler> = Row::new(
    spec("xread", -4, "5.0.0")
        .summary("Returns the entries of streams after given IDs, or blocks until there are some.")
        // Redis documents none.
        .complexity("")
        .flags(Flags::READONLY.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS))
        .keys(&[XREAD_KEYS])
        .arguments(&[COUNT, BLOCK, STREAMS]),
    xread,
);

fn xread(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Option<BlockRequest>, Error> {
    let request = StreamRequest::parse(args, false, cx.turn.unix_ms)?;
    if serve(cx, args, &request, 0..request.keys.len(), reply)? {
        return Ok(None);
    }
    let Some(until_ms) = request.until else {
        reply.null_array();
        return Ok(None);
    };
    let args = resolved(cx, args, &request)?;
    let keys = request.keys.clone();
    let request = BlockRequest::new(BlockedOn::Stream, keys, until_ms, serve_waiting);
    Ok(Some(BlockRequest { args, ..request }))
}

/// The key of stream `nth` and its identifier argument.
pub(super) fn place<'a>(
    cx: &Cx<'_>,
    args: &Args<'a>,
    request: &StreamRequest,
    nth: usize,
) -> (Key<'a>, &'a [u8]) {
    let (key_at, id_at) = request.places(nth);
    (cx.nth_key(args, nth, key_at), args.text(id_at))
}

/// The identifier after which to read.
fn since(stream: Option<&ds::Stream>, text: &[u8]) -> Result<Id, Error> {
    match text {
        // Only entries after this moment.
        b"$" => Ok(stream.map_or(Id::MIN, |stream| stream.log.last_id)),
        // The last entry.
        b"+" => {
            let top = stream.and_then(|stream| stream.log.top_id());
            Ok(top.and_then(Id::previous).unwrap_or(Id::MIN))
        }
        b">" => Err(StreamError::NewOnly.into()),
        _ => parse(text, 0),
    }
}

/// The arguments with `$` resolved, if they contain one: it means the moment of the request and not
/// that of the reply.
fn resolved(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    request: &StreamRequest,
) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let mut resolved: Option<Vec<Vec<u8>>> = None;
    for nth in 0..request.keys.len() {
        let (key, id) = place(cx, args, request, nth);
        if id != b"$" {
            continue;
        }
        let (db, turn) = cx.db(key);
        let stored = db.lookup(turn, key, Lookup::Quiet);
        let id = since(stored.and_then(|stored| stored.view::<StreamValue>()), id)?;
        let all = resolved.get_or_insert_with(|| args.iter().map(<[u8]>::to_vec).collect());
        all[request.places(nth).1] = to_vec(id);
    }
    Ok(resolved)
}

fn serve_waiting(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<ServeOutcome, Error> {
    // The end of the wait was checked when it began, and no longer matters.
    let request = StreamRequest::parse(args, false, 0)?;
    let streams = reachable(cx, args, &request, key).into_iter();
    serve(cx, args, &request, streams, reply).map(ServeOutcome::from)
}

/// The streams from which a request that waited is answered: the one under `key`, and those whose
/// shards are free. A stream in another shard has no new entries since, because every writer serves
/// the request too.
pub(super) fn reachable(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    request: &StreamRequest,
    key: Key<'_>,
) -> Vec<usize> {
    let mut is_held = |nth: &usize| {
        let (own, _) = place(cx, args, request, *nth);
        own.bytes == key.bytes || cx.shards.try_hold(cx.map.shard_of(own.hash))
    };
    (0..request.keys.len()).filter(|nth| is_held(nth)).collect()
}

/// Replies the new entries of some of the request's streams, given by number. Returns whether there
/// were any; if not, nothing is replied.
fn serve(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    request: &StreamRequest,
    streams: impl ExactSizeIterator<Item = usize> + Clone,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    // An error of the last stream must be reported before anything of the first is replied.
    let several = streams.len() > 1;
    for nth in streams.clone().filter(|_| several) {
        let (key, id) = place(cx, args, request, nth);
        let (db, turn) = cx.db(key);
        since(db.read::<StreamValue>(turn, key)?, id)?;
    }
    let mut answer = StreamsReply::new(request.keys.len());
    for nth in streams {
        let (key, id) = place(cx, args, request, nth);
        let (db, turn) = cx.db(key);
        let number = db.number() as u32;
        let stream = db.read::<StreamValue>(turn, key)?;
        let since = since(stream, id)?;
        // Redis looks each stream up twice, even a single one.
        if !several {
            let found = u64::from(stream.is_some());
            turn.counters.hits += found;
            turn.counters.misses += 1 - found;
            if found == 0 {
                turn.effects.note_miss(number, key.bytes);
            }
        }
        let (Some(stream), Some(from)) = (stream, since.next()) else { continue };
        if stream.log.top_id().is_some_and(|top| top > since) {
            answer.begin_stream(reply, key.bytes);
            reply_entries(reply, stream.log.range(from, Id::MAX), request.count);
        }
    }
    Ok(answer.finish(reply))
}

/// The frame of a reply: streams with their entries, a map in RESP3.
pub(super) struct StreamsReply {
    streams: usize,
    deferred: Option<resp::reply::DeferredLength>,
    len: usize,
}

impl StreamsReply {
    /// A reply of at most this many streams.
    pub(super) fn new(streams: usize) -> Self {
        Self { streams, deferred: None, len: 0 }
    }

    /// Begins a stream, whose entries follow.
    pub(super) fn begin_stream(&mut self, reply: &mut Reply<'_>, key: &[u8]) {
        let resp3 = reply.resp3();
        if self.len == 0 {
            match (self.streams, resp3) {
                (1, true) => reply.map(1),
                (1, false) => reply.array(1),
                (_, true) => self.deferred = Some(reply.map_deferred()),
                (_, false) => self.deferred = Some(reply.array_deferred()),
            }
        }
        self.len += 1;
        if !resp3 {
            reply.array(2);
        }
        reply.bulk(key);
    }

    /// Ends the reply. Returns whether there is one.
    pub(super) fn finish(self, reply: &mut Reply<'_>) -> bool {
        if let Some(deferred) = self.deferred {
            reply.finish(deferred, self.len);
        }
        self.len > 0
    }
}
