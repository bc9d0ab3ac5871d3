//! SORT and SORT_RO (<https://redis.io/docs/latest/commands/sort/>): sort the elements of a list,
//! set or sorted set by themselves or by keys that a pattern names.
//!
//! A pattern can name any key of the database, so a request with one runs exclusively; all others
//! lock only the shards of their keys. Texts are compared byte by byte, whatever the locale.

use std::cmp::Ordering;

use resp::{Args, Reply};
use store::{Db, Key, KeyspaceEvent, ListValue, StringValue, Turn};

use super::elements::{SortElements, SortOrder, push_elements};
use super::spec;
use crate::args::limit::{LIMIT, LimitClause};
use crate::args::number::float_before_nul;
use crate::cx::Cx;
use crate::error::Error;
use crate::event::DEL;
use crate::exec::Handler;
use crate::hash::read_field;
use command::{Access, Argument, Category, Flags, KeySpec, Row, Shape, ShardScope, Spec};

const READ: Access = Access::RO.with(Access::ACCESS);
const PATTERN_NOTES: &str = "Keys behind BY and GET follow from the elements of the key that is \
                            sorted";
/// BY without a star means no order.
const PATTERN_WORDS: &[(&str, bool)] = &[("BY", true), ("GET", false)];
const READ_OPTIONS: &[(&str, usize, bool)] =
    &[("ASC", 0, false), ("DESC", 0, false), ("ALPHA", 0, false), ("LIMIT", 2, true)];
const OPTIONS: &[(&str, usize, bool)] = &[
    ("ASC", 0, false),
    ("DESC", 0, false),
    ("ALPHA", 0, false),
    ("LIMIT", 2, true),
    ("STORE", 1, false),
];

/// The keys that patterns name, among these other options.
const fn derived(others: &'static [(&'static str, usize, bool)]) -> KeySpec {
    KeySpec::patterns(2, PATTERN_WORDS, others, READ).notes(PATTERN_NOTES)
}

const STORED: KeySpec = KeySpec::option(
    2,
    "STORE",
    &[("BY", 1), ("GET", 1), ("LIMIT", 2)],
    Access::OW.with(Access::UPDATE),
)
.notes("The word STORE may stand anywhere among the options");

/// The commands that sort.
pub const ROWS: &[Row<Handler>] = &[
    Row::new(
        sorting("sort", "1.0.0")
            .summary(
                // Clients compare this text with that of Redis.
                "Sorts the elements in a list, a set, or a sorted set, optionally storing the \
                 result.",
            )
            .flags(Flags::WRITE.with(Flags::DENYOOM))
            .keys(&[KeySpec::one(1, READ), derived(OPTIONS), STORED])
            .arguments(&[
                KEY,
                BY,
                LIMIT,
                GET,
                ORDER,
                ALPHA,
                Argument::new("destination", Shape::Key).after("STORE").optional().key_spec(2),
            ]),
        sort,
    ),
    Row::new(
        sorting("sort_ro", "7.0.0")
            .summary("Returns the sorted elements of a list, a set or a sorted set.")
            .flags(Flags::READONLY)
            .keys(&[KeySpec::one(1, READ), derived(READ_OPTIONS)])
            .arguments(&[KEY, BY, LIMIT, GET, ORDER, ALPHA]),
        sort_ro,
    ),
];

const KEY: Argument = Argument::key().key_spec(0);
const BY: Argument = Argument::new("by-pattern", Shape::Pattern)
    .display("pattern")
    .after("BY")
    .optional()
    .key_spec(1);
const GET: Argument = Argument::new("get-pattern", Shape::Pattern)
    .display("pattern")
    .after("GET")
    .optional()
    .multiple_token()
    .key_spec(1);
const ORDER: Argument = Argument::new(
    "order",
    Shape::OneOf(&[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")]),
)
.optional();
const ALPHA: Argument = Argument::word("sorting", "ALPHA").optional();

const fn sorting(name: &'static str, since: &'static str) -> Spec {
    let dangerous = Category::SET.with(Category::SORTED_SET).with(Category::LIST);
    Spec { extra_categories: Category::NONE, ..spec(name, -2, since) }
        .complexity("O(N+M*log(M)) for N elements of which M are returned; O(N) without sorting.")
        .category(dangerous.with(Category::DANGEROUS))
        .flags(Flags::MOVABLE_KEYS)
        .scope(ShardScope::KeysOrExclusive(&["BY", "GET"]))
}

/// The options of a request.
#[derive(Debug, Default)]
struct Options<'a> {
    by: Option<&'a [u8]>,
    limit: LimitClause,
    gets: Vec<&'a [u8]>,
    descending: bool,
    alpha: bool,
    store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>, may_store: bool) -> Result<Self, Error> {
        let mut options = Self::default();
        args.seek(2);
        while args.remaining() > 0 {
            if args.take_word("ASC") {
                options.descending = false;
            } else if args.take_word("DESC") {
                options.descending = true;
            } else if args.take_word("ALPHA") {
                options.alpha = true;
            } else if args.remaining() > 2 && args.take_word("LIMIT") {
                options.limit = LimitClause::parse(args)?;
            } else if args.remaining() > 1 && may_store && args.take_word("STORE") {
                options.store = args.next();
            } else if args.remaining() > 1 && args.take_word("BY") {
                options.by = args.next();
            } else if args.remaining() > 1 && args.take_word("GET") {
                options.gets.extend(args.next());
            } else {
                return Err(Error::Syntax);
            }
        }
        Ok(options)
    }

    /// Whether the elements keep their order: BY a pattern without a star.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| !pattern.contains(&b'*'))
    }

    /// The wanted part of `len` elements.
    fn range(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.limit.offset.max(0)).unwrap_or(usize::MAX).min(len);
        let count = usize::try_from(self.limit.count).unwrap_or(usize::MAX);
        start..start.saturating_add(count).min(len)
    }
}

/// The value by which elements are compared.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Number(f64),
    /// The index of a text; `None` comes first.
    Text(Option<usize>),
}

fn sort(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args, true)?;
    run(cx, args.text(1), options, reply)
}

fn sort_ro(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args, false)?;
    run(cx, args.text(1), options, reply)
}

fn run(
    cx: &mut Cx<'_>,
    key: &[u8],
    mut options: Options<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let key = cx.key(key);
    let mut elements = SortElements::default();
    let (db, turn) = cx.db(key);
    let given = push_elements(db, turn, key, &mut elements)?;
    // Neither a stored result nor a script may depend on the internal order of a set.
    let must_sort = options.store.is_some() || turn.in_script;
    if options.keeps_order() && given == SortOrder::Any && must_sort {
        options.by = None;
        options.alpha = true;
    }
    let mut order: Vec<usize> = (0..elements.len()).collect();
    let range = options.range(order.len());
    if options.keeps_order() {
        if options.descending && given != SortOrder::Any {
            order.reverse();
        }
    } else {
        sort_by_weight(cx, &elements, &options, &mut order, range.end)?;
    }
    let chosen = order.get(range).unwrap_or_default();
    let values = chosen.len().saturating_mul(options.gets.len().max(1));
    let Some(destination) = options.store else {
        reply.array(values);
        each_value(cx, &elements, &options, chosen, &mut |value| match value {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        });
        return Ok(());
    };
    let mut stored = SortElements::default();
    stored.reserve(values);
    each_value(cx, &elements, &options, chosen, &mut |value| {
        stored.push(value.unwrap_or_default());
    });
    store_result(cx, destination, &stored)?;
    reply.len(values);
    Ok(())
}

/// Sorts the first `end` elements of `order`.
fn sort_by_weight(
    cx: &mut Cx<'_>,
    elements: &SortElements,
    options: &Options<'_>,
    order: &mut Vec<usize>,
    end: usize,
) -> Result<(), Error> {
    let mut texts = SortElements::default();
    let mut weights = Vec::with_capacity(elements.len());
    let mut found = Vec::new();
    for index in 0..elements.len() {
        let own = elements.at(index);
        let text = match options.by {
            None => Some(own),
            Some(pattern) => {
                found.clear();
                look_up(cx, pattern, own, &mut found).then_some(found.as_slice())
            }
        };
        weights.push(match (options.alpha, text) {
            (true, None) => Weight::Text(None),
            (true, Some(text)) => Weight::Text(Some(texts.push(text))),
            (false, None) => Weight::Number(0.0),
            (false, Some(text)) => {
                Weight::Number(float_before_nul(text).ok_or(Error::SortNotDouble)?)
            }
        });
    }
    let compare = |a: &usize, b: &usize| {
        let order = match (weights[*a], weights[*b]) {
            (Weight::Number(x), Weight::Number(y)) => {
                let equal = || elements.at(*a).cmp(elements.at(*b));
                x.partial_cmp(&y).unwrap_or(Ordering::Equal).then_with(equal)
            }
            (Weight::Text(x), Weight::Text(y)) => {
                x.map(|x| texts.at(x)).cmp(&y.map(|y| texts.at(y)))
            }
            // All weights of a request are of one kind.
            _ => Ordering::Equal,
        };
        if options.descending { order.reverse() } else { order }
    };
    // Only the returned elements need to be sorted.
    if end < order.len() && end > 0 {
        order.select_nth_unstable_by(end - 1, compare);
        order.truncate(end);
    }
    order.sort_by(compare);
    Ok(())
}

/// Visits the replied or stored values of the chosen elements: themselves, or the values of GET.
fn each_value(
    cx: &mut Cx<'_>,
    elements: &SortElements,
    options: &Options<'_>,
    chosen: &[usize],
    visit: &mut dyn FnMut(Option<&[u8]>),
) {
    if options.gets.is_empty() {
        return chosen.iter().for_each(|index| visit(Some(elements.at(*index))));
    }
    let mut value = Vec::new();
    for index in chosen {
        for pattern in &options.gets {
            value.clear();
            let found = look_up(cx, pattern, elements.at(*index), &mut value);
            visit(found.then_some(&value));
        }
    }
}

/// Appends the value of a pattern for an element: the element itself for `#`; otherwise the string
/// under the key that the pattern names with the element for its first star, or the field after
/// `->` of the hash there. Returns whether it exists.
fn look_up(cx: &mut Cx<'_>, pattern: &[u8], element: &[u8], value: &mut Vec<u8>) -> bool {
    if pattern == b"#" {
        value.extend_from_slice(element);
        return true;
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return false };
    let (prefix, rest) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = rest.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < rest.len());
    let (postfix, field) = match arrow {
        Some(at) => (&rest[..at], Some(&rest[at + 2..])),
        None => (rest, None),
    };
    let name = [prefix, element, postfix].concat();
    let key = cx.key(&name);
    let (db, turn) = cx.db(key);
    match field {
        Some(field) => push_field(db, turn, key, field, value),
        None => push_text(db, turn, key, value),
    }
}

fn push_text(db: &mut Db, turn: &mut Turn, key: Key<'_>, value: &mut Vec<u8>) -> bool {
    let Ok(Some(text)) = db.read::<StringValue>(turn, key) else { return false };
    value.extend_from_slice(text.bytes(&mut Default::default()));
    true
}

fn push_field(
    db: &mut Db,
    turn: &mut Turn,
    key: Key<'_>,
    field: &[u8],
    value: &mut Vec<u8>,
) -> bool {
    let Ok(Some(found)) = read_field(db, turn, key, field) else { return false };
    value.extend_from_slice(found.text(&mut Default::default()));
    true
}

/// Stores the result under its key as a list, or removes the key if it is empty.
fn store_result(cx: &mut Cx<'_>, destination: &[u8], values: &SortElements) -> Result<(), Error> {
    let key = cx.key(destination);
    let limits = cx.limits;
    let (db, turn) = cx.db(key);
    let was_there = db.remove(turn, key);
    if values.len() == 0 {
        if was_there {
            cx.wrote(DEL, destination);
        }
        return Ok(());
    }
    let (db, turn) = cx.db(key);
    let mut list = db.edit_or_create::<ListValue>(turn, key)?;
    list.fill((0..values.len()).map(|index| values.at(index)), limits);
    drop(list);
    if was_there {
        turn.effects.take_back_new();
    }
    cx.count_elements(1 + u64::from(was_there), values.len());
    cx.wrote(KeyspaceEvent::new('l', "sortstore"), destination);
    Ok(())
}
