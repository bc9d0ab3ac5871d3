//! The positions of a command's keys among its arguments, and how it uses them.
//!
//! As in COMMAND INFO, keys are found in two steps: the start, and then which arguments from there
//! on. Keys that cannot be found so, such as those of SORT's patterns, are `Unknown`.

use std::ops::Range;

use base::number::parse_i64;
use resp::Args;

/// How a command uses a key, as bits: one of RO, RW, OW, RM, and its effect on the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(pub u16);

#[allow(missing_docs)]
impl Access {
    pub const RO: Self = Self(1);
    pub const RW: Self = Self(1 << 1);
    pub const OW: Self = Self(1 << 2);
    pub const RM: Self = Self(1 << 3);
    pub const ACCESS: Self = Self(1 << 4);
    pub const UPDATE: Self = Self(1 << 5);
    pub const INSERT: Self = Self(1 << 6);
    pub const DELETE: Self = Self(1 << 7);
    pub const NOT_KEY: Self = Self(1 << 8);
    pub const INCOMPLETE: Self = Self(1 << 9);
    pub const VARIABLE_FLAGS: Self = Self(1 << 10);

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Names as COMMAND INFO prints them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [&str; 11] = [
            "RO",
            "RW",
            "OW",
            "RM",
            "access",
            "update",
            "insert",
            "delete",
            "not_key",
            "incomplete",
            "variable_flags",
        ];
        NAMES.into_iter().enumerate().filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, n)| n)
    }
}

/// Where the search for keys starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(usize),
    /// After this word, in any case. The search for it starts at an argument; a negative number
    /// counts from the end and searches backwards.
    Keyword(&'static str, i32),
    /// Unknown.
    Unknown,
}

/// Which arguments are keys, counted from the start of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Find {
    /// Every `step`th argument up to `last`, which is relative to the first one, or counts from the
    /// end if it is negative. With a `limit` of 2 only the first half of them are keys; with 0 and
    /// 1 all are.
    Range { last: i32, step: usize, limit: usize },
    /// The argument `at` has the number of keys, which start at the argument `first`.
    Count { at: usize, first: usize, step: usize },
    /// The argument after the last occurrence of this word among options. Each of `others` has so
    /// many arguments, which are skipped. COMMAND INFO cannot express it and says unknown.
    Option { word: &'static str, others: &'static [(&'static str, usize)] },
    /// Keys that patterns generate from the data, so they are unknown; see
    /// [`KeySpec::pattern_word`].
    Patterns {
        /// The words before patterns, and whether a pattern without a star generates no keys.
        words: &'static [(&'static str, bool)],
        /// All other options with the number of their arguments, and whether these are integers.
        others: &'static [(&'static str, usize, bool)],
    },
    /// Unknown.
    Unknown,
}

/// The positions of some of a command's keys.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Where the search starts.
    pub begin: Begin,
    /// Which arguments from there on are keys.
    pub find: Find,
    /// How the keys are used.
    pub access: Access,
    /// The reason for this use if it is not obvious: `notes` in COMMAND INFO.
    pub notes: Option<&'static str>,
    /// The use by a request, if the arguments decide it: [`Access::VARIABLE_FLAGS`].
    pub access_of: Option<fn(&Args<'_>) -> Access>,
    /// Other words that a key follows; see [`KeySpec::after_last`].
    pub rivals: &'static [&'static str],
    /// Options that may precede a keyword, each with its number of arguments; see
    /// [`KeySpec::half_after`].
    pub options: &'static [(&'static str, usize)],
}

impl KeySpec {
    const fn new(begin: Begin, find: Find, access: Access) -> Self {
        Self { begin, find, access, notes: None, access_of: None, rivals: &[], options: &[] }
    }

    /// One key.
    pub const fn one(at: usize, access: Access) -> Self {
        Self::range(at, 0, 1, access)
    }

    /// Every `step`th argument from `first` to the end.
    pub const fn to_end(first: usize, step: usize, access: Access) -> Self {
        Self::range(first, -1, step, access)
    }

    /// Every `step`th argument from `first` to `last`, which is relative to `first` or, if
    /// negative, counts from the end.
    pub const fn range(first: usize, last: i32, step: usize, access: Access) -> Self {
        Self::new(Begin::Index(first), Find::Range { last, step, limit: 0 }, access)
    }

    /// The argument `count` has the number of keys, which follow it.
    pub const fn counted(count: usize, access: Access) -> Self {
        Self::new(Begin::Index(count), Find::Count { at: 0, first: 1, step: 1 }, access)
    }

    /// One key after a word, which is searched for from an argument on; see [`Begin::Keyword`].
    pub const fn after(word: &'static str, from: i32, access: Access) -> Self {
        let find = Find::Range { last: 0, step: 1, limit: 0 };
        Self::new(Begin::Keyword(word, from), find, access)
    }

    /// The same for a word that may be repeated: the key follows the last one. An argument after
    /// one of `rivals` is a key, even if it equals a word.
    pub const fn after_last(
        word: &'static str,
        rivals: &'static [&'static str],
        from: i32,
        access: Access,
    ) -> Self {
        Self { rivals, ..Self::after(word, from, access) }
    }

    /// The first half of the arguments after a word. Only `options`, each with its number of
    /// arguments, may precede it: an argument of an option is not the word, even if it equals it.
    /// COMMAND INFO, which cannot express options, says `from`.
    pub const fn half_after(
        word: &'static str,
        from: i32,
        options: &'static [(&'static str, usize)],
        access: Access,
    ) -> Self {
        let find = Find::Range { last: -1, step: 1, limit: 2 };
        Self { options, ..Self::new(Begin::Keyword(word, from), find, access) }
    }

    /// One key after a word among options from an argument on; see [`Find::Option`].
    pub const fn option(
        from: usize,
        word: &'static str,
        others: &'static [(&'static str, usize)],
        access: Access,
    ) -> Self {
        Self::new(Begin::Index(from), Find::Option { word, others }, access)
    }

    /// Keys that the arguments do not show.
    pub const fn unknown(access: Access) -> Self {
        Self::new(Begin::Unknown, Find::Unknown, access)
    }

    /// Keys that patterns after words generate, among options from an argument on; see
    /// [`Find::Patterns`].
    pub const fn patterns(
        from: usize,
        words: &'static [(&'static str, bool)],
        others: &'static [(&'static str, usize, bool)],
        access: Access,
    ) -> Self {
        Self::new(Begin::Index(from), Find::Patterns { words, others }, access)
    }

    /// The reason for this use.
    pub const fn notes(self, notes: &'static str) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// The arguments decide how the keys are used: `access` is the largest possible use.
    pub const fn varying(self, access_of: fn(&Args<'_>) -> Access) -> Self {
        let access = self.access.with(Access::VARIABLE_FLAGS);
        Self { access, access_of: Some(access_of), ..self }
    }

    /// How a request uses the keys.
    #[inline]
    pub fn access_in(&self, args: &Args<'_>) -> Access {
        self.access_of.map_or(self.access, |access_of| access_of(args))
    }

    /// The index of the only key, if it is the same for all arguments.
    pub const fn only(&self) -> Option<usize> {
        match (self.begin, self.find) {
            _ if self.access.has(Access::NOT_KEY) => None,
            (Begin::Index(first), Find::Range { last: 0, .. }) => Some(first),
            _ => None,
        }
    }

    /// The index of the first key, and the largest number of arguments with which it is the only
    /// key, if both are known without the arguments.
    pub fn single_key(&self) -> Option<(usize, usize)> {
        match (self.begin, self.find) {
            _ if self.access.has(Access::NOT_KEY) => None,
            (Begin::Index(first), Find::Range { last: 0, .. }) => Some((first, usize::MAX)),
            (Begin::Index(first), Find::Range { last, step, limit: 0 }) if last < 0 => {
                Some((first, first + step + last.unsigned_abs() as usize - 1))
            }
            _ => None,
        }
    }

    /// Whether only an option has keys.
    pub fn is_optional(&self) -> bool {
        matches!(self.begin, Begin::Keyword(..) | Begin::Unknown)
            || matches!(self.find, Find::Patterns { .. })
    }

    /// The first keyword of a request whose pattern can name any key; see [`Find::Patterns`].
    /// `None` if an option before it is wrong: the command then refuses the request.
    #[inline]
    pub fn pattern_word(&self, args: &Args<'_>) -> Option<&'static str> {
        match (self.begin, self.find) {
            (Begin::Index(from), Find::Patterns { words, others }) => {
                first_pattern(args, from, words, others)
            }
            _ => None,
        }
    }

    /// The indexes of the keys in a request. Empty if the arguments are wrong; the command then
    /// refuses them. A handler that parses options must use this, or find the same keys.
    pub fn positions(&self, args: &Args<'_>) -> impl Iterator<Item = usize> + use<> {
        let (range, step) = self.found(args).unwrap_or((0..0, 1));
        range.step_by(step)
    }

    /// Whether the number of keys is missing, not a number, zero or too large.
    pub fn miscounts(&self, args: &Args<'_>) -> bool {
        matches!(self.find, Find::Count { .. }) && self.positions(args).next().is_none()
    }

    /// Whether the request ends before its first key. Keys among options may be absent.
    pub fn ends_before_keys(&self, args: &Args<'_>) -> bool {
        let is_option = matches!(self.find, Find::Option { .. } | Find::Patterns { .. });
        !is_option && matches!(self.begin, Begin::Index(index) if index >= args.len())
    }

    /// The indexes of the keys if they are consecutive. `None` if the word before them is missing,
    /// or the arguments are wrong.
    pub fn consecutive(&self, args: &Args<'_>) -> Option<Range<usize>> {
        self.found(args).filter(|(_, step)| *step == 1).map(|(range, _)| range)
    }

    fn found(&self, args: &Args<'_>) -> Option<(Range<usize>, usize)> {
        if self.access.has(Access::NOT_KEY) {
            // It only shows a cluster's clients where to send the request.
            return None;
        }
        let len = args.len();
        let begin = match self.begin {
            Begin::Index(index) => index,
            Begin::Keyword(word, from) if !self.rivals.is_empty() => {
                last_of(args, word, self.rivals, from)? + 1
            }
            Begin::Keyword(word, _) if !self.options.is_empty() => {
                after_options(args, word, self.options)? + 1
            }
            Begin::Keyword(word, from) => position_of(args, word, from)? + 1,
            Begin::Unknown => return None,
        };
        match self.find {
            Find::Range { last, step, limit } => {
                let last = match usize::try_from(last) {
                    Ok(last) => begin.saturating_add(last),
                    Err(_) if limit > 1 => {
                        let many = len.saturating_sub(begin) / limit;
                        (begin + many).checked_sub(last.unsigned_abs() as usize)?
                    }
                    Err(_) => len.checked_sub(last.unsigned_abs() as usize)?,
                };
                Some((begin..last.saturating_add(1).min(len), step))
            }
            Find::Count { at, first, step } => {
                let count = usize::try_from(parse_i64(args.at(begin + at)?)?).ok()?;
                let first = begin + first;
                let end = count.checked_mul(step)?.checked_add(first)?;
                (end <= len).then_some((first..end, step))
            }
            Find::Option { word, others } => {
                let at = last_option(args, begin, word, others)? + 1;
                Some((at..at + 1, 1))
            }
            Find::Patterns { .. } | Find::Unknown => None,
        }
    }
}

/// The first of the words that a pattern follows which generates keys.
fn first_pattern(
    args: &Args<'_>,
    from: usize,
    words: &[(&'static str, bool)],
    others: &[(&str, usize, bool)],
) -> Option<&'static str> {
    let mut at = from;
    while at < args.len() {
        let is = |name: &str| args.text(at).eq_ignore_ascii_case(name.as_bytes());
        let (taken, are_integers) = match words.iter().find(|(word, _)| is(word)) {
            Some((word, needs_star)) => {
                if args.at(at + 1).is_some_and(|arg| !needs_star || arg.contains(&b'*')) {
                    return Some(word);
                }
                (1, false)
            }
            None => others.iter().find(|other| is(other.0)).map(|other| (other.1, other.2))?,
        };
        let mut taken = at + 1..at + 1 + taken;
        at = taken.end;
        // The last option lacks arguments, or an argument has the wrong form.
        let is_wrong = |arg: usize| are_integers && parse_i64(args.text(arg)).is_none();
        if taken.end > args.len() || taken.any(is_wrong) {
            return None;
        }
    }
    None
}

/// The index of the last option with this name that has an argument.
fn last_option(
    args: &Args<'_>,
    from: usize,
    word: &str,
    others: &[(&str, usize)],
) -> Option<usize> {
    let is = |at: usize, name: &str| args.text(at).eq_ignore_ascii_case(name.as_bytes());
    let (mut at, mut found) = (from, None);
    while at < args.len() {
        if is(at, word) && at + 1 < args.len() {
            found = Some(at);
            at += 2;
        } else {
            at += 1 + others.iter().find(|other| is(at, other.0)).map_or(0, |other| other.1);
        }
    }
    found
}

/// The index of a word after options, which start after the command's name. Unknown words are
/// skipped: the command refuses them, but COMMAND GETKEYS finds the keys, as in Redis.
fn after_options(args: &Args<'_>, word: &str, options: &[(&str, usize)]) -> Option<usize> {
    let mut at = 1;
    while at < args.len() {
        let is = |name: &str| args.text(at).eq_ignore_ascii_case(name.as_bytes());
        if is(word) {
            return Some(at);
        }
        at += 1 + options.iter().find(|option| is(option.0)).map_or(0, |option| option.1);
    }
    None
}

/// The index of a word in any case; see [`Begin::Keyword`].
fn position_of(args: &Args<'_>, word: &str, from: i32) -> Option<usize> {
    let is_word = |at: &usize| args.text(*at).eq_ignore_ascii_case(word.as_bytes());
    match usize::try_from(from) {
        Ok(from) => (from..args.len()).find(is_word),
        Err(_) => {
            let last = args.len().checked_sub(from.unsigned_abs() as usize)?;
            (1..=last).rev().find(is_word)
        }
    }
}

/// The index of the last occurrence of a word. An argument after the word or one of its rivals is a
/// key, even if it equals a word.
fn last_of(args: &Args<'_>, word: &str, rivals: &[&str], from: i32) -> Option<usize> {
    let mut at = usize::try_from(from).ok()?;
    let mut last = None;
    while at + 1 < args.len() {
        let is = |word: &str| args.text(at).eq_ignore_ascii_case(word.as_bytes());
        if is(word) {
            last = Some(at);
            at += 1;
        } else if rivals.iter().any(|rival| is(rival)) {
            at += 1;
        }
        at += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Span;

    fn spans(request: &str) -> Vec<Span> {
        let mut at = 0;
        let span = |word: &str| {
            at += word.len() + 1;
            Span::new(at - word.len() - 1, word.len())
        };
        request.split(' ').map(span).collect()
    }

    fn positions(spec: KeySpec, request: &str) -> Vec<usize> {
        spec.positions(&Args::new(request.as_bytes(), &spans(request), &[])).collect()
    }

    fn miscounts(spec: KeySpec, request: &str) -> bool {
        spec.miscounts(&Args::new(request.as_bytes(), &spans(request), &[]))
    }

    #[test]
    fn keys_of_each_form() {
        let ro = Access::RO;
        assert_eq!(positions(KeySpec::one(1, ro), "get k"), [1]);
        assert_eq!(positions(KeySpec::to_end(1, 2, ro), "mset a 1 b 2"), [1, 3]);
        assert_eq!(positions(KeySpec::range(1, -2, 1, ro), "blpop a b 0"), [1, 2]);
        assert_eq!(positions(KeySpec::counted(1, ro), "zunion 2 a b weights 1 2"), [2, 3]);
        for wrong in ["zunion 3 a b", "zunion x a", "zunion -1 a", "zunion 9223372036854775807 a"] {
            assert_eq!(positions(KeySpec::counted(1, ro), wrong), [0_usize; 0], "{wrong}");
            assert!(miscounts(KeySpec::counted(1, ro), wrong), "{wrong}");
        }
        assert!(miscounts(KeySpec::counted(1, ro), "zunion 0 a"));
        assert!(!miscounts(KeySpec::counted(1, ro), "zunion 1 a"));
        assert!(!miscounts(KeySpec::one(1, ro), "get"));
        let options = &[("COUNT", 1), ("GROUP", 2), ("NOACK", 0)];
        let streams = KeySpec::half_after("STREAMS", 4, options, ro);
        assert_eq!(positions(streams, "xread count 1 streams a b 0 0"), [4, 5]);
        assert_eq!(positions(streams, "xread streams a b 0"), [2]);
        assert_eq!(positions(streams, "xread streams a"), [0_usize; 0]);
        assert_eq!(positions(streams, "xread count 1"), [0_usize; 0]);
        assert_eq!(positions(streams, "xread count streams streams a 0"), [4]);
        assert_eq!(positions(streams, "xread noack group a streams STREAMS s >"), [6]);
        assert_eq!(positions(streams, "xread group streams count streams s >"), [5]);
        assert_eq!(positions(streams, "xread unknown streams a 0"), [3]);
        assert_eq!(positions(streams, "xread unknown 1 count streams streams a 0"), [6]);
        let store = KeySpec::after("STORE", -2, ro);
        assert_eq!(positions(store, "georadius k 1 2 3 m store d"), [7]);
        assert_eq!(positions(store, "georadius k 1 2 3 m"), [0_usize; 0]);
        let last = KeySpec::after_last("STORE", &["STOREDIST"], 3, ro);
        assert_eq!(positions(last, "x k m store a"), [4]);
        assert_eq!(positions(last, "x k m store a store b"), [6]);
        assert_eq!(positions(last, "x k m store a desc store b store c"), [9]);
        assert_eq!(positions(last, "x k m STORE storedist"), [4]);
        assert_eq!(positions(last, "x k m STORE store store b"), [6]);
        assert_eq!(positions(last, "x k m store a storedist store"), [4]);
        assert_eq!(positions(last, "x k m storedist a store b storedist c"), [6]);
        assert_eq!(positions(last, "x k m storedist a asc store"), [0_usize; 0]);
        assert_eq!(positions(KeySpec::unknown(ro), "sort k by w_*"), [0_usize; 0]);
        let option = KeySpec::option(2, "STORE", &[("BY", 1), ("LIMIT", 2)], ro);
        assert_eq!(positions(option, "sort k by store limit 0 1 store a desc store b"), [11]);
        assert_eq!(positions(option, "sort k by store"), [0_usize; 0]);
        assert_eq!(positions(option, "sort k store"), [0_usize; 0]);
    }

    #[test]
    fn words_before_patterns() {
        let words = &[("BY", true), ("GET", false)];
        let others = &[("ASC", 0, false), ("LIMIT", 2, true), ("STORE", 1, false)];
        let spec = KeySpec::patterns(2, words, others, Access::RO);
        for (request, expected) in [
            ("sort k", None),
            ("sort k by w_*", Some("BY")),
            ("sort k asc limit 0 1 get x", Some("GET")),
            ("sort k by nosort", None),
            ("sort k by nosort Get #", Some("GET")),
            ("sort k store by by get", None),
            ("sort k store by get w_*", Some("GET")),
            ("sort k unknown by w_*", None),
            ("sort k by", None),
            ("sort k limit 0", None),
            ("sort k limit 0 x get y", None),
            ("sort k limit 0 -1 get y", Some("GET")),
            ("sort k get y limit 0 x", Some("GET")),
            ("sort k get", None),
        ] {
            let args = spans(request);
            let found = spec.pattern_word(&Args::new(request.as_bytes(), &args, &[]));
            assert_eq!(found, expected, "{request}");
            assert_eq!(positions(spec, request), [0_usize; 0]);
        }
    }

    #[test]
    fn one_key_from_the_number_of_arguments() {
        let ro = Access::RO;
        assert_eq!(KeySpec::one(2, ro).single_key(), Some((2, usize::MAX)));
        assert_eq!(KeySpec::to_end(1, 1, ro).single_key(), Some((1, 2)));
        assert_eq!(KeySpec::to_end(1, 2, ro).single_key(), Some((1, 3)));
        assert_eq!(KeySpec::range(1, -2, 1, ro).single_key(), Some((1, 3)));
        assert_eq!(KeySpec::counted(1, ro).single_key(), None);
    }
}
