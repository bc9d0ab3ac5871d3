//! What the server says of its commands (COMMAND DOCS): for help, completion and hints.
//!
//! A server that does not know COMMAND DOCS leaves all of that empty.

use super::End;
use super::reply::Reply;
use super::session::{Session, print};
use crate::printable::printable;

/// How deeply arguments may nest before the rest is taken for one argument.
const DEPTH_MAX: usize = 16;

/// What stands where an argument is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any word.
    Word,
    /// Only its token.
    Token,
    /// One of its parts.
    OneOf,
    /// All of its parts, in order.
    Block,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// What it is called.
    pub name: String,
    /// The word before it.
    pub token: Option<String>,
    /// What stands there.
    pub kind: Kind,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
    /// Whether each repetition has the token.
    pub multiple_token: bool,
    /// What it consists of.
    pub parts: Vec<Arg>,
}

/// A command, or a subcommand of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// In capitals: `GET`, `CONFIG GET`.
    pub name: String,
    summary: String,
    since: String,
    /// What `help @GROUP` lists it under.
    pub group: String,
    /// Its arguments.
    pub args: Vec<Arg>,
}

/// What is known of all commands, by name.
#[derive(Debug, Default)]
pub struct Docs {
    /// In the order of their names.
    pub entries: Vec<Entry>,
}

impl Docs {
    /// Asks the server.
    pub fn of_server(session: &mut Session) -> Docs {
        let reply = session.ask(&[b"COMMAND".as_slice(), b"DOCS"]);
        let mut docs = Docs::default();
        let commands = reply.as_ref().ok().and_then(Reply::items).unwrap_or_default();
        docs.read(commands);
        docs.entries.sort_by(|one, other| one.name.cmp(&other.name));
        docs
    }

    fn read(&mut self, commands: &[Reply]) {
        for pair in commands.chunks_exact(2) {
            let field = |name| pair[1].field(name).and_then(Reply::text).map(string);
            let args = pair[1].field("arguments").and_then(Reply::items).unwrap_or_default();
            self.entries.push(Entry {
                name: pair[0]
                    .text()
                    .map(string)
                    .unwrap_or_default()
                    .to_uppercase()
                    .replace('|', " "),
                summary: field("summary").unwrap_or_default(),
                since: field("since").unwrap_or_default(),
                group: field("group").unwrap_or_default(),
                args: args.iter().map(|arg| read_arg(arg, 0)).collect(),
            });
            if let Some(subcommands) = pair[1].field("subcommands").and_then(Reply::items) {
                self.read(subcommands);
            }
        }
    }

    /// The entry of a command line: that of its first two words, or of its first.
    pub fn find(&self, words: &[String]) -> Option<(&Entry, usize)> {
        let by_name = |name: &str| {
            let at = self.entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
            at.ok().map(|at| &self.entries[at])
        };
        let first = words.first()?.to_uppercase();
        let second = words
            .get(1)
            .and_then(|word| Some((by_name(&format!("{first} {}", word.to_uppercase()))?, 2)));
        second.or_else(|| Some((by_name(&first)?, 1)))
    }

    /// The groups, each once.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.entries.iter().map(|entry| entry.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

fn string(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

fn read_arg(reply: &Reply, depth: usize) -> Arg {
    let field = |name| reply.field(name).and_then(Reply::text).map(string);
    let flags = reply.field("flags").and_then(Reply::items).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|item| item.text() == Some(flag.as_bytes()));
    let parts = match reply.field("arguments").and_then(Reply::items) {
        Some(parts) if depth < DEPTH_MAX => {
            parts.iter().map(|part| read_arg(part, depth + 1)).collect()
        }
        _ => Vec::new(),
    };
    Arg {
        name: field("display_text").or_else(|| field("name")).unwrap_or_default(),
        token: field("token"),
        kind: match field("type").as_deref() {
            Some("pure-token") => Kind::Token,
            Some("oneof") => Kind::OneOf,
            Some("block") => Kind::Block,
            _ => Kind::Word,
        },
        optional: has("optional"),
        multiple: has("multiple"),
        multiple_token: has("multiple_token"),
        parts,
    }
}

/// What `help` says without a topic.
const HELP: &str = "\
To get help about commands of the server type:
      \"help @<group>\" to get a list of commands in <group>
      \"help <command>\" for help on <command>
      \"help <tab>\" to get a list of possible help topics
      \"quit\" to exit

To set preferences:
      \":set hints\" enable online hints
      \":set nohints\" disable online hints
Set your preferences in ~/.redisclirc
";

/// Prints what `help` with these words asks for. Without docs it asks the server for them.
///
/// # Errors
/// When nobody reads it any more.
pub fn print_help(
    session: &mut Session,
    docs: Option<&Docs>,
    words: &[Vec<u8>],
) -> Result<(), End> {
    let Some(topic) = words.first() else {
        let version = env!("CARGO_PKG_VERSION");
        return print(format!("weft cli {version}\n{HELP}").as_bytes());
    };
    let asked;
    let docs = match docs {
        Some(docs) => docs,
        None => {
            asked = Docs::of_server(session);
            &asked
        }
    };
    let mut text = String::new();
    let group = topic.strip_prefix(b"@").map(string);
    let words: Vec<String> = words.iter().map(|word| string(word).to_uppercase()).collect();
    for entry in &docs.entries {
        let names: Vec<&str> = entry.name.split(' ').collect();
        let found = match &group {
            Some(group) => entry.group.eq_ignore_ascii_case(group),
            None => names.len() >= words.len() && words.iter().zip(&names).all(|(a, b)| a == b),
        };
        if found {
            push_help(entry, group.is_none(), &mut text);
        }
    }
    text.push_str("\r\n");
    print(text.as_bytes())
}

fn push_help(entry: &Entry, with_group: bool, text: &mut String) {
    let Entry { name, summary, since, group, args } = entry;
    let params = super::hint::syntax(args);
    text.push_str(&format!("\r\n  \x1b[1m{name}\x1b[0m \x1b[90m{params}\x1b[0m\r\n"));
    let mut field = |name: &str, value: &str| {
        text.push_str(&format!("  \x1b[33m{name}:\x1b[0m {value}\r\n"));
    };
    field("summary", summary);
    if !since.is_empty() {
        field("since", since);
    }
    if with_group {
        field("group", group);
    }
}
