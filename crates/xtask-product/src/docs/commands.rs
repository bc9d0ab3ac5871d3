//! `docs/commands.md`: every command with the contents of its row, group by group.
//!
//! Commands are in alphabetical order, so that the page changes only where a row does.

use command::{Begin, Find, Flags, Group, KeySpec, Spec};
use engine::help;
use node::{Entry, Table};

/// The start of the page.
const INTRODUCTION: &str = "\
<!-- Made by `cargo xtask docs` from the rows of the commands; change those. -->

# Commands

Every command of this version, from the same rows that the server uses. *Arity* counts the
arguments with the name; a negative one is a minimum. *Since* is the version of Redis that brought
the command. In a synopsis `<value>` stands for an argument, `[...]` may be left out, `(A|B)` is a
choice, and `...` means once or more.
";

/// The whole page.
pub fn page(table: &Table) -> String {
    let mut commands: Vec<&Entry> = table.commands().collect();
    commands.sort_by_key(|entry| (entry.spec.group.name(), entry.spec.name));
    let mut page = INTRODUCTION.to_owned() + &super::compared::section(table);
    for group in commands.chunk_by(|a, b| a.spec.group == b.spec.group) {
        let Some(first) = group.first() else { continue };
        page.push_str(&format!("\n## {}\n", title(first.spec.group)));
        for entry in group {
            page.push_str(&format!("\n### {}\n{}", entry.spec.name.to_uppercase(), about(entry)));
            let mut subcommands: Vec<&Entry> = table.subcommands(entry).collect();
            subcommands.sort_by_key(|subcommand| subcommand.spec.name);
            for subcommand in subcommands {
                page.push_str(&format!("\n#### {}\n{}", words(subcommand), about(subcommand)));
            }
        }
    }
    page
}

/// A group's heading.
fn title(group: Group) -> String {
    let (first, rest) = group.name().split_at(1);
    first.to_uppercase() + rest
}

/// The name as a client sends it.
fn words(entry: &Entry) -> String {
    entry.name.replace('|', " ").to_uppercase()
}

/// The text below a command's heading.
fn about(entry: &Entry) -> String {
    let spec = entry.spec;
    let synopsis = match help::synopsis(spec.arguments) {
        text if !text.is_empty() => format!("{} {text}", words(entry)),
        _ if spec.is_container => format!("{} <subcommand> [<argument> ...]", words(entry)),
        _ => words(entry),
    };
    let mut text = format!("\n`{synopsis}`\n");
    if !spec.summary.is_empty() {
        text.push_str(&format!("\n{}\n", spec.summary));
    }
    if let Some((version, instead)) = spec.deprecated {
        text.push_str(&format!("\nDeprecated since {version}; instead: {instead}.\n"));
    }
    let mut facts = format!("\nArity {}, since {}", spec.arity, spec.since);
    // Some rows have a sentence, and XREAD's has none, as in Redis.
    let complexity = spec.complexity.trim_end_matches('.');
    if !spec.is_container && !complexity.is_empty() {
        facts.push_str(&format!(", {complexity}"));
    }
    text.push_str(&(facts + ".\n"));
    for (label, list) in [("Flags", flags(spec)), ("Keys", keys(spec))] {
        if !list.is_empty() {
            text.push_str(&format!("{label}: {list}.\n"));
        }
    }
    text
}

fn flags(spec: &Spec) -> String {
    let flag_name = |name: &str| format!("`{name}`");
    let mut names: Vec<String> = spec.flags.names().map(flag_name).collect();
    // Redis has no name for this flag, which matters for the load of the threads.
    if spec.flags.has(Flags::MAIN) {
        names.push("runs on the main thread".to_owned());
    }
    names.join(", ")
}

fn keys(spec: &Spec) -> String {
    let one = |key: &KeySpec| {
        let access: Vec<&str> = key.access.names().collect();
        format!("{} ({})", positions(key), access.join(", "))
    };
    spec.keys.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The positions of the keys, in words.
fn positions(key: &KeySpec) -> String {
    let begin = match key.begin {
        Begin::Index(first) => Some(first),
        Begin::Keyword(..) | Begin::Unknown => None,
    };
    match (key.begin, key.find) {
        (Begin::Keyword(word, _), Find::Range { last: 0, .. }) => {
            format!("the argument behind `{word}`")
        }
        (Begin::Keyword(word, _), _) => format!("the first half of what is behind `{word}`"),
        (_, Find::Range { last, step, .. }) => range(begin.unwrap_or_default(), last, step),
        (_, Find::Count { at, first, .. }) => {
            let (at, first) = (begin.unwrap_or_default() + at, begin.unwrap_or_default() + first);
            format!("as many from argument {first} as argument {at} says")
        }
        (_, Find::Option { word, .. }) => format!("the argument behind `{word}`"),
        (_, Find::Patterns { .. } | Find::Unknown) => "not visible in the arguments".to_owned(),
    }
}

/// Positions between two arguments, in words.
fn range(first: usize, last: i32, step: usize) -> String {
    let every = match step {
        1 => "every argument".to_owned(),
        2 => "every second argument".to_owned(),
        _ => format!("every {step}th argument"),
    };
    match last {
        0 => format!("argument {first}"),
        1.. => format!("{every} from {first} to {}", first + last.unsigned_abs() as usize),
        -1 => format!("{every} from {first}"),
        _ => format!("{every} from {first} to the last but {}", last.unsigned_abs() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_heading_and_synopsis() {
        let page = page(node::table());
        for entry in node::table().entries() {
            let level = if entry.is_subcommand { "####" } else { "###" };
            let opening = format!("\n{level} {}\n\n`{}", words(entry), words(entry));
            assert_eq!(
                page.matches(&format!("{opening} ")).count()
                    + page.matches(&format!("{opening}`")).count(),
                1,
                "{}",
                entry.name
            );
        }
        assert!(page.contains("\n## String\n") && page.ends_with(".\n"));
    }

    #[test]
    fn positions_of_keys_read_like_sentences() {
        let key = |first, last, step| {
            let access = command::Access::RO;
            positions(&KeySpec::range(first, last, step, access))
        };
        assert_eq!(key(1, 0, 1), "argument 1");
        assert_eq!(key(1, 1, 1), "every argument from 1 to 2");
        assert_eq!(key(1, -1, 2), "every second argument from 1");
        assert_eq!(key(2, -2, 1), "every argument from 2 to the last but 1");
    }
}
