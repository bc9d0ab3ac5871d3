//! LCS: the longest common subsequence of two strings
//! (<https://redis.io/docs/latest/commands/lcs/>).
//!
//! The textbook table of lengths is never built. Adjacent cells in a row differ by 0 or 1, so a row
//! needs one bit for each cell, and follows from the row above it by an addition and a few logical
//! operations on words (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004). Backtracking
//! needs only those bits. So the table takes a 32nd of the memory of Redis's; the limit on it is
//! still that of Redis, because it also bounds the time, and clients see it.
//!
//! Of several longest subsequences it finds the same one as Redis: backtracking goes left unless
//! the cell above is greater.

use resp::{Args, Reply};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use store::{StringDigits, StringRef, StringValue};

use super::{READ, spec};
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::string::StringError;
use crate::exec::Handler;
use command::{Access, Argument, KeySpec, Row, Shape};

pub(super) const LCS: Row<Handler> = Row::new(
    spec("lcs", -3, "7.0.0")
        .summary("Returns the longest common subsequence of two string values.")
        .complexity("O(N*M) for strings of N and M bytes.")
        .flags(READ)
        .keys(&[KeySpec::range(1, 1, 1, Access::RO.with(Access::ACCESS))])
        .arguments(&[
            Argument::new("key1", Shape::Key),
            Argument::new("key2", Shape::Key),
            Argument::word("len", "LEN").optional(),
            Argument::word("idx", "IDX").optional(),
            Argument::new("min-match-len", Shape::Integer).after("MINMATCHLEN").optional(),
            Argument::word("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
    lcs,
);

/// Bytes of a cell in Redis's table, on which the limit is based.
const CELL_BYTES: u128 = 4;
/// Strings must be shorter than this.
const LEN_END: usize = u32::MAX as usize - 1;

/// The options of LCS.
#[derive(Clone, Copy, Default)]
struct Options {
    len: bool,
    idx: bool,
    match_len_min: i64,
    with_match_len: bool,
}

impl Options {
    fn parse(args: &mut Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        args.seek(3);
        while args.peek().is_some() {
            if args.take_word("IDX") {
                options.idx = true;
            } else if args.take_word("LEN") {
                options.len = true;
            } else if args.take_word("WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.take_word("MINMATCHLEN") {
                let len = args.next().ok_or(Error::Syntax)?;
                options.match_len_min = integer(len)?;
            } else {
                return Err(Error::Syntax);
            }
        }
        if options.idx && options.len { Err(StringError::LcsLenAndIdx.into()) } else { Ok(options) }
    }
}

fn lcs(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut scratch = mem::take(&mut cx.turn.scratch);
    scratch.clear();
    // Both keys are looked up and counted before a wrong type is reported.
    let (first, second) = (keep(cx, args, 0, &mut scratch), keep(cx, args, 1, &mut scratch));
    let result = first.and_then(|first| {
        let (first, second) = (first.bytes(&scratch), second?);
        compare(cx.bulk_bytes_max, args, reply, first, second.bytes(&scratch))
    });
    cx.turn.scratch = scratch;
    result
}

/// A string that is kept while the other one's shard is visited.
enum KeptText {
    /// In the buffer of copies.
    Copied(Range<usize>),
    Shared(Arc<Vec<u8>>),
}

impl KeptText {
    fn bytes<'a>(&'a self, copies: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Copied(range) => copies.get(range.clone()).unwrap_or_default(),
            Self::Shared(text) => text,
        }
    }
}

/// Keeps the string under the `nth` key, which is empty if missing.
fn keep(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    nth: usize,
    copies: &mut Vec<u8>,
) -> Result<KeptText, Error> {
    let key = cx.nth_key(args, nth, nth + 1);
    let (db, turn) = cx.db(key);
    let text = db.read::<StringValue>(turn, key).map_err(|_| StringError::LcsNotStrings)?;
    if let Some(StringRef::Shared(text)) = text {
        return Ok(KeptText::Shared(Arc::clone(text)));
    }
    let start = copies.len();
    if let Some(text) = text {
        copies.extend_from_slice(text.bytes(&mut StringDigits::default()));
    }
    Ok(KeptText::Copied(start..copies.len()))
}

fn compare(
    bytes_max: usize,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
    a: &[u8],
    b: &[u8],
) -> Result<(), Error> {
    let options = Options::parse(args)?;
    admit(a.len(), b.len(), bytes_max)?;
    let table = LcsTable::new(a, b, !options.len);
    if options.len {
        reply.int(i64::from(table.len));
        return Ok(());
    }
    let matches = table.matches(a, b);
    if !options.idx {
        let mut common = Vec::with_capacity(table.len as usize);
        for found in matches.iter().rev() {
            common.extend_from_slice(&a[found.a..found.a + found.len]);
        }
        reply.bulk(&common);
        return Ok(());
    }
    let shown = |found: &&Match| found.len as i64 >= options.match_len_min;
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.iter().filter(shown).count());
    for found in matches.iter().filter(shown) {
        reply.array(2 + usize::from(options.with_match_len));
        for start in [found.a, found.b] {
            reply.array(2);
            reply.len(start);
            reply.len(start + found.len - 1);
        }
        if options.with_match_len {
            reply.len(found.len);
        }
    }
    reply.bulk(b"len");
    reply.int(i64::from(table.len));
    Ok(())
}

/// Whether strings of these lengths may be compared.
fn admit(a_len: usize, b_len: usize, bytes_max: usize) -> Result<(), Error> {
    if a_len >= LEN_END || b_len >= LEN_END {
        return Err(StringError::LcsTooLong.into());
    }
    let bytes = (a_len as u128 + 1) * (b_len as u128 + 1) * CELL_BYTES;
    if bytes > bytes_max as u128 { Err(StringError::LcsMemory.into()) } else { Ok(()) }
}

/// A run of bytes that both strings share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    /// Its position in the first string.
    a: usize,
    /// Its position in the second.
    b: usize,
    /// Its length.
    len: usize,
}

/// The rows of the table, a bit for each cell.
struct LcsTable {
    /// Length of the longest common subsequence.
    len: u32,
    /// For each cell, whether it is one greater than the cell to its left.
    steps: Vec<u64>,
    /// Words of `steps` for each row; 0 if only the last row was kept.
    row_words: usize,
}

impl LcsTable {
    /// Fills the table. Keeps all rows only if backtracking is needed.
    fn new(a: &[u8], b: &[u8], way_back: bool) -> Self {
        let words = b.len().div_ceil(64);
        let equal = Equal::new(a, b, words);
        let row_words = if way_back { words } else { 0 };
        let mut steps = Vec::with_capacity(a.len() * row_words);
        // A zero bit means that the cell is one greater than the cell to its left.
        let mut row = vec![u64::MAX; words];
        for x in a {
            let equal = equal.row(*x);
            let mut carry = false;
            for (word, equal) in row.iter_mut().zip(equal) {
                let hit = *word & equal;
                let (sum, over) = word.overflowing_add(hit);
                let (sum, over_again) = sum.overflowing_add(u64::from(carry));
                carry = over | over_again;
                *word = sum | *word & !equal;
            }
            if way_back {
                steps.extend(row.iter().map(|word| !word));
            }
        }
        // Bits after the end of the row stay ones, since nothing matches there.
        let len = row.iter().map(|word| word.count_zeros()).sum();
        Self { len, steps, row_words }
    }

    /// Walks back from the ends of both strings and collects the common runs, last one first.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        let mut running = false;
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                match matches.last_mut() {
                    Some(run) if running => *run = Match { a: i, b: j, len: run.len + 1 },
                    _ => matches.push(Match { a: i, b: j, len: 1 }),
                }
                running = true;
                continue;
            }
            running = false;
            // A cell of unequal bytes has the greater length of above and left.
            let word = self.steps[(i - 1) * self.row_words + (j - 1) / 64];
            if word >> ((j - 1) % 64) & 1 == 1 { i -= 1 } else { j -= 1 }
        }
        matches
    }
}

/// For each byte of one string, a row of bits with its positions in the other.
struct Equal {
    /// The row of each byte.
    rows: [u8; 256],
    bits: Vec<u64>,
    words: usize,
}

impl Equal {
    fn new(a: &[u8], b: &[u8], words: usize) -> Self {
        let (mut rows, mut occurs, mut len) = ([0; 256], [false; 256], 0);
        for x in a {
            if !mem::replace(&mut occurs[usize::from(*x)], true) {
                rows[usize::from(*x)] = len as u8;
                len += 1;
            }
        }
        let mut bits = vec![0u64; len * words];
        for (j, y) in b.iter().enumerate().filter(|(_, y)| occurs[usize::from(**y)]) {
            bits[usize::from(rows[usize::from(*y)]) * words + j / 64] |= 1 << (j % 64);
        }
        Self { rows, bits, words }
    }

    #[inline]
    fn row(&self, byte: u8) -> &[u64] {
        let start = usize::from(self.rows[usize::from(byte)]) * self.words;
        &self.bits[start..start + self.words]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_redis() {
        let half_gib = 512 << 20;
        assert_eq!(admit(11_583, 11_584, half_gib), Ok(()));
        assert_eq!(admit(11_584, 11_584, half_gib), Ok(()));
        assert_eq!(admit(11_584, 11_586, half_gib), Err(StringError::LcsMemory.into()));
        assert_eq!(admit(0, 0, 4), Ok(()));
        assert_eq!(admit(0, 0, 3), Err(StringError::LcsMemory.into()));
        assert_eq!(admit(LEN_END, 0, usize::MAX), Err(StringError::LcsTooLong.into()));
        assert_eq!(admit(0, LEN_END, usize::MAX), Err(StringError::LcsTooLong.into()));
        assert_eq!(admit(LEN_END - 1, 1, usize::MAX), Ok(()));
        assert_eq!(admit(LEN_END - 1, LEN_END - 1, usize::MAX), Err(StringError::LcsMemory.into()));
    }

    /// The length by its definition.
    fn naive(a: &[u8], b: &[u8]) -> u32 {
        match (a, b) {
            ([x, a @ ..], [y, b @ ..]) if x == y => 1 + naive(a, b),
            ([_, a_rest @ ..], [_, b_rest @ ..]) => naive(a_rest, b).max(naive(a, b_rest)),
            _ => 0,
        }
    }

    #[test]
    fn backtracking_finds_a_common_subsequence_of_full_length() {
        let mut random = base::random::Random::new(5);
        for round in 0..2000 {
            // Wider than a machine word in every other round, where only the length is checked.
            let len_max = if round % 2 == 0 { 9 } else { 200 };
            let mut text = || -> Vec<u8> {
                (0..random.below(len_max)).map(|_| b'a' + random.below(3) as u8).collect()
            };
            let (a, b) = (text(), text());
            let table = LcsTable::new(&a, &b, true);
            if round % 2 == 0 {
                assert_eq!(table.len, naive(&a, &b), "{a:?} {b:?}");
            }
            assert_eq!(table.len, LcsTable::new(&a, &b, false).len);
            assert_eq!(table.len, LcsTable::new(&b, &a, false).len);
            let (mut a_end, mut b_end, mut len) = (a.len(), b.len(), 0);
            for found in table.matches(&a, &b) {
                assert!(found.a + found.len <= a_end && found.b + found.len <= b_end);
                assert_eq!(a[found.a..][..found.len], b[found.b..][..found.len]);
                (a_end, b_end, len) = (found.a, found.b, len + found.len);
            }
            assert_eq!(table.len as usize, len);
        }
    }
}
