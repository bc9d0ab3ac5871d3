//! The reply of COMMAND DOCS: maps that omit empty fields.

use std::ops::Range;

use command::{Argument, Flags, Shape};
use resp::Reply;

use super::info::reply_words;
use crate::command_table::entry::Entry;
use crate::command_table::index::Table;
use crate::commands::map_writer::MapWriter;

/// Documents commands: a map from their names.
pub(super) fn reply_entries(reply: &mut Reply<'_>, table: &Table, entries: &[&Entry]) {
    reply.map(entries.len());
    for entry in entries {
        reply.bulk(entry.name.as_bytes());
        reply_entry(reply, table, entry);
    }
}

impl MapWriter<'_, '_> {
    /// Writes a field of text unless it is empty.
    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.field(name).bulk(value.as_bytes());
        }
    }

    /// Writes a field of the words that hold, if any.
    fn words<const N: usize>(&mut self, name: &str, words: [(bool, &'static str); N]) {
        let words = words.into_iter().filter(|(holds, _)| *holds).map(|(_, word)| word);
        if words.clone().next().is_some() {
            reply_words(self.field(name), words);
        }
    }
}

fn reply_entry(reply: &mut Reply<'_>, table: &Table, entry: &Entry) {
    let mut fields = MapWriter::begin(reply);
    let spec = entry.spec;
    fields.text("summary", Some(spec.summary));
    fields.text("since", Some(spec.since));
    fields.text("group", Some(spec.group.name()));
    fields.text("complexity", Some(spec.complexity));
    let flags =
        [(spec.deprecated.is_some(), "deprecated"), (spec.flags.has(Flags::SYSTEM), "syscmd")];
    fields.words("doc_flags", flags);
    fields.text("deprecated_since", spec.deprecated.map(|(since, _)| since));
    fields.text("replaced_by", spec.deprecated.map(|(_, instead)| instead));
    if !spec.history.is_empty() {
        let reply = fields.field("history");
        reply.set(spec.history.len());
        for (version, change) in spec.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
    }
    if !spec.arguments.is_empty() {
        let mut keys = 0..spec.keys.len();
        reply_arguments(fields.field("arguments"), spec.arguments, &mut keys);
    }
    if !entry.subcommands.is_empty() {
        let subcommands: Vec<&Entry> = table.subcommands(entry).collect();
        reply_entries(fields.field("subcommands"), table, &subcommands);
    }
    fields.end();
}

/// Documents arguments. Each key argument belongs to the next key specification of `keys`; the last
/// specification has all remaining keys.
fn reply_arguments(reply: &mut Reply<'_>, arguments: &[Argument], keys: &mut Range<usize>) {
    reply.array(arguments.len());
    for argument in arguments {
        let mut fields = MapWriter::begin(reply);
        let (kind, parts) = kind_of(argument.shape);
        fields.text("name", Some(argument.name));
        fields.text("type", Some(kind));
        if parts.is_none() {
            fields.text("display_text", Some(argument.display.unwrap_or(argument.name)));
        }
        if let Some(index) = argument.key_spec {
            fields.number("key_spec_index", index);
        } else if argument.shape == Shape::Key {
            fields.number("key_spec_index", keys.start);
            keys.start += usize::from(keys.len() > 1);
        }
        fields.text("token", argument.token);
        fields.text("since", argument.since);
        fields.text("deprecated_since", argument.deprecated);
        let flags = [
            (argument.optional, "optional"),
            (argument.multiple, "multiple"),
            (argument.multiple_token, "multiple_token"),
        ];
        fields.words("flags", flags);
        if let Some(parts) = parts {
            reply_arguments(fields.field("arguments"), parts, keys);
        }
        fields.end();
    }
}

/// The name of a shape, and its parts.
fn kind_of(shape: Shape) -> (&'static str, Option<&'static [Argument]>) {
    match shape {
        Shape::Key => ("key", None),
        Shape::String => ("string", None),
        Shape::Integer => ("integer", None),
        Shape::Double => ("double", None),
        Shape::Pattern => ("pattern", None),
        Shape::UnixTime => ("unix-time", None),
        Shape::Token => ("pure-token", None),
        Shape::OneOf(parts) => ("oneof", Some(parts)),
        Shape::Block(parts) => ("block", Some(parts)),
    }
}
