//! XCLAIM and XAUTOCLAIM: pending entries are given to another consumer.

use base::number::parse_i64;
use ds::stream::{ConsumerGroup, Handle, Id, Pending, StreamLog};
use resp::{Args, Reply};
use store::StreamValue;

use crate::args::count;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape};

use super::entry::reply_entry;
use super::id::{parse, parse_from, reply_id};
use super::replay::{GroupReader, ReplayedClaim};
use super::{CONSUMER, CONSUMER_MADE, DELETE_KEY, GROUP, IDS, UPDATE_KEY, asking, needed, spec};
use crate::error::stream::StreamError;

/// The number of entries that XAUTOCLAIM claims without COUNT.
const COUNT: usize = 100;
/// Entries that it looks at for each entry it may claim.
const LOOKS_PER_CLAIM: usize = 10;
/// The highest count, as in Redis on a machine of 64 bits.
const COUNT_MAX: i64 = i64::MAX / 16;

const WRITE: Flags = Flags::WRITE.with(Flags::FAST);
const MIN_IDLE: Argument = Argument::new("min-idle-time", Shape::String);
const JUST_ID: Argument = Argument::word("justid", "JUSTID").optional();

pub(super) const XCLAIM: Row<Handler> = Row::new(
    spec("xclaim", -6, "5.0.0")
        .summary("Claims pending entries for a consumer, as if they had been delivered to it.")
        .complexity("O(log M) for each ID with M entries pending.")
        .flags(WRITE)
        .keys(UPDATE_KEY)
        .arguments(&[
            Argument::key(),
            GROUP,
            CONSUMER,
            MIN_IDLE,
            IDS,
            Argument::new("ms", Shape::Integer).after("IDLE").optional(),
            Argument::new("unix-time-milliseconds", Shape::UnixTime).after("TIME").optional(),
            Argument::new("count", Shape::Integer).after("RETRYCOUNT").optional(),
            Argument::word("force", "FORCE").optional(),
            JUST_ID,
            Argument::new("lastid", Shape::String).after("LASTID").optional(),
        ])
        .tips(&["nondeterministic_output"]),
    xclaim,
);

pub(super) const XAUTOCLAIM: Row<Handler> = Row::new(
    spec("xautoclaim", -6, "6.2.0")
        .summary("Iterates over pending entries, and claims those that have been idle for long.")
        .complexity("O(log M + N) for N entries examined of M pending.")
        .flags(WRITE)
        .keys(DELETE_KEY)
        .arguments(&[
            Argument::key(),
            GROUP,
            CONSUMER,
            MIN_IDLE,
            Argument::new("start", Shape::String),
            count::COUNT,
            JUST_ID,
        ])
        .history(&[("7.0.0", "A third part of the reply names deleted entries, pending no more.")])
        .tips(&["nondeterministic_output"]),
    xautoclaim,
);

/// The options of a claim.
struct Claiming {
    /// The least time for which entries must have been pending.
    min_idle_ms: i64,
    now_ms: i64,
    /// The new time of delivery.
    delivered_ms: i64,
    /// The new number of deliveries, if given.
    deliveries: Option<i64>,
    /// Whether entries that are not pending become pending.
    force: bool,
    /// Whether a deleted entry that is not pending becomes pending too: a base of commands has
    /// such entries, and a logged claim that ended one finds it pending.
    restores: bool,
    /// Whether to reply only identifiers, and not to count a delivery.
    just_id: bool,
    /// The group has read at least up to here.
    last_id: Id,
}

/// The result for an entry.
enum ClaimOutcome {
    Claimed(Pending),
    /// It was deleted from the stream, and is no longer pending.
    Deleted(Pending),
    Left,
}

impl Claiming {
    fn new(min_idle: &[u8], command: &'static str, now_ms: i64) -> Result<Self, Error> {
        let min_idle_ms =
            parse_i64(min_idle).ok_or(StreamError::Argument("min-idle-time", command))?;
        Ok(Self {
            min_idle_ms: min_idle_ms.max(0),
            now_ms,
            delivered_ms: now_ms,
            deliveries: None,
            force: false,
            restores: false,
            just_id: false,
            last_id: Id::MIN,
        })
    }

    /// Gives an entry to a consumer.
    fn claim(
        &self,
        log: &StreamLog,
        group: &mut ConsumerGroup,
        consumer: Handle,
        id: Id,
    ) -> ClaimOutcome {
        let old = group.pending(id).copied();
        let is_restored = self.restores && old.is_none();
        if !is_restored && log.entry(id).is_none() {
            group.acknowledge(id);
            return old.map_or(ClaimOutcome::Left, ClaimOutcome::Deleted);
        }
        let base = match old {
            Some(old) => {
                let idle_ms = self.now_ms.saturating_sub(old.delivered_ms);
                if self.min_idle_ms > 0 && idle_ms < self.min_idle_ms {
                    return ClaimOutcome::Left;
                }
                old.deliveries
            }
            None if self.force => 1,
            None => return ClaimOutcome::Left,
        };
        let counted = base.saturating_add(i64::from(!self.just_id));
        let deliveries = self.deliveries.unwrap_or(counted);
        let pending = Pending { consumer, delivered_ms: self.delivered_ms, deliveries };
        group.deliver(id, pending);
        group.consumer_mut(consumer).active_ms = self.now_ms;
        ClaimOutcome::Claimed(pending)
    }

    fn reply(&self, reply: &mut Reply<'_>, log: &StreamLog, id: Id) {
        match log.entry(id) {
            Some(entry) if !self.just_id => reply_entry(reply, &entry),
            _ => reply_id(reply, id),
        }
    }
}

/// The changes of a command.
#[derive(Default)]
struct ClaimChanges {
    made: bool,
    claims: Vec<ReplayedClaim>,
    /// The group's last entry, and how far it has read if that advanced.
    last_id: Id,
    moved: Option<i64>,
}

impl ClaimChanges {
    fn push(&mut self, id: Id, pending: &Pending) {
        let Pending { delivered_ms, deliveries, .. } = *pending;
        self.claims.push(ReplayedClaim { id, delivered_ms, deliveries });
    }

    fn len(&self) -> u64 {
        let moved = self.claims.is_empty() && self.moved.is_some();
        self.claims.len() as u64 + u64::from(self.made) + u64::from(moved)
    }

    /// Records the changes, and how to replay them.
    fn note(&self, cx: &mut Cx<'_>, reader: GroupReader<'_>) {
        let Some(more) = self.len().checked_sub(1) else { return };
        cx.turn.counters.changes += more;
        if self.made {
            cx.turn.effects.note_unawaited(CONSUMER_MADE, reader.key);
        } else {
            cx.turn.effects.note_eventless();
        }
        let effects = &mut cx.turn.effects;
        if !self.claims.is_empty() {
            // Clients may wait until these entries have been pending for a time.
            effects.change(None, reader.key);
        }
        if !effects.is_consumed() {
            return;
        }
        if self.claims.is_empty() && self.made {
            effects.also_replay(|replay| replay.args(reader.create()));
        }
        for command in reader.claims(&self.claims, self.last_id) {
            effects.also_replay(|replay| replay.args(command));
        }
        if let Some(entries_read) = self.moved.filter(|_| self.claims.is_empty()) {
            effects.also_replay(|replay| replay.args(reader.set_id(self.last_id, entries_read)));
        }
    }
}

fn reader<'a>(args: &Args<'a>) -> GroupReader<'a> {
    GroupReader { key: args.text(1), group: args.text(2), consumer: args.text(3) }
}

/// Reads the options of XCLAIM and finds the end of its identifiers.
fn parse_claim(args: &Args<'_>, now_ms: i64) -> Result<(Claiming, usize), Error> {
    let mut claiming = Claiming::new(args.text(4), "XCLAIM", now_ms)?;
    let ids = (5..args.len()).take_while(|at| parse(args.text(*at), 0).is_ok());
    let end = 5 + ids.count();
    let mut delivered_ms = None;
    let mut at = end;
    while at < args.len() {
        let (word, value) = (args.text(at), args.at(at + 1));
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let integer =
            |value, option| parse_i64(value).ok_or(StreamError::Argument(option, "XCLAIM"));
        match value {
            _ if is("FORCE") => claiming.force = true,
            _ if is("JUSTID") => claiming.just_id = true,
            Some(value) if is("IDLE") => {
                let idle_ms = integer(value, "IDLE option")?;
                delivered_ms = Some(now_ms.wrapping_sub(idle_ms));
            }
            Some(value) if is("TIME") => delivered_ms = Some(integer(value, "TIME option")?),
            Some(value) if is("RETRYCOUNT") => {
                let count = integer(value, "RETRYCOUNT option")?;
                claiming.deliveries = Some(count).filter(|count| *count >= 0);
            }
            Some(value) if is("LASTID") => claiming.last_id = parse(value, 0)?,
            _ => return Err(StreamError::ClaimOption(echo(word)).into()),
        }
        at += if is("FORCE") || is("JUSTID") { 1 } else { 2 };
    }
    // A time from another clock can be out of range, which is not an error.
    let is_sane = |at: &i64| (0..=now_ms).contains(at);
    claiming.delivered_ms = delivered_ms.filter(is_sane).unwrap_or(now_ms);
    Ok((claiming, end))
}

fn xclaim(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (key, now_ms) = (cx.first_key(args, 1), cx.turn.unix_ms);
    let is_replay = cx.turn.is_replay();
    let (db, turn) = cx.db(key);
    let mut edit = needed(db.read_and_edit::<StreamValue>(turn, key)?, key.bytes, args.text(2))?;
    let ds::Stream { log, groups } = edit.stream_unchanged_mut();
    let group = needed(groups.find_mut(args.text(2)), key.bytes, args.text(2))?;
    let (mut claiming, end) = parse_claim(args, now_ms)?;
    claiming.restores = claiming.force && is_replay;
    let mut changes = ClaimChanges::default();
    if claiming.last_id > group.last_id {
        group.last_id = claiming.last_id;
        changes.moved = Some(group.entries_read);
    }
    changes.last_id = group.last_id;
    let (consumer, made) = asking(group, args.text(3), now_ms);
    changes.made = made;
    let deferred = reply.array_deferred();
    let mut len = 0;
    for at in 5..end {
        let id = parse(args.text(at), 0)?;
        match claiming.claim(log, group, consumer, id) {
            ClaimOutcome::Claimed(pending) => {
                claiming.reply(reply, log, id);
                len += 1;
                changes.push(id, &pending);
            }
            ClaimOutcome::Deleted(pending) => changes.push(id, &pending),
            ClaimOutcome::Left => {}
        }
    }
    reply.finish(deferred, len);
    if changes.len() > 0 {
        edit.set_groups_changed();
    }
    drop(edit);
    changes.note(cx, reader(args));
    Ok(())
}

fn xautoclaim(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (key, now_ms) = (cx.first_key(args, 1), cx.turn.unix_ms);
    let mut claiming = Claiming::new(args.text(4), "XAUTOCLAIM", now_ms)?;
    let from = parse_from(args.text(5))?;
    let mut count = COUNT;
    args.seek(6);
    while let Some(word) = args.next() {
        if word.eq_ignore_ascii_case(b"COUNT") && args.remaining() > 0 {
            let given = args.next().and_then(parse_i64);
            let given = given.filter(|count| (1..=COUNT_MAX).contains(count));
            count = given.ok_or(StreamError::ClaimCount)? as usize;
        } else if word.eq_ignore_ascii_case(b"JUSTID") {
            claiming.just_id = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    let (db, turn) = cx.db(key);
    let mut edit = needed(db.read_and_edit::<StreamValue>(turn, key)?, key.bytes, args.text(2))?;
    let ds::Stream { log, groups } = edit.stream_unchanged_mut();
    let group = needed(groups.find_mut(args.text(2)), key.bytes, args.text(2))?;
    let (consumer, made) = asking(group, args.text(3), now_ms);
    let mut changes = ClaimChanges { made, last_id: group.last_id, ..ClaimChanges::default() };
    let (ids, next) = wanted(&claiming, log, group, from, count);
    let (mut claimed, mut deleted) = (Vec::new(), Vec::new());
    for id in ids {
        match claiming.claim(log, group, consumer, id) {
            ClaimOutcome::Claimed(pending) => {
                claimed.push(id);
                changes.push(id, &pending);
            }
            ClaimOutcome::Deleted(pending) => {
                deleted.push(id);
                changes.push(id, &pending);
            }
            ClaimOutcome::Left => {}
        }
    }
    reply.array(3);
    reply_id(reply, next);
    reply.array(claimed.len());
    claimed.iter().for_each(|id| claiming.reply(reply, log, *id));
    reply.array(deleted.len());
    deleted.iter().for_each(|id| reply_id(reply, *id));
    if changes.len() > 0 {
        edit.set_groups_changed();
    }
    drop(edit);
    changes.note(cx, reader(args));
    Ok(())
}

/// The entries from `from` on that XAUTOCLAIM claims or finds deleted, and where to continue, or
/// 0-0 at the end.
fn wanted(
    claiming: &Claiming,
    log: &StreamLog,
    group: &ConsumerGroup,
    from: Id,
    count: usize,
) -> (Vec<Id>, Id) {
    let mut ids = Vec::new();
    let mut looks = count.saturating_mul(LOOKS_PER_CLAIM);
    for (id, pending) in group.pending_range(from..=Id::MAX) {
        if ids.len() == count || looks == 0 {
            return (ids, id);
        }
        looks -= 1;
        let is_old = claiming.now_ms.saturating_sub(pending.delivered_ms) >= claiming.min_idle_ms;
        if claiming.min_idle_ms == 0 || is_old || log.entry(id).is_none() {
            ids.push(id);
        }
    }
    (ids, Id::MIN)
}
