//! What COMMAND INFO replies for a command: a list of ten elements.
//!
//! ```text
//!   name, arity, flags, first key, last key, step,
//!   categories, tips, key specifications, subcommands
//! ```

use engine::{KeySpec, Spec};
use resp::Reply;

use crate::table::{Entry, table};

/// Describes one command and its subcommands.
pub(super) fn reply_entry(reply: &mut Reply<'_>, entry: &Entry) {
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
    for entry in table().subcommands(entry) {
        reply_entry(reply, entry);
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

/// The keys as one range, which is all that old clients understand: first, last (negative: from the
/// end) and step. Key specifications that do not continue each other are not all in it.
fn key_range(keys: &[KeySpec]) -> (i64, i64, i64) {
    let index = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
    let end = |key: &KeySpec| match key.last {
        last if last < 0 => i64::from(last),
        last => index(key.first) + i64::from(last),
    };
    let Some((head, rest)) = keys.split_first() else { return (0, 0, 0) };
    let mut last = end(head);
    for key in rest {
        if head.step != 1 || key.step != 1 || index(key.first) != last + 1 {
            break;
        }
        last = end(key);
    }
    (index(head.first), last, index(head.step))
}

fn reply_keys(reply: &mut Reply<'_>, spec: &Spec) {
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
        let first = i64::try_from(key.first).unwrap_or(i64::MAX);
        reply_search(reply, "index", &[("index", first)]);
        reply.bulk(b"find_keys");
        let step = i64::try_from(key.step).unwrap_or(i64::MAX);
        let range = [("lastkey", i64::from(key.last)), ("keystep", step), ("limit", 0)];
        reply_search(reply, "range", &range);
    }
}

/// One of the two steps in which a key specification finds keys.
fn reply_search(reply: &mut Reply<'_>, kind: &str, numbers: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.int(*number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Access;

    #[test]
    fn keys_as_one_range() {
        let one = |at| KeySpec::one(at, Access::RO);
        assert_eq!(key_range(&[]), (0, 0, 0));
        assert_eq!(key_range(&[one(1)]), (1, 1, 1));
        assert_eq!(key_range(&[one(1), one(2)]), (1, 2, 1));
        assert_eq!(key_range(&[one(1), one(3)]), (1, 1, 1));
        assert_eq!(key_range(&[KeySpec::to_end(1, 2, Access::OW)]), (1, -1, 2));
        assert_eq!(key_range(&[one(2), KeySpec::to_end(3, 1, Access::RO)]), (2, -1, 1));
    }
}
