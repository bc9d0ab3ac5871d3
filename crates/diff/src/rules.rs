//! The excluded commands, the replies that are not compared byte for byte, and the intended
//! differences: three small tables with a reason in each row.
//!
//! A command without a row is sent, and its replies must be equal. Errors must always be equal.

use command::{Flags, Spec};
use node::table;
use resp::{Args, Span};

use test_support::Value;

use crate::Request;
use crate::compare::{Compare, same};

/// Commands whose replies are not compared by [`Compare::Exact`].
struct Rule {
    /// Full names as in the table of commands: `object|idletime`.
    commands: &'static [&'static str],
    /// The requests that the row covers.
    when: fn(&Request) -> bool,
    compare: Compare,
    forget: Forget,
    reason: &'static str,
}

/// The keys that are deleted after a request because they differ between the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forget {
    Nothing,
    /// All its keys, after a comparison of their values.
    Keys,
    /// The first key, without a comparison.
    First,
    /// The key that stores the result of a search, without a comparison.
    Stored,
}

const BETWEEN: &str = "has a reply for each name, and messages come between other replies";

/// Never sent.
const EXCLUDED: &[(&str, &str)] = &[
    ("pfselftest", "tests the server itself, and takes seconds"),
    ("monitor", BETWEEN),
    ("subscribe", BETWEEN),
    ("psubscribe", BETWEEN),
    ("ssubscribe", BETWEEN),
    ("unsubscribe", BETWEEN),
    ("punsubscribe", BETWEEN),
    ("sunsubscribe", BETWEEN),
    ("waitaof", "what it waits for is not on the disk of both at the same time"),
    ("object|help", "help texts are our own"),
    ("pubsub|help", "help texts are our own"),
    ("xgroup|help", "help texts are our own"),
    ("xinfo|help", "help texts are our own"),
];

/// The largest difference between the times at which two servers execute the same request, in
/// milliseconds and in seconds.
const APART_MS_MAX: u64 = 10_000;
const APART_SECONDS_MAX: u64 = 10;

fn always(_: &Request) -> bool {
    true
}

const fn rule(commands: &'static [&'static str], compare: Compare, reason: &'static str) -> Rule {
    Rule { commands, when: always, compare, forget: Forget::Nothing, reason }
}

impl Rule {
    const fn when(self, when: fn(&Request) -> bool) -> Self {
        Self { when, ..self }
    }

    const fn forget(self, forget: Forget) -> Self {
        Self { forget, ..self }
    }
}

/// The first row that covers a request counts.
const RULES: &[Rule] = &[
    rule(&["ttl", "expiretime", "httl", "hexpiretime"], Compare::Near(APART_SECONDS_MAX), "time"),
    rule(&["pttl", "pexpiretime", "hpttl", "hpexpiretime"], Compare::Near(APART_MS_MAX), "time"),
    rule(&["object|idletime"], Compare::Shape, "time, and Redis never touches shared integers"),
    rule(&["object|refcount"], Compare::Shape, "what is shared is each server's business"),
    rule(&["dump"], Compare::Shape, "hash tables have no order; payloads are read crosswise"),
    rule(&["xpending", "xinfo|stream", "xinfo|consumers"], Compare::Ages, "time"),
    rule(&["spop"], Compare::Shape, "random").forget(Forget::Keys),
    rule(&["srandmember", "hrandfield", "zrandmember", "randomkey"], Compare::Shape, "random"),
    rule(&["keys"], Compare::Unordered(1), "hash tables have no order"),
    rule(
        &["smembers", "sinter", "sunion", "sdiff", "hkeys", "hvals"],
        Compare::Unordered(1),
        "hash tables have no order",
    ),
    rule(
        &["acl|cat"],
        Compare::Unordered(1),
        "tables of commands have no order; those that one server alone knows are left out",
    ),
    rule(&["hgetall"], Compare::Unordered(2), "hash tables have no order"),
    rule(&["scan", "sscan"], Compare::Scan(1), "cursors, and hash tables have no order"),
    rule(&["hscan"], Compare::Scan(1), "the same").when(|request| has(request, "NOVALUES")),
    rule(&["hscan", "zscan"], Compare::Scan(2), "the same"),
    rule(&["xadd"], Compare::Shape, "the clock makes the id")
        .when(|r| has(r, "*"))
        .forget(Forget::Keys),
    rule(GEO, Compare::Exact, "equal distances have no order")
        .when(is_nearest)
        .forget(Forget::Stored),
    rule(SORT, Compare::Shape, "equal weights have no order")
        .when(is_cut_anywhere)
        .forget(Forget::Keys),
    rule(SORT, Compare::Unordered(1), "the same").when(is_unordered_sort).forget(Forget::Keys),
    rule(SORT, Compare::Exact, "Redis unpacks the sorted set that it sorts").forget(Forget::First),
];

pub(crate) const SORT: &[&str] = &["sort", "sort_ro"];

const GEO: &[&str] = &[
    "georadius",
    "georadius_ro",
    "georadiusbymember",
    "georadiusbymember_ro",
    "geosearch",
    "geosearchstore",
];

/// Whether it asks for the nearest or the farthest elements, and not for any.
fn is_nearest(request: &Request) -> bool {
    has(request, "COUNT") && !has(request, "ANY")
}

/// Whether the elements are sorted by external text, which may be equal or missing for several
/// elements, or not sorted.
fn is_unordered_sort(request: &Request) -> bool {
    let by = after(request, "BY");
    by.is_some_and(|by| has(request, "ALPHA") || !by.contains(&b'*'))
}

fn is_cut_anywhere(request: &Request) -> bool {
    is_unordered_sort(request) && has(request, "LIMIT")
}

/// A difference that is intended.
struct Explained {
    /// Full names; empty for all commands.
    commands: &'static [&'static str],
    /// Whether the replies may differ in this way.
    holds: fn(&Request, &Value, &Value) -> bool,
    reason: &'static str,
}

/// Intended differences. The data may differ afterwards as well, so a round ends there.
const EXPLAINED: &[Explained] = &[
    Explained {
        commands: &[],
        holds: |request, subject, reference| {
            let is_odd = |byte: &u8| *byte == 0 || !byte.is_ascii();
            let errors = subject.is_error() && reference.is_error();
            errors && request.iter().flatten().any(is_odd) && same_start(subject, reference)
        },
        reason: "Weft's error texts are valid UTF-8, and do not end at a zero byte of the request",
    },
    Explained {
        commands: &["scan", "sscan", "hscan", "zscan"],
        holds: |request, subject, _| {
            subject.is_error() && request.iter().any(|word| word == b"-9223372036854775809")
        },
        reason: "Redis takes a number below those of 64 bits for a cursor, but no other negative",
    },
    Explained {
        commands: &["pfmerge"],
        holds: |request, subject, _| {
            request.len() == 2 && subject.bytes().is_some_and(|text| text.starts_with(b"NOPERM"))
        },
        reason: "Redis finds no key in a PFMERGE without sources, and denies it to nobody",
    },
    Explained {
        commands: &["lset"],
        holds: |request, subject, _| {
            let index =
                request.get(2).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
            let beyond = index.is_some_and(|index: i64| i32::try_from(index).is_err());
            // A script that raises the error adds its name.
            beyond
                && subject.bytes().is_some_and(|text| text.starts_with(b"ERR index out of range"))
        },
        reason: "Redis cuts the index to 32 bits",
    },
    Explained {
        commands: &["pfdebug"],
        holds: |_, subject, reference| {
            let is_corrupt = subject.bytes().is_some_and(|text| text.starts_with(b"INVALIDOBJ"));
            is_corrupt && !reference.is_error()
        },
        reason: "Redis reads a byte behind the end of a corrupt HyperLogLog",
    },
    Explained {
        commands: GEO,
        holds: |request, subject, reference| {
            let mut pairs = subject.elements().iter().zip(reference.elements());
            is_nearest(request)
                && same(Compare::Shape, subject, reference)
                && (!has(request, "WITHDIST")
                    || pairs.all(|(a, b)| a.elements().get(1) == b.elements().get(1)))
        },
        reason: "members at the same distance have no order when some are left out",
    },
    Explained {
        commands: SORT,
        holds: |request, subject, reference| {
            let no_number = b"ERR One or more scores can't be converted into double";
            let shows_weights = !["BY", "GET", "STORE"].iter().any(|word| has(request, word));
            let mut weights = subject.elements().iter().map(|weight| double(weight.bytes()?));
            reference.bytes() == Some(no_number)
                && !subject.is_error()
                && (!shows_weights || weights.all(|weight| weight.is_some()))
        },
        reason: "Redis refuses every weight after another command has met a number out of range",
    },
    Explained {
        commands: SORT,
        holds: |request, subject, reference| {
            let texts = || subject.elements().iter().chain(reference.elements());
            let has_zero = texts().filter_map(Value::bytes).any(|text| text.contains(&0));
            // Their order is undefined, and so is which of them a part contains.
            let how = match has(request, "LIMIT") {
                true => Compare::Shape,
                false => Compare::Unordered(1),
            };
            has(request, "ALPHA") && has_zero && same(how, subject, reference)
        },
        reason: "texts that are the same up to a zero byte have no order in Redis",
    },
    Explained {
        commands: &["acl|getuser", "acl|list"],
        holds: |_, subject, reference| plain_pattern(subject) == plain_pattern(reference),
        reason: "Redis writes the pattern %RW~* as ~*, which cannot be read back beside others",
    },
    Explained {
        commands: &["acl|dryrun"],
        holds: |request, subject, _| {
            let is_sort =
                request.get(3).is_some_and(|name| name.to_ascii_lowercase().starts_with(b"sort"));
            is_sort
                && subject
                    .bytes()
                    .is_some_and(|text| text.ends_with(b"due to insufficient ACL permissions."))
        },
        reason: "the options of SORT that its user may not use are only denied when Redis runs it",
    },
    Explained {
        commands: LEX,
        holds: |request, _, _| {
            let is_option = matches!(&*name(request), "zrange" | "zrangestore");
            let is_lex = !is_option || has(request, "BYLEX");
            is_lex && request.iter().all(|word| !word.starts_with(b"y"))
        },
        reason: "ranges by name are undefined among members of different scores",
    },
];

const LEX: &[&str] =
    &["zlexcount", "zrange", "zrangestore", "zrangebylex", "zrevrangebylex", "zremrangebylex"];

fn double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The texts of rules, with the pattern that Redis writes for access to all keys.
fn plain_pattern(value: &Value) -> Value {
    match value {
        Value::Text(marker, text) => {
            let text = String::from_utf8_lossy(text).replace("%RW~* ", "~* ");
            let text =
                text.strip_suffix("%RW~*").map_or(text.clone(), |start| format!("{start}~*"));
            Value::Text(*marker, text.into_bytes())
        }
        Value::Many(marker, elements) => {
            Value::Many(*marker, elements.iter().map(plain_pattern).collect())
        }
        null @ Value::Null(_) => null.clone(),
    }
}

/// Whether two texts are the same up to the first byte that is not plain.
fn same_start(subject: &Value, reference: &Value) -> bool {
    let plain = |value: &Value| {
        let text = value.bytes().unwrap_or_default().to_vec();
        text.into_iter().take_while(|byte| (b' '..0x7f).contains(byte)).collect::<Vec<_>>()
    };
    let (subject, reference) = (plain(subject), plain(reference));
    subject.starts_with(&reference) || reference.starts_with(&subject)
}

/// All rows of the tables, one a line: commands, treatment and reason.
pub fn describe() -> String {
    let excluded = EXCLUDED.iter().map(|(name, reason)| format!("{name}: not sent: {reason}\n"));
    let rules = RULES
        .iter()
        .map(|rule| format!("{}: {:?}: {}\n", rule.commands.join(" "), rule.compare, rule.reason));
    let explained = EXPLAINED
        .iter()
        .map(|row| format!("{}: may differ: {}\n", row.commands.join(" "), row.reason));
    excluded.chain(rules).chain(explained).collect()
}

/// Why a command is never sent, if it is excluded.
pub fn excluded(name: &str) -> Option<&'static str> {
    EXCLUDED.iter().find(|(excluded, _)| *excluded == name).map(|(_, reason)| *reason)
}

/// How replies to a request are compared.
pub fn compare(request: &Request) -> Compare {
    rule_of(request).map_or(Compare::Exact, |rule| rule.compare)
}

/// How replies are compared that a script with this protocol has passed on. Numbers, strings and
/// arrays pass unchanged. In protocol 3 a script sees maps and sets as Lua tables, which have no
/// order; a client of protocol 2 gets arrays.
pub fn through_script(how: Compare, protocol: u8) -> Compare {
    match how {
        Compare::Scan(_) => Compare::Count,
        Compare::Exact | Compare::Unordered(_) if protocol == 3 => Compare::Loose,
        Compare::Ages if protocol == 3 => Compare::Count,
        how => how,
    }
}

/// The keys that must be deleted after a request.
pub(crate) fn forget(request: &Request) -> Forget {
    rule_of(request).map_or(Forget::Nothing, |rule| rule.forget)
}

/// Why two different replies are both right, if a row says so.
pub fn explained(request: &Request, subject: &Value, reference: &Value) -> Option<&'static str> {
    let name = name(request);
    let is_meant = |row: &&Explained| row.commands.is_empty() || row.commands.contains(&&*name);
    let mut rows = EXPLAINED.iter().filter(is_meant);
    rows.find(|row| (row.holds)(request, subject, reference)).map(|row| row.reason)
}

/// Whether a request lets a key expire a millisecond later. The next request must wait for that:
/// otherwise the key would expire at different requests on the two servers.
pub fn ends_at_once(request: &Request) -> bool {
    let time = match &*name(request) {
        "pexpire" | "psetex" => request.get(2).map(Vec::as_slice),
        "set" | "getex" | "msetex" => after(request, "PX"),
        _ => None,
    };
    time == Some(b"1")
}

/// Whether a request changes nothing.
pub fn is_read(request: &Request) -> bool {
    // Requests about users have no such flag.
    spec_of(request).is_some_and(|(name, spec)| {
        spec.flags.has(Flags::READONLY) || matches!(name, "acl|getuser" | "acl|list" | "acl|dryrun")
    })
}

/// The full name of the command as in the table, or the first word of a request that is in no
/// table.
pub fn name(request: &Request) -> String {
    match spec_of(request) {
        Some((name, _)) => name.to_owned(),
        None => String::from_utf8_lossy(request.first().map_or(&[], Vec::as_slice)).into_owned(),
    }
}

fn rule_of(request: &Request) -> Option<&'static Rule> {
    let (name, _) = spec_of(request)?;
    RULES.iter().find(|rule| rule.commands.contains(&name) && (rule.when)(request))
}

fn spec_of(request: &Request) -> Option<(&'static str, &'static Spec)> {
    let mut entry = table().find(request.first()?)?;
    if let Some(sub) = request.get(1).and_then(|word| table().find_subcommand(entry, word)) {
        entry = sub;
    }
    Some((&entry.name, entry.spec))
}

/// The keys that a request names.
pub(crate) fn keys(request: &Request) -> Vec<Vec<u8>> {
    let Some((_, spec)) = spec_of(request) else { return Vec::new() };
    let mut bytes = Vec::new();
    let mut spans = Vec::new();
    for word in request {
        spans.push(Span::new(bytes.len(), word.len()));
        bytes.extend_from_slice(word);
    }
    let args = Args::new(&bytes, &spans, &[]);
    let mut keys: Vec<Vec<u8>> = spec
        .keys
        .iter()
        .flat_map(|keys| keys.positions(&args))
        .filter_map(|at| request.get(at).cloned())
        .collect();
    // The destination of SORT is not among the keys that the row names.
    keys.extend(after(request, "STORE").map(<[u8]>::to_vec));
    keys.sort();
    keys.dedup();
    keys
}

/// Whether one of the arguments is this word, in any case.
fn has(request: &Request, word: &str) -> bool {
    request.iter().skip(1).any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}

/// The argument after the last such word, in any case.
pub(crate) fn after<'a>(request: &'a Request, word: &str) -> Option<&'a [u8]> {
    let at = request.iter().rposition(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))?;
    request.get(at + 1).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request;

    #[test]
    fn a_rule_holds_for_the_requests_it_means() {
        assert_eq!(compare(&request(&["GET", "k"])), Compare::Exact);
        assert_eq!(compare(&request(&["pTTL", "k"])), Compare::Near(APART_MS_MAX));
        assert_eq!(compare(&request(&["object", "REFCOUNT", "k"])), Compare::Shape);
        assert_eq!(compare(&request(&["no", "such"])), Compare::Exact);
        assert!(excluded("object|help").is_some() && excluded("get").is_none());
    }

    #[test]
    fn every_row_names_commands_of_the_table() {
        let excluded = EXCLUDED.iter().map(|(name, _)| name);
        let ruled = RULES.iter().flat_map(|rule| rule.commands);
        let explained = EXPLAINED.iter().flat_map(|row| row.commands);
        for name in excluded.chain(ruled).chain(explained) {
            let is_there = table().entries().iter().any(|entry| &*entry.name == *name);
            assert!(is_there, "{name}");
        }
    }

    #[test]
    fn a_key_that_ends_at_once_is_waited_for() {
        assert!(ends_at_once(&request(&["pexpire", "k", "1", "NX"])));
        assert!(ends_at_once(&request(&["SET", "k", "v", "px", "1"])));
        assert!(ends_at_once(&request(&["MSETEX", "1", "k", "v", "PX", "1"])));
        assert!(!ends_at_once(&request(&["SET", "k", "1"])));
        assert!(!ends_at_once(&request(&["PSETEX", "k", "1000000", "1"])));
    }

    #[test]
    fn names_are_those_of_the_table() {
        assert_eq!(name(&request(&["OBJECT", "Encoding", "k"])), "object|encoding");
        assert_eq!(name(&request(&["Get"])), "get");
        assert_eq!(name(&request(&["gett"])), "gett");
    }

    #[test]
    fn keys_that_a_request_names_are_found_by_its_row() {
        let keys = keys(&request(&["MSET", "a", "1", "b", "2"]));
        assert_eq!(keys, [b"a", b"b"]);
    }
}
