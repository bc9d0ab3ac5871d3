//! The common parts of SCAN, HSCAN, SSCAN and ZSCAN: the cursor, the options, and the pattern,
//! which KEYS has too.

use base::glob;
use resp::{Args, Reply};
use store::StoredType;

use crate::args::count::{COUNT, positive};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use command::{Access, Argument, Flags, KeySpec, Shape, Spec};

/// `[MATCH pattern]`.
pub(crate) const MATCH: Argument =
    Argument::new("pattern", Shape::Pattern).after("MATCH").optional();

/// Elements looked at when COUNT does not say.
const COUNT_DEFAULT: usize = 10;

/// A pattern; a single `*` matches everything, even the empty key that globs never match.
#[derive(Clone, Copy)]
pub(crate) struct MatchPattern<'a>(Option<&'a [u8]>);

impl<'a> MatchPattern<'a> {
    pub(crate) const ALL: Self = Self(None);

    pub(crate) fn new(pattern: &'a [u8]) -> Self {
        Self(Some(pattern).filter(|pattern| *pattern != b"*"))
    }

    #[inline]
    pub(crate) fn matches(self, text: &[u8]) -> bool {
        self.0.is_none_or(|pattern| glob::matches(pattern, text, false))
    }

    /// The only text that matches, when the pattern has no character with a meaning.
    pub(crate) fn literal(self) -> Option<&'a [u8]> {
        self.0.filter(|pattern| !pattern.iter().any(|byte| b"*?[\\".contains(byte)))
    }
}

/// The kind of collection that is scanned, which decides on some options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// The keys of a database: TYPE is an option.
    Keys,
    /// The fields of a hash: NOVALUES is an option.
    Fields,
    /// The members of a set, sorted or not.
    Members,
}

/// The options of a scan.
pub(crate) struct ScanOptions<'a> {
    /// Which elements to reply.
    pub(crate) pattern: MatchPattern<'a>,
    /// The number of elements to look at, at least one.
    pub(crate) count: usize,
    /// The type of the keys to reply.
    pub(crate) type_name: Option<&'a [u8]>,
    /// Whether fields come without their values.
    pub(crate) no_values: bool,
}

impl<'a> ScanOptions<'a> {
    /// Reads the options from the cursor of `args` on.
    pub(crate) fn parse(args: &mut Args<'a>, scanned: Scanned) -> Result<Self, Error> {
        let mut wanted = Self {
            pattern: MatchPattern::ALL,
            count: COUNT_DEFAULT,
            type_name: None,
            no_values: false,
        };
        while args.remaining() > 0 {
            let has_value = args.remaining() >= 2;
            if has_value && args.take_word("count") {
                let count = args.next().unwrap_or_default();
                integer(count)?;
                wanted.count = positive(count).ok_or(Error::Syntax)?;
            } else if has_value && args.take_word("match") {
                wanted.pattern = args.next().map_or(MatchPattern::ALL, MatchPattern::new);
            } else if has_value && scanned == Scanned::Keys && args.take_word("type") {
                wanted.type_name = args.next();
            } else if args.take_word("novalues") {
                if scanned != Scanned::Fields {
                    return Err(Error::NoValuesOutsideHash);
                }
                wanted.no_values = true;
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(wanted)
    }
}

/// The common parts of HSCAN, SSCAN and ZSCAN as commands on one key.
pub(crate) const fn scanning(spec: Spec) -> Spec {
    const KEY: &[KeySpec] = &[KeySpec::one(1, Access::RO.with(Access::ACCESS))];
    const ARGUMENTS: &[Argument] =
        &[Argument::key(), Argument::new("cursor", Shape::Integer), MATCH, COUNT];
    spec.flags(Flags::READONLY).keys(KEY).arguments(ARGUMENTS).tips(&["nondeterministic_output"])
}

/// Replies one page of a scan of the value under the first key. `scan` replies the elements from a
/// cursor on, and returns the next cursor and the number of replies.
pub(crate) fn reply_page<T: StoredType>(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    scanned: Scanned,
    scan: impl FnOnce(T::View<'_>, u64, &ScanOptions<'_>, &mut Reply<'_>) -> (u64, usize),
) -> Result<(), Error> {
    let cursor = parse_cursor(args.text(2))?;
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let value = db.read::<T>(turn, key)?;
    let page = reply.array_deferred();
    let Some(value) = value else {
        // A missing key ignores even wrong options.
        reply.finish_page(page, 0, 0);
        return Ok(());
    };
    args.seek(3);
    let wanted = ScanOptions::parse(args, scanned)?;
    let (next, len) = scan(value, cursor, &wanted, reply);
    reply.finish_page(page, next, len);
    Ok(())
}

/// A cursor as clients may write it, also with leading zeros, spaces or a plus.
pub(crate) fn parse_cursor(text: &[u8]) -> Result<u64, Error> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return Err(Error::InvalidCursor);
    }
    digits.iter().try_fold(0u64, |cursor, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let next = digit.and_then(|digit| cursor.checked_mul(10)?.checked_add(digit));
        next.ok_or(Error::InvalidCursor)
    })
}
