//! XTRIM, and the options that XADD shares with it.
//!
//! Replicas may not know DELREF and ACKED, so their effects are replayed: references by XACK, and
//! entries between others that remain by XDEL. In contrast to trimming, XDEL also raises the
//! stream's `max-deleted-entry-id`.

use ds::stream::{Id, References, Trim, TrimBound};
use resp::{Args, Reply};
use store::{CommandWriter, Edit, EncodingLimits, KeyspaceEvent, StreamValue};

use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape};

use super::delete::ReplayedDeletions;
use super::id::{NewId, parse, parse_new, to_vec};
use super::{DELETE_KEY, spec};
use crate::error::stream::StreamError;

/// Chunks that inexact trimming examines without LIMIT, as in Redis.
const CHUNKS_MAX: u64 = 100;
/// The resulting limit if chunks have no limit of entries, and the greatest one.
const LIMIT_WITHOUT_ENTRIES: u64 = 10_000;
const LIMIT_MAX: u64 = 1_000_000;

pub(super) const TRIMMED: KeyspaceEvent = KeyspaceEvent::new('t', "xtrim");

pub(super) const STRATEGY: &[Argument] = &[
    Argument::new(
        "strategy",
        Shape::OneOf(&[
            Argument::word("maxlen", "MAXLEN"),
            Argument::word("minid", "MINID").since("6.2.0"),
        ]),
    ),
    Argument::new(
        "operator",
        Shape::OneOf(&[Argument::word("equal", "="), Argument::word("approximately", "~")]),
    )
    .optional(),
    Argument::new("threshold", Shape::String),
    Argument::new("count", Shape::Integer).after("LIMIT").since("6.2.0").optional(),
];

/// The action on references to deleted entries, since Redis 8.2.
pub(super) const CONDITION: Argument = Argument::new(
    "condition",
    Shape::OneOf(&[
        Argument::word("keepref", "KEEPREF"),
        Argument::word("delref", "DELREF"),
        Argument::word("acked", "ACKED"),
    ]),
)
.optional();

pub(super) const REFERENCES_HISTORY: (&str, &str) =
    ("8.2.0", "`KEEPREF`, `DELREF` and `ACKED` say what becomes of references of groups.");

pub(super) const XTRIM: Row<Handler> = Row::new(
    spec("xtrim", -4, "5.0.0")
        .summary("Removes the oldest entries of a stream.")
        .complexity("O(N) for the N entries removed, with a small constant: chunks go as a whole.")
        .flags(Flags::WRITE)
        .keys(DELETE_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("trim", Shape::Block(STRATEGY)),
            CONDITION.since("8.2.0"),
        ])
        .history(&[
            ("6.2.0", "`MINID` trims by identifier, and `LIMIT` bounds the work."),
            REFERENCES_HISTORY,
        ])
        .tips(&["nondeterministic_output"]),
    xtrim,
);

/// The options of XADD and XTRIM.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrimOptions {
    /// How to trim, if at all.
    pub(super) trim: Option<Trim>,
    /// The argument with the size or identifier to keep.
    threshold_at: usize,
    /// The index of LIMIT, if given.
    limit_at: Option<usize>,
    /// XADD must not create the stream.
    pub(super) no_stream: bool,
    /// XADD's identifier.
    pub(super) id: NewId,
    /// Its index, or the end of the arguments if it is missing.
    pub(super) id_at: usize,
}

impl TrimOptions {
    /// Parses the options after the key, in XADD up to the ID.
    pub(super) fn parse(
        args: &Args<'_>,
        xadd: bool,
        limits: &EncodingLimits,
    ) -> Result<Self, Error> {
        let mut options = Self {
            trim: None,
            threshold_at: 0,
            limit_at: None,
            no_stream: false,
            id: NewId::Now,
            id_at: args.len(),
        };
        let (mut limit, mut references) = (0, None);
        let mut at = 2;
        while at < args.len() {
            let word = args.text(at);
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let more = at + 1 < args.len();
            if xadd && word == b"*" {
                options.id_at = at;
                break;
            } else if more && (is("maxlen") || is("minid")) {
                at = options.parse_bound(args, at, is("maxlen"))?;
            } else if more && is("limit") {
                limit = integer(args.text(at + 1))?;
                if limit < 0 {
                    return Err(StreamError::Limit.into());
                }
                options.limit_at = Some(at);
                at += 2;
            } else if xadd && is("nomkstream") {
                options.no_stream = true;
                at += 1;
            } else if let Some(found) = parse_references(word).filter(|_| references.is_none()) {
                references = Some(found);
                at += 1;
            } else if xadd {
                options.id = parse_new(word)?;
                options.id_at = at;
                break;
            } else {
                return Err(Error::Syntax);
            }
        }
        options.finish(limit.unsigned_abs(), references.unwrap_or_default(), xadd, limits)?;
        Ok(options)
    }

    /// Reads the strategy at `at`. Returns the index after it.
    fn parse_bound(&mut self, args: &Args<'_>, at: usize, len: bool) -> Result<usize, Error> {
        if self.trim.is_some() {
            return Err(StreamError::TwoStrategies.into());
        }
        let word = args.text(at + 1);
        let has_operator = at + 2 < args.len() && (word == b"~" || word == b"=");
        let exact = !(has_operator && word == b"~");
        let at = at + 1 + usize::from(has_operator);
        let bound = if len {
            let len = integer(args.text(at))?;
            TrimBound::Len(u64::try_from(len).map_err(|_| StreamError::MaxLen)?)
        } else {
            TrimBound::Id(parse(args.text(at), 0)?)
        };
        self.threshold_at = at;
        self.trim = Some(Trim { bound, exact, limit: 0, references: References::Keep });
        Ok(at + 1)
    }

    /// Checks the combination of options and determines the limit.
    fn finish(
        &mut self,
        limit: u64,
        references: References,
        xadd: bool,
        limits: &EncodingLimits,
    ) -> Result<(), Error> {
        let Some(trim) = &mut self.trim else {
            return match (limit, xadd, self.limit_at) {
                (1.., ..) => Err(StreamError::LimitAlone.into()),
                (0, false, _) => Err(StreamError::NoStrategy.into()),
                (0, true, Some(_)) => Err(StreamError::LimitExact.into()),
                (0, true, None) => Ok(()),
            };
        };
        trim.references = references;
        match (self.limit_at, trim.exact) {
            (Some(_), true) => return Err(StreamError::LimitExact.into()),
            (Some(_), false) => trim.limit = limit,
            (None, true) => {}
            (None, false) => {
                trim.limit = match limits.stream_node_max_entries.saturating_mul(CHUNKS_MAX) {
                    0 => LIMIT_WITHOUT_ENTRIES,
                    limit => limit.min(LIMIT_MAX),
                };
            }
        }
        Ok(())
    }

    /// Trims a stream.
    pub(super) fn apply(&self, edit: &mut Edit<'_, StreamValue>, is_replayed: bool) -> Trimmed {
        let mut removals = ReplayedDeletions::new(is_replayed);
        let (mut removed, mut ids) = (0, Vec::new());
        if let Some(trim) = &self.trim {
            if is_replayed && trim.references != References::Keep {
                ids = edit.stream().trimmed_ids(trim);
            }
            if trim.references == References::Drop {
                ids.iter().for_each(|id| removals.acknowledge_all(edit.stream(), *id));
            }
            removed = edit.trim(trim);
        }
        let log = &edit.stream().log;
        let (len, first) = (log.len(), log.first_id());
        let is_scattered = ids.last().is_some_and(|last| first.is_some_and(|first| first < *last));
        if is_scattered {
            ids.iter().for_each(|id| removals.delete(*id));
        }
        Trimmed { removed, len, first, is_scattered, removals }
    }

    /// The request for a replay: trimming becomes exact trimming to the actual result, without the
    /// limit and without actions on references.
    pub(super) fn replay(
        &self,
        replay: &mut CommandWriter<'_>,
        args: &Args<'_>,
        done: &Trimmed,
        id: Option<&[u8]>,
    ) {
        let is_exact = |trim: &Trim| trim.exact && trim.references != References::Acked;
        let inexact = self.trim.filter(|trim| !is_exact(trim));
        for (at, arg) in args.iter().enumerate() {
            let is_option = at >= 2 && at < self.id_at;
            if is_option && (done.is_scattered || !self.is_replayed(at, arg, inexact.is_some())) {
                continue;
            }
            match (inexact, id) {
                (Some(_), _) if at + 1 == self.threshold_at && arg == b"~" => replay.arg("="),
                (Some(trim), _) if at == self.threshold_at => match trim.bound {
                    TrimBound::Len(_) => replay.arg(done.len.to_string()),
                    TrimBound::Id(_) => replay.arg(to_vec(done.first.unwrap_or(Id::MAX))),
                },
                (_, Some(id)) if at == self.id_at => replay.arg(id),
                _ => replay.arg(arg),
            }
        }
    }

    /// Whether the replay has the option at `at`.
    fn is_replayed(&self, at: usize, arg: &[u8], inexact: bool) -> bool {
        let limits = self.limit_at.is_some_and(|limit| at == limit || at == limit + 1);
        let refers = at != self.threshold_at && parse_references(arg).is_some();
        !(inexact && limits || refers)
    }
}

/// The outcome of trimming, for its replay.
pub(super) struct Trimmed {
    /// The number of removed entries.
    pub(super) removed: u64,
    /// The number of entries that remain, and the first of them.
    len: u64,
    first: Option<Id>,
    /// An entry remains before one that was removed: trimming cannot replay that.
    pub(super) is_scattered: bool,
    /// Removals that trimming does not replay.
    pub(super) removals: ReplayedDeletions,
}

/// The action on references with this keyword.
pub(super) fn parse_references(word: &[u8]) -> Option<References> {
    const WORDS: [(&[u8], References); 3] = [
        (b"keepref", References::Keep),
        (b"delref", References::Drop),
        (b"acked", References::Acked),
    ];
    WORDS.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, found)| found)
}

fn xtrim(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = TrimOptions::parse(args, false, cx.limits)?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let is_replayed = turn.effects.is_consumed();
    let Some(mut edit) = db.edit::<StreamValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let done = options.apply(&mut edit, is_replayed);
    drop(edit);
    if done.removed > 0 {
        cx.turn.counters.changes += done.removed - 1;
        if !done.is_scattered {
            cx.turn.effects.replay_as(|replay| options.replay(replay, args, &done, None));
        }
        done.removals.replay(&mut cx.turn.effects, key.bytes);
        cx.wrote(TRIMMED, key.bytes);
    }
    reply.int(done.removed as i64);
    Ok(())
}
