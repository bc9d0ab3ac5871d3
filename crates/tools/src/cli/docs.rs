//! The server's documentation of its commands (COMMAND DOCS), for help, completion and hints. It is
//! empty if the server does not know COMMAND DOCS.

use super::session::CliSession;
use crate::client::reply::ServerReply;
use crate::printable::printable;

/// How deeply arguments may nest; deeper ones are ignored.
const DEPTH_MAX: usize = 16;

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// Any word.
    Word,
    /// Only its token.
    Token,
    /// One of its parts.
    OneOf,
    /// All of its parts in order.
    Block,
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    pub name: String,
    /// The word before its value.
    pub token: Option<String>,
    pub kind: ArgKind,
    pub optional: bool,
    pub multiple: bool,
    /// Whether each repetition has the token.
    pub multiple_token: bool,
    pub parts: Vec<Arg>,
}

/// A command, or a subcommand of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDoc {
    /// In capitals: `GET`, `CONFIG GET`.
    pub name: String,
    pub summary: String,
    pub since: String,
    /// Its group, for `help @GROUP`.
    pub group: String,
    pub args: Vec<Arg>,
}

/// The documentation of all commands.
#[derive(Debug, Default)]
pub struct Docs {
    /// Sorted by name.
    pub entries: Vec<CommandDoc>,
}

impl Docs {
    /// Asks the server.
    pub fn of_server(session: &mut CliSession) -> Docs {
        let reply = session.ask(&[b"COMMAND".as_slice(), b"DOCS"]);
        let mut docs = Docs::default();
        let commands = reply.as_ref().ok().and_then(ServerReply::items).unwrap_or_default();
        docs.read(commands);
        docs.entries.sort_by(|one, other| one.name.cmp(&other.name));
        docs
    }

    fn read(&mut self, commands: &[ServerReply]) {
        for pair in commands.chunks_exact(2) {
            let field = |name| pair[1].field(name).and_then(ServerReply::text).map(string);
            let args = pair[1].field("arguments").and_then(ServerReply::items).unwrap_or_default();
            self.entries.push(CommandDoc {
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
            if let Some(subcommands) = pair[1].field("subcommands").and_then(ServerReply::items) {
                self.read(subcommands);
            }
        }
    }

    /// The command of a line, by its first two words or its first, and how many words that are.
    pub fn find(&self, words: &[String]) -> Option<(&CommandDoc, usize)> {
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

    /// The names of all groups.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.entries.iter().map(|entry| entry.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

pub fn string(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes))
}

fn read_arg(reply: &ServerReply, depth: usize) -> Arg {
    let field = |name| reply.field(name).and_then(ServerReply::text).map(string);
    let flags = reply.field("flags").and_then(ServerReply::items).unwrap_or_default();
    let has = |flag: &str| flags.iter().any(|item| item.text() == Some(flag.as_bytes()));
    let parts = match reply.field("arguments").and_then(ServerReply::items) {
        Some(parts) if depth < DEPTH_MAX => {
            parts.iter().map(|part| read_arg(part, depth + 1)).collect()
        }
        _ => Vec::new(),
    };
    Arg {
        name: field("display_text").or_else(|| field("name")).unwrap_or_default(),
        token: field("token"),
        kind: match field("type").as_deref() {
            Some("pure-token") => ArgKind::Token,
            Some("oneof") => ArgKind::OneOf,
            Some("block") => ArgKind::Block,
            _ => ArgKind::Word,
        },
        optional: has("optional"),
        multiple: has("multiple"),
        multiple_token: has("multiple_token"),
        parts,
    }
}
