//! XREADGROUP: reads as a consumer of a group.

use ds::stream::{ConsumerGroup, Handle, Id, Pending, StreamLog};
use resp::{Args, Reply};
use store::{Key, StreamValue};

use crate::args::count::COUNT;
use crate::blocking::{BlockRequest, BlockedOn, ServeOutcome};
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::exec::BlockingHandler;
use command::{Argument, Flags, Row, Shape};

use super::entry::{reply_content, reply_entry};
use super::id::{parse, reply_id};
use super::read::{StreamsReply, place, reachable};
use super::replay::{GroupReader, ReplayedClaim};
use super::request::{BLOCK, STREAMS, StreamRequest, XREADGROUP_KEYS};
use super::{CONSUMER, CONSUMER_MADE, GROUP, asking, idle_ms, spec};
use crate::error::stream::StreamError;

pub(super) const XREADGROUP: Row<BlockingHandler> = Row::new(
    spec("xreadgroup", -7, "5.0.0")
        .summary(
            "Returns entries of streams for a consumer of a group, or blocks until there are some.",
        )
        .complexity("O(log M + N) for each stream of M entries of which N are returned.")
        .flags(Flags::WRITE.with(Flags::BLOCKING).with(Flags::MOVABLE_KEYS))
        .keys(&[XREADGROUP_KEYS])
        .arguments(&[
            Argument::new("group-block", Shape::Block(&[GROUP, CONSUMER])).after("GROUP"),
            COUNT,
            BLOCK,
            Argument::new("min-idle-time", Shape::Integer).after("CLAIM").since("8.4.0").optional(),
            Argument::word("noack", "NOACK").optional(),
            STREAMS,
        ])
        .history(&[("8.4.0", "`CLAIM` also reads what has been pending for long.")]),
    xreadgroup,
);

/// The consumer and the options of a read.
struct GroupRead<'a> {
    request: &'a StreamRequest,
    group: &'a [u8],
    consumer: &'a [u8],
    now_ms: i64,
    /// Whether deliveries must be recorded for a replay.
    replayed: bool,
}

/// The changes of a read in one stream.
#[derive(Default)]
struct GroupChanges {
    /// The consumer was created.
    made: bool,
    /// New entries were delivered: how far the group has read.
    read: Option<(Id, i64)>,
    /// Entries became pending or were taken over.
    any_claims: bool,
    /// These entries, if they will be replayed.
    claims: Vec<ReplayedClaim>,
    /// The group's last entry.
    last_id: Id,
}

/// The result of reading the streams.
struct GroupLook {
    /// Entries were replied.
    replied: bool,
    /// If not, and pending entries are read as well: when each stream has an entry that is old
    /// enough.
    retry_at_ms: Vec<Option<i64>>,
}

fn xreadgroup(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<Option<BlockRequest>, Error> {
    let request = StreamRequest::parse(args, true, cx.turn.unix_ms)?;
    let look = serve(cx, args, &request, 0..request.keys.len(), None, reply)?;
    if look.replied {
        return Ok(None);
    }
    let Some(until_ms) = request.until else {
        reply.null_array();
        return Ok(None);
    };
    let keys = request.keys.clone();
    let request = BlockRequest::new(BlockedOn::StreamGroup, keys, until_ms, serve_waiting);
    Ok(Some(BlockRequest { retry_at_ms: look.retry_at_ms, ..request }))
}

fn check_groups(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    request: &StreamRequest,
    streams: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    let group = args.text(request.group_at.unwrap_or_default());
    for nth in streams {
        let (key, id) = place(cx, args, request, nth);
        let (db, turn) = cx.db(key);
        let stream = db.read::<StreamValue>(turn, key)?;
        if stream.is_none_or(|stream| stream.groups.find(group).is_none()) {
            return Err(StreamError::NoGroupToRead(echo(key.bytes), echo(group)).into());
        }
        history_from(id)?;
    }
    Ok(())
}

/// The first identifier of the requested history, or `None` for `>`, which asks for new entries.
fn history_from(id: &[u8]) -> Result<Option<Id>, Error> {
    match id {
        b">" => Ok(None),
        b"$" => Err(StreamError::Meaningless('$').into()),
        b"+" => Err(StreamError::Meaningless('+').into()),
        // No entry follows the highest identifier, and Redis treats it as `>`.
        _ => Ok(parse(id, 0)?.next()),
    }
}

fn serve_waiting(
    cx: &mut Cx<'_>,
    key: Key<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<ServeOutcome, Error> {
    let request = StreamRequest::parse(args, true, 0)?;
    let streams = reachable(cx, args, &request, key).into_iter();
    let look = serve(cx, args, &request, streams, Some(key.bytes), reply)?;
    Ok(match (look.replied, look.retry_at_ms.into_iter().flatten().min()) {
        (true, _) => ServeOutcome::Replied,
        (false, Some(retry_at_ms)) => ServeOutcome::NothingUntil(retry_at_ms),
        (false, None) => ServeOutcome::Nothing,
    })
}

/// Replies the entries of some of the request's streams, given by number, for the consumer. A
/// request that waited is served because of the stream under `served_for`. Without entries, nothing
/// is replied.
fn serve(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    request: &StreamRequest,
    streams: impl ExactSizeIterator<Item = usize> + Clone,
    served_for: Option<&[u8]>,
    reply: &mut Reply<'_>,
) -> Result<GroupLook, Error> {
    // An error of the last stream must be reported before anything of the first is changed.
    let several = streams.len() > 1;
    if several {
        check_groups(cx, args, request, streams.clone())?;
    }
    let group_at = request.group_at.unwrap_or_default();
    let reading = GroupRead {
        request,
        group: args.text(group_at),
        consumer: args.text(group_at + 1),
        now_ms: cx.turn.unix_ms,
        replayed: cx.turn.effects.is_consumed(),
    };
    let mut answer = StreamsReply::new(request.keys.len());
    let mut retry_at_ms = Vec::new();
    for nth in streams {
        let (key, id) = place(cx, args, request, nth);
        let (db, turn) = cx.db(key);
        let no_group = || StreamError::NoGroupToRead(echo(key.bytes), echo(reading.group));
        let mut edit = db.read_and_edit::<StreamValue>(turn, key)?.ok_or_else(no_group)?;
        let ds::Stream { log, groups } = edit.stream_unchanged_mut();
        let group = groups.find_mut(reading.group).ok_or_else(no_group)?;
        let changes = match history_from(id)? {
            Some(from) => {
                answer.begin_stream(reply, key.bytes);
                reading.reply_history(log, group, from, reply)
            }
            None => {
                let old = reading.claimable(log, group);
                let any_new = log.top_id().is_some_and(|top| top > group.last_id);
                if any_new || !old.is_empty() {
                    answer.begin_stream(reply, key.bytes);
                    reading.reply_new(log, group, &old, reply)
                } else {
                    if request.claim_ms.is_some() {
                        retry_at_ms.push(reading.retry_at_ms(log, group));
                    }
                    let has_waited = served_for.is_some();
                    let made = !has_waited && asking(group, reading.consumer, reading.now_ms).1;
                    GroupChanges { made, ..GroupChanges::default() }
                }
            }
        };
        let delivered = changes.any_claims || changes.read.is_some();
        if changes.made || delivered {
            edit.set_groups_changed();
        }
        drop(edit);
        // Redis looks each stream up twice, even a single one.
        cx.turn.counters.hits += u64::from(!several);
        if changes.made && delivered {
            cx.turn.counters.changes += 1;
        }
        if changes.any_claims && served_for != Some(key.bytes) {
            // Clients may wait until these entries have been pending for a time.
            cx.turn.effects.change(None, key.bytes);
        }
        reading.note(cx, key.bytes, &changes);
    }
    Ok(GroupLook { replied: answer.finish(reply), retry_at_ms })
}

impl GroupRead<'_> {
    /// Replies the consumer's pending entries from an identifier on.
    fn reply_history(
        &self,
        log: &StreamLog,
        group: &mut ConsumerGroup,
        from: Id,
        reply: &mut Reply<'_>,
    ) -> GroupChanges {
        let (handle, made) = asking(group, self.consumer, self.now_ms);
        let pending = group.consumer(handle).pending_ids(from..=Id::MAX);
        let ids: Vec<Id> = pending.take(self.entries_max()).collect();
        reply.array(ids.len());
        for id in ids {
            match (log.entry(id), group.pending(id).copied()) {
                (Some(entry), Some(old)) => {
                    reply_entry(reply, &entry);
                    let deliveries = old.deliveries.saturating_add(1);
                    group.deliver(id, Pending { delivered_ms: self.now_ms, deliveries, ..old });
                }
                _ => {
                    // The entry was deleted, which null instead of its fields shows.
                    reply.array(2);
                    reply_id(reply, id);
                    reply.null_array();
                }
            }
        }
        GroupChanges { made, ..GroupChanges::default() }
    }

    fn entries_max(&self) -> usize {
        match self.request.count {
            0 => usize::MAX,
            count => count as usize,
        }
    }

    /// The entries that have been pending long enough to be read as well, the longest first.
    fn claimable(&self, log: &StreamLog, group: &mut ConsumerGroup) -> Vec<Id> {
        let Some(idle_ms) = self.request.claim_ms else { return Vec::new() };
        let ids = group.delivered_until(self.now_ms.saturating_sub(idle_ms));
        ids.filter(|id| log.entry(*id).is_some()).take(self.entries_max()).collect()
    }

    /// When the next entry will have been pending for long enough.
    fn retry_at_ms(&self, log: &StreamLog, group: &mut ConsumerGroup) -> Option<i64> {
        let idle_ms = self.request.claim_ms?;
        let oldest = group.delivered_until(i64::MAX).find(|id| log.entry(*id).is_some())?;
        group.pending(oldest)?.delivered_ms.checked_add(idle_ms)
    }

    /// Replies entries that have been pending for long, then entries that are new to the group.
    fn reply_new(
        &self,
        log: &StreamLog,
        group: &mut ConsumerGroup,
        old: &[Id],
        reply: &mut Reply<'_>,
    ) -> GroupChanges {
        let (handle, made) = asking(group, self.consumer, self.now_ms);
        let mut changes = GroupChanges { made, ..GroupChanges::default() };
        let deferred = reply.array_deferred();
        for id in old {
            if let (Some(entry), Some(pending)) = (log.entry(*id), group.pending(*id).copied()) {
                reply.array(4);
                reply_content(reply, &entry);
                reply.int(idle_ms(self.now_ms, pending.delivered_ms));
                reply.int(pending.deliveries);
                self.deliver(
                    group,
                    handle,
                    *id,
                    pending.deliveries.saturating_add(1),
                    &mut changes,
                );
            }
        }
        let first = log.first_id().unwrap_or(Id::MIN);
        let from = group.last_id.next().unwrap_or(Id::MAX);
        let left = self.entries_max().saturating_sub(old.len());
        let mut len = old.len();
        for entry in log.range(from, Id::MAX).take(left) {
            group.advance(log, first, entry.id);
            changes.read = Some((group.last_id, group.entries_read));
            if self.request.claim_ms.is_some() {
                reply.array(4);
                reply_content(reply, &entry);
                reply.int(0);
                reply.int(0);
            } else {
                reply_entry(reply, &entry);
            }
            if !self.request.no_ack {
                self.deliver(group, handle, entry.id, 1, &mut changes);
            }
            len += 1;
        }
        reply.finish(deferred, len);
        changes.last_id = group.last_id;
        changes
    }

    fn deliver(
        &self,
        group: &mut ConsumerGroup,
        consumer: Handle,
        id: Id,
        deliveries: i64,
        changes: &mut GroupChanges,
    ) {
        let delivered_ms = self.now_ms;
        group.deliver(id, Pending { consumer, delivered_ms, deliveries });
        group.consumer_mut(consumer).active_ms = delivered_ms;
        changes.any_claims = true;
        if self.replayed {
            changes.claims.push(ReplayedClaim { id, delivered_ms, deliveries });
        }
    }

    /// Records what was changed in a stream, and how to replay it.
    fn note(&self, cx: &mut Cx<'_>, key: &[u8], changes: &GroupChanges) {
        if changes.made {
            cx.turn.effects.note_unawaited(CONSUMER_MADE, key);
        } else if changes.any_claims || changes.read.is_some() {
            cx.turn.effects.note_eventless();
        } else {
            return;
        }
        let reader = GroupReader { key, group: self.group, consumer: self.consumer };
        let effects = &mut cx.turn.effects;
        if changes.made && !changes.any_claims {
            effects.also_replay(|replay| replay.args(reader.create()));
        }
        for command in reader.claims(&changes.claims, changes.last_id) {
            effects.also_replay(|replay| replay.args(command));
        }
        if let Some((last_id, entries_read)) = changes.read {
            effects.also_replay(|replay| replay.args(reader.set_id(last_id, entries_read)));
        }
    }
}
