//! `numkeys key [key ...] end [COUNT count]`: the arguments of LMPOP, ZMPOP and their blocking
//! forms.

use std::ops::Range;

use resp::Args;
use store::Key;

use crate::args::count::positive;
use crate::cx::Cx;
use crate::error::Error;

/// The request: keys, end and count. `E` is an end of the collection.
#[derive(Clone, Debug)]
pub(crate) struct MultiPop<E> {
    /// Indexes of the keys among the arguments.
    pub(crate) keys: Range<usize>,
    /// The end to pop from.
    pub(crate) end: E,
    /// The most elements to pop.
    pub(crate) count: usize,
}

impl<E> MultiPop<E> {
    /// Calls `pop` for each key in order until it returns true. Returns whether it did.
    pub(crate) fn pop_first(
        &self,
        cx: &mut Cx<'_>,
        args: &Args<'_>,
        mut pop: impl FnMut(&mut Cx<'_>, Key<'_>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        for (nth, at) in self.keys.clone().enumerate() {
            let key = cx.nth_key(args, nth, at);
            if pop(cx, key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Parses the arguments from the number of keys, at index `numkeys_at`, to the last.
    ///
    /// # Errors
    /// When a number is not positive, or on a syntax error.
    pub(crate) fn parse(
        args: &mut Args<'_>,
        numkeys_at: usize,
        end: impl FnOnce(&[u8]) -> Option<E>,
    ) -> Result<Self, Error> {
        let number = |arg: &[u8], name| positive(arg).ok_or(Error::NotAboveZero(name));
        let numkeys = number(args.text(numkeys_at), "numkeys")?;
        let first = numkeys_at + 1;
        let keys = first..first.saturating_add(numkeys);
        args.seek(keys.end);
        let end = args.next().and_then(end).ok_or(Error::Syntax)?;
        let mut count = None;
        while args.remaining() > 0 {
            if count.is_some() || args.remaining() < 2 || !args.take_word("count") {
                return Err(Error::Syntax);
            }
            count = Some(number(args.next().unwrap_or_default(), "count")?);
        }
        Ok(Self { keys, end, count: count.unwrap_or(1) })
    }
}
