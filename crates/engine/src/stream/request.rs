//! Parses the arguments of XREAD and XREADGROUP.

use std::ops::Range;

use base::number::parse_i64;
use resp::Args;

use crate::args::number::integer;
use crate::args::timeout::timeout_ms;
use crate::error::Error;
use command::{Access, Argument, KeySpec, Shape};

use super::IDS;
use crate::error::stream::StreamError;

pub(super) const BLOCK: Argument =
    Argument::new("milliseconds", Shape::Integer).after("BLOCK").optional();
pub(super) const STREAMS: Argument =
    Argument::new("streams", Shape::Block(&[Argument::key().multiple(), IDS])).after("STREAMS");

const READ: Access = Access::RO.with(Access::ACCESS);
/// The keys of XREAD. Their beginning also decides which arguments are options.
pub(super) const XREAD_KEYS: KeySpec =
    KeySpec::half_after("STREAMS", 1, &[("BLOCK", 1), ("COUNT", 1)], READ);
/// The keys of XREADGROUP.
pub(super) const XREADGROUP_KEYS: KeySpec = KeySpec::half_after(
    "STREAMS",
    4,
    &[("BLOCK", 1), ("COUNT", 1), ("GROUP", 2), ("NOACK", 0), ("CLAIM", 1)],
    READ,
);

/// A request to read, with names and keys by their indexes among the arguments.
#[derive(Clone, Debug)]
pub(super) struct StreamRequest {
    /// BLOCK: when to stop waiting, or `Some(None)` for never.
    pub(super) until: Option<Option<i64>>,
    /// The most entries of each stream, or 0 for all.
    pub(super) count: u64,
    /// The index of the group's name, which the consumer's follows.
    pub(super) group_at: Option<usize>,
    /// NOACK: entries count as acknowledged when read.
    pub(super) no_ack: bool,
    /// CLAIM: entries that have been pending for this many milliseconds are read as well.
    pub(super) claim_ms: Option<i64>,
    /// The keys.
    pub(super) keys: Range<usize>,
}

impl StreamRequest {
    /// Parses the arguments of XREADGROUP, or of XREAD.
    pub(super) fn parse(args: &Args<'_>, of_group: bool, unix_ms: i64) -> Result<Self, Error> {
        let keys = if of_group { XREADGROUP_KEYS } else { XREAD_KEYS };
        let keys = keys.consecutive(args);
        let mut request = Self {
            until: None,
            count: 0,
            group_at: None,
            no_ack: false,
            claim_ms: None,
            keys: keys.clone().unwrap_or_default(),
        };
        // Without STREAMS all arguments are options: one is refused, or STREAMS is missing.
        let options_end = keys.map_or(args.len(), |keys| keys.start - 1);
        let mut at = 1;
        while at < options_end {
            at += request.parse_option(args, at, of_group, unix_ms)?;
        }
        if options_end + 1 >= args.len() {
            return Err(Error::Syntax);
        }
        if !(args.len() - options_end - 1).is_multiple_of(2) {
            let name = if of_group { "xreadgroup" } else { "xread" };
            return Err(StreamError::Unbalanced(name).into());
        }
        if of_group && request.group_at.is_none() {
            return Err(StreamError::NoGroupOption.into());
        }
        Ok(request)
    }

    /// Parses the option at index `at`. Returns its number of arguments.
    fn parse_option(
        &mut self,
        args: &Args<'_>,
        at: usize,
        of_group: bool,
        unix_ms: i64,
    ) -> Result<usize, Error> {
        let word = args.text(at);
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let (more, next) = (args.len() - at - 1, args.text(at + 1));
        let only_group = |option| match of_group {
            true => Ok(()),
            false => Err(StreamError::GroupOption(option)),
        };
        if is("BLOCK") && more > 0 {
            self.until = Some(timeout_ms(next, unix_ms)?);
        } else if is("COUNT") && more > 0 {
            let count = integer(next)?;
            self.count = u64::try_from(count).unwrap_or(0);
        } else if is("GROUP") && more > 1 {
            only_group("GROUP")?;
            self.group_at = Some(at + 1);
            return Ok(3);
        } else if is("NOACK") {
            only_group("NOACK")?;
            self.no_ack = true;
            return Ok(1);
        } else if is("CLAIM") && more > 0 {
            only_group("CLAIM")?;
            let idle_ms = parse_i64(next).ok_or(StreamError::ClaimIdle)?;
            if idle_ms < 0 {
                return Err(StreamError::ClaimIdleNegative.into());
            }
            self.claim_ms = Some(idle_ms);
        } else {
            return Err(Error::Syntax);
        }
        Ok(2)
    }

    /// The indexes of the identifier and the key of stream `nth`.
    pub(super) fn places(&self, nth: usize) -> (usize, usize) {
        let key_at = self.keys.start + nth;
        (key_at, key_at + self.keys.len())
    }
}
