//! The options of CLIENT TRACKING and their conflicts, and which reads of a client are remembered.
//!
//! ```text
//!             ON               ON with other options of the same mode
//!     off  -------->  default  ---------------------------------------> default
//!      ^              |  opts in: reads announced by CLIENT CACHING YES are remembered
//!      |     OFF      |  opts out: reads announced by CLIENT CACHING NO are not
//!      +--------------+
//!      |     OFF      |        ON adds prefixes
//!      +-------- broadcast  ------------------> broadcast
//! ```

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::prefixes::{Prefix, Prefixes};

/// The approximate bytes that a prefix takes in addition to its name: with its client, and in the
/// map of all prefixes.
const PREFIX_BYTES: usize = 256;

/// The options of CLIENT TRACKING ON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// The number of the client that is notified instead, or 0 for the client itself.
    pub redirect: u64,
    /// The client is notified of all changes of keys with its prefixes, whatever it has read.
    pub broadcasts: bool,
    /// The prefixes; none of them means all keys.
    pub prefixes: Vec<&'a [u8]>,
    /// Only reads after CLIENT CACHING YES are remembered.
    pub opts_in: bool,
    /// Reads after CLIENT CACHING NO are not remembered.
    pub opts_out: bool,
    /// The client is not notified of its own changes.
    pub no_loop: bool,
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Prefixes without BCAST.
    PrefixWithoutBroadcast,
    /// BCAST cannot be turned on or off while tracking.
    BroadcastSwitched,
    /// OPTIN or OPTOUT together with BCAST.
    ChoiceWithBroadcast,
    /// OPTIN together with OPTOUT.
    InAndOut,
    /// OPTIN and OPTOUT cannot be exchanged while tracking.
    ChoiceSwitched,
    /// A prefix overlaps with one that the client has.
    OverlapsOwn(Vec<u8>, Vec<u8>),
    /// A prefix overlaps with another of the same request.
    OverlapsOther(Vec<u8>, Vec<u8>),
    /// CLIENT CACHING from a client that is not tracking.
    NotTracking,
    /// CLIENT CACHING YES from a client that does not opt in.
    DoesNotOptIn,
    /// CLIENT CACHING NO from a client that does not opt out.
    DoesNotOptOut,
}

/// The tracking options of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackingState {
    /// The number of the client that is notified instead, or 0 for the client itself.
    pub redirect: u64,
    broadcasts: bool,
    opts_in: bool,
    opts_out: bool,
    no_loop: bool,
    /// CLIENT CACHING has announced the next command.
    caching: bool,
    prefixes: BTreeSet<Prefix>,
    prefix_bytes: usize,
}

impl TrackingState {
    /// Applies `options` to the state of a client that may track already. Returns the prefixes that
    /// are new for it: a client may ask for very many one by one, and known ones cost nothing more.
    ///
    /// # Errors
    /// When the options conflict. `state` stays unchanged.
    pub fn begin(
        state: &mut Option<Box<Self>>,
        options: &Options<'_>,
    ) -> Result<Vec<Prefix>, Conflict> {
        let Options { redirect, broadcasts, opts_in, opts_out, no_loop, .. } = *options;
        if !broadcasts && !options.prefixes.is_empty() {
            return Err(Conflict::PrefixWithoutBroadcast);
        }
        let before = state.as_deref();
        if before.is_some_and(|before| before.broadcasts != broadcasts) {
            return Err(Conflict::BroadcastSwitched);
        }
        if broadcasts && (opts_in || opts_out) {
            return Err(Conflict::ChoiceWithBroadcast);
        }
        if opts_in && opts_out {
            return Err(Conflict::InAndOut);
        }
        let switches = |before: &Self| opts_in && before.opts_out || opts_out && before.opts_in;
        if before.is_some_and(switches) {
            return Err(Conflict::ChoiceSwitched);
        }
        let none = BTreeSet::new();
        check_overlaps(before.map_or(&none, |before| &before.prefixes), &options.prefixes)?;
        let mut added: Vec<Prefix> = options.prefixes.iter().map(|&prefix| prefix.into()).collect();
        if broadcasts && added.is_empty() {
            added.push(Prefix::default());
        }
        let state = state.get_or_insert_default();
        added.retain(|prefix| state.prefixes.insert(prefix.clone()));
        // The client, the map of all prefixes and the audience each keep its bytes.
        state.prefix_bytes +=
            added.iter().map(|prefix| 3 * prefix.len() + PREFIX_BYTES).sum::<usize>();
        (state.redirect, state.broadcasts, state.no_loop) = (redirect, broadcasts, no_loop);
        (state.opts_in, state.opts_out) = (opts_in, opts_out);
        Ok(added)
    }

    /// CLIENT CACHING with YES or NO.
    ///
    /// # Errors
    /// When the client has not opted in or out accordingly.
    pub fn announce(&mut self, yes: bool) -> Result<(), Conflict> {
        match yes {
            true if !self.opts_in => Err(Conflict::DoesNotOptIn),
            false if !self.opts_out => Err(Conflict::DoesNotOptOut),
            _ => {
                self.caching = true;
                Ok(())
            }
        }
    }

    /// Ends the announced command.
    pub fn end_announced(&mut self) {
        self.caching = false;
    }

    /// Whether the keys that the running command reads are remembered.
    pub fn remembers(&self) -> bool {
        let is_chosen = match self.caching {
            true => !self.opts_out,
            false => !self.opts_in,
        };
        is_chosen && !self.broadcasts
    }

    /// Whether the client is notified of all changes of keys with its prefixes.
    pub fn broadcasts(&self) -> bool {
        self.broadcasts
    }

    /// Whether the client is not notified of its own changes.
    pub fn no_loop(&self) -> bool {
        self.no_loop
    }

    /// The prefixes, in ascending order.
    pub fn prefixes(&self) -> &BTreeSet<Prefix> {
        &self.prefixes
    }

    /// The approximate bytes of memory that the prefixes take.
    pub fn prefix_bytes(&self) -> usize {
        self.prefix_bytes
    }

    /// The words of CLIENT TRACKINGINFO for the options, without `on`.
    pub fn words(&self) -> Vec<&'static str> {
        let words = [
            (self.broadcasts, "bcast"),
            (self.opts_in, "optin"),
            (self.opts_in && self.caching, "caching-yes"),
            (self.opts_out, "optout"),
            (self.opts_out && self.caching, "caching-no"),
            (self.no_loop, "noloop"),
        ];
        words.into_iter().filter_map(|(is_so, word)| is_so.then_some(word)).collect()
    }
}

/// The first of a client's prefixes that is a beginning of this one or begins with it. A client's
/// prefixes do not overlap, except for the empty one.
fn overlapping<'a>(own: &'a BTreeSet<Prefix>, prefix: &[u8]) -> Option<&'a Prefix> {
    let empty = own.first().filter(|first| first.is_empty());
    let before = || own.range::<[u8], _>((Bound::Unbounded, Bound::Included(prefix))).next_back();
    let behind = || own.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded)).next();
    empty
        .or_else(|| before().filter(|own| prefix.starts_with(own)))
        .or_else(|| behind().filter(|own| own.starts_with(prefix)))
}

/// The first of the prefixes that overlaps with a later one.
fn first_overlapping(asked: &[&[u8]]) -> Option<usize> {
    let mut behind = Prefixes::default();
    let mut first = None;
    for (at, prefix) in asked.iter().enumerate().rev() {
        if behind.overlaps(prefix) {
            first = Some(at);
        }
        behind.or_insert_with(prefix, || ());
    }
    first
}

fn check_overlaps(own: &BTreeSet<Prefix>, asked: &[&[u8]]) -> Result<(), Conflict> {
    let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    let first = first_overlapping(asked);
    for (at, prefix) in asked.iter().enumerate() {
        if let Some(own) = overlapping(own, prefix) {
            return Err(Conflict::OverlapsOwn(prefix.to_vec(), own.to_vec()));
        }
        if first == Some(at)
            && let Some(other) = asked[at + 1..].iter().find(|other| overlap(other, prefix))
        {
            return Err(Conflict::OverlapsOther(prefix.to_vec(), other.to_vec()));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn begin(before: Option<&TrackingState>, words: &str) -> Result<TrackingState, Conflict> {
        let mut options = Options::default();
        for word in words.split_whitespace() {
            match word {
                "bcast" => options.broadcasts = true,
                "optin" => options.opts_in = true,
                "optout" => options.opts_out = true,
                "noloop" => options.no_loop = true,
                prefix => options.prefixes.push(prefix.as_bytes()),
            }
        }
        let mut state = before.cloned().map(Box::new);
        let begun = TrackingState::begin(&mut state, &options);
        if begun.is_err() {
            assert_eq!(state.as_deref(), before);
        }
        begun.map(|_| *state.unwrap())
    }

    #[test]
    fn conflicting_options_are_refused() {
        let overlaps_own = |one: &str, own: &str| Conflict::OverlapsOwn(one.into(), own.into());
        let overlaps = |one: &str, other: &str| Conflict::OverlapsOther(one.into(), other.into());
        let cases = [
            (None, "a:", Conflict::PrefixWithoutBroadcast),
            (Some("bcast"), "", Conflict::BroadcastSwitched),
            (Some(""), "bcast", Conflict::BroadcastSwitched),
            (None, "bcast optin", Conflict::ChoiceWithBroadcast),
            (None, "optin optout", Conflict::InAndOut),
            (Some("optin"), "optout", Conflict::ChoiceSwitched),
            (Some("optout"), "optin", Conflict::ChoiceSwitched),
            (Some("bcast ab"), "bcast abc", overlaps_own("abc", "ab")),
            (Some("bcast ab"), "bcast x a", overlaps_own("a", "ab")),
            (Some("bcast ac ab b"), "bcast x a", overlaps_own("a", "ab")),
            (Some("bcast"), "bcast x x", overlaps_own("x", "")),
            (Some("bcast y"), "bcast a ab y", overlaps("a", "ab")),
            (Some("bcast y"), "bcast ab y a", overlaps("ab", "a")),
            (Some("bcast y"), "bcast z y a ab", overlaps_own("y", "y")),
            (None, "bcast x ab x", overlaps("x", "x")),
            (None, "bcast ab x abc", overlaps("ab", "abc")),
        ];
        for (before, asked, conflict) in cases {
            let before = before.map(|words| begin(None, words).unwrap());
            assert_eq!(begin(before.as_ref(), asked), Err(conflict), "{before:?} {asked}");
        }
    }

    #[test]
    fn prefixes_accumulate_and_other_options_are_replaced() {
        let first = begin(None, "bcast b noloop").unwrap();
        let second = begin(Some(&first), "bcast a").unwrap();
        assert!(!second.no_loop());
        let prefixes: Vec<&[u8]> = second.prefixes().iter().map(|prefix| &**prefix).collect();
        assert_eq!(prefixes, [&b"a"[..], b"b"]);
        let all = begin(Some(&second), "bcast").unwrap();
        assert_eq!(all.prefixes().len(), 3, "as in Redis, without an error");
        // A request without a choice keeps both.
        let opted = begin(None, "optin").unwrap();
        assert!(begin(Some(&opted), "").unwrap().remembers());
    }

    /// A client with many prefixes adds another one in constant time.
    #[test]
    fn very_many_prefixes_are_added_quickly() {
        let begin = std::time::Instant::now();
        let names: Vec<String> = (0..60_000).map(|nth| format!("{nth}:")).collect();
        let (one_by_one, together) = names.split_at(30_000);
        let mut state = None;
        let mut ask = |names: &[String]| {
            let prefixes = names.iter().map(|name| name.as_bytes()).collect();
            let options = Options { broadcasts: true, prefixes, ..Options::default() };
            TrackingState::begin(&mut state, &options).unwrap().len()
        };
        assert!(one_by_one.chunks(1).all(|one| ask(one) == 1));
        assert_eq!(ask(together), 30_000);
        let state = state.unwrap();
        assert_eq!(state.prefixes().len(), 60_000);
        assert!(state.prefix_bytes() > 60_000 * PREFIX_BYTES);
        // Comparing with all prefixes each time would take a minute.
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }

    #[test]
    fn announcements_decide_which_reads_are_remembered() {
        let remembers = |words: &str, announced: Option<bool>| {
            let mut state = begin(None, words).unwrap();
            if let Some(yes) = announced {
                state.announce(yes).unwrap();
            }
            let remembered = state.remembers();
            state.end_announced();
            (remembered, state.remembers())
        };
        assert_eq!(remembers("", None), (true, true));
        assert_eq!(remembers("bcast", None), (false, false));
        assert_eq!(remembers("optin", None), (false, false));
        assert_eq!(remembers("optin", Some(true)), (true, false));
        assert_eq!(remembers("optout", None), (true, true));
        assert_eq!(remembers("optout", Some(false)), (false, true));
        let refused = |words: &str, yes| begin(None, words).unwrap().announce(yes);
        assert_eq!(refused("optout", true), Err(Conflict::DoesNotOptIn));
        assert_eq!(refused("optin", false), Err(Conflict::DoesNotOptOut));
        assert_eq!(refused("", false), Err(Conflict::DoesNotOptOut));
    }
}
