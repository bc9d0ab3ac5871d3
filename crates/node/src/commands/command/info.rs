//! The reply of COMMAND INFO for a command: an array of ten elements.
//!
//! ```text
//!   name, arity, flags, first key, last key, step,
//!   categories, tips, key specifications, subcommands
//! ```

use command::{Begin, Find, KeySpec, Spec};
use resp::Reply;

use crate::command_table::entry::Entry;
use crate::command_table::index::Table;

/// Describes one command and its subcommands.
pub(super) fn reply_entry(reply: &mut Reply<'_>, table: &Table, entry: &Entry) {
    let spec = entry.spec;
    let (first, last, step) = key_range(spec.keys);
    reply.array(10);
    reply.bulk(entry.name.as_bytes());
    reply.int(i64::from(spec.arity));
    reply_words(reply, spec.flags.names());
    reply.int(first);
    reply.int(last);
    reply.int(step);
    reply_words(reply, spec.categories().names());
    reply.set(spec.tips.len());
    for tip in spec.tips {
        reply.bulk(tip.as_bytes());
    }
    reply_keys(reply, spec);
    let subcommands = entry.subcommands.len();
    if subcommands == 0 {
        reply.set(0)
    } else {
        reply.array(subcommands)
    }
    for entry in table.subcommands(entry) {
        reply_entry(reply, table, entry);
    }
}

/// A set of words.
pub(super) fn reply_words(reply: &mut Reply<'_>, words: impl Iterator<Item = &'static str>) {
    let words: Vec<&str> = words.collect();
    reply.set(words.len());
    for word in words {
        reply.simple(word);
    }
}

/// The keys as one range for old clients: first, last (negative: from the end) and step. It
/// contains only key specifications that are adjacent.
fn key_range(keys: &[KeySpec]) -> (i64, i64, i64) {
    let index = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
    let mut range: Option<(i64, i64, i64)> = None;
    for key in keys {
        let (Begin::Index(first), Find::Range { last, step, .. }) = (key.begin, key.find) else {
            continue;
        };
        let (first, step) = (index(first), index(step));
        let end = if last < 0 { i64::from(last) } else { first + i64::from(last) };
        range = match range {
            None => Some((first, end, step)),
            Some((head, last, 1)) if step == 1 && first == last + 1 => Some((head, end, 1)),
            Some(range) => Some(range),
        };
    }
    range.unwrap_or((0, 0, 0))
}

fn reply_keys(reply: &mut Reply<'_>, spec: &Spec) {
    let number = |number: usize| Part::Number(i64::try_from(number).unwrap_or(i64::MAX));
    reply.set(spec.keys.len());
    for key in spec.keys {
        reply.map(3 + usize::from(key.notes.is_some()));
        if let Some(notes) = key.notes {
            reply.bulk(b"notes");
            reply.bulk(notes.as_bytes());
        }
        reply.bulk(b"flags");
        reply_words(reply, key.access.names());
        reply.bulk(b"begin_search");
        let begin = match key.find {
            Find::Option { .. } | Find::Patterns { .. } => Begin::Unknown,
            _ => key.begin,
        };
        match begin {
            Begin::Index(first) => reply_search(reply, "index", &[("index", number(first))]),
            Begin::Keyword(word, from) => {
                let from = Part::Number(i64::from(from));
                reply_search(
                    reply,
                    "keyword",
                    &[("keyword", Part::Word(word)), ("startfrom", from)],
                )
            }
            Begin::Unknown => reply_search(reply, "unknown", &[]),
        }
        reply.bulk(b"find_keys");
        match key.find {
            Find::Range { last, step, limit } => {
                let last = Part::Number(i64::from(last));
                let parts =
                    [("lastkey", last), ("keystep", number(step)), ("limit", number(limit))];
                reply_search(reply, "range", &parts);
            }
            Find::Count { at, first, step } => {
                let (at, first, step) = (number(at), number(first), number(step));
                let parts = [("keynumidx", at), ("firstkey", first), ("keystep", step)];
                reply_search(reply, "keynum", &parts);
            }
            Find::Option { .. } | Find::Patterns { .. } | Find::Unknown => {
                reply_search(reply, "unknown", &[])
            }
        }
    }
}

/// A value in the description of a search.
#[derive(Clone, Copy)]
enum Part {
    Number(i64),
    Word(&'static str),
}

/// One of the two steps in which a key specification finds keys.
fn reply_search(reply: &mut Reply<'_>, kind: &str, parts: &[(&str, Part)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(parts.len());
    for (name, part) in parts {
        reply.bulk(name.as_bytes());
        match part {
            Part::Number(number) => reply.int(*number),
            Part::Word(word) => reply.bulk(word.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use command::Access;

    #[test]
    fn adjacent_key_specifications_form_one_range() {
        let one = |at| KeySpec::one(at, Access::RO);
        assert_eq!(key_range(&[]), (0, 0, 0));
        assert_eq!(key_range(&[one(1)]), (1, 1, 1));
        assert_eq!(key_range(&[one(1), one(2)]), (1, 2, 1));
        assert_eq!(key_range(&[one(1), one(3)]), (1, 1, 1));
        assert_eq!(key_range(&[KeySpec::to_end(1, 2, Access::OW)]), (1, -1, 2));
        assert_eq!(key_range(&[one(2), KeySpec::to_end(3, 1, Access::RO)]), (2, -1, 1));
        assert_eq!(key_range(&[KeySpec::counted(1, Access::RO)]), (0, 0, 0));
        assert_eq!(key_range(&[one(1), KeySpec::counted(2, Access::RO)]), (1, 1, 1));
    }
}
