//! `help` of a command, of a group, or of itself.

use super::docs::{CommandDoc, Docs, string};
use super::hint::syntax;
use super::output::{CliEnd, print};
use super::session::CliSession;

/// The text of `help` without a topic.
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

/// Prints the help for these words. Without docs it asks the server for them.
pub fn print_help(
    session: &mut CliSession,
    docs: Option<&Docs>,
    words: &[Vec<u8>],
) -> Result<(), CliEnd> {
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

fn push_help(entry: &CommandDoc, with_group: bool, text: &mut String) {
    let CommandDoc { name, summary, since, group, args } = entry;
    let params = syntax(args);
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
