//! The section of `docs/commands.md` on differences from Redis: the commands that only one of the
//! two has.

use node::{Entry, Table};

/// The version of Redis whose COMMAND lists the names below.
const VERSION: (u32, u32) = (8, 0);

/// Commands of Redis that Weft lacked when this was written, with their subject. The page leaves
/// out those that have a row by now.
const MISSING: &[(&str, &[&str])] = &[
    ("cluster mode, which is disabled for the commands on it", &["restore-asking"]),
    ("replication", &["failover", "psync", "replconf", "sync"]),
    ("copying keys to another server", &["migrate"]),
    (
        "vector sets",
        &[
            "vadd",
            "vcard",
            "vdim",
            "vemb",
            "vgetattr",
            "vinfo",
            "vismember",
            "vlinks",
            "vrandmember",
            "vrem",
            "vsetattr",
            "vsim",
        ],
    ),
];

/// The text of the section.
pub fn section(table: &Table) -> String {
    let listed = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|name| format!("`{}`", name.to_uppercase())).collect::<Vec<_>>().join(", ")
    };
    let mut text =
        "\n## Compared with Redis 8.0\n\nEvery command and subcommand of Redis 8.0.6 is \
                    here but for these; modules (search, JSON, time series and others) are not \
                    compared.\n\n| not here | commands |\n|---|---|\n"
            .to_owned();
    for (what, names) in MISSING {
        let mut missing =
            names.iter().copied().filter(|name| table.find(name.as_bytes()).is_none());
        let list = listed(&mut missing);
        if !list.is_empty() {
            text.push_str(&format!("| {what} | {list} |\n"));
        }
    }
    let mut later: Vec<&str> =
        table.commands().filter(|entry| is_later(entry)).map(|entry| entry.spec.name).collect();
    later.sort_unstable();
    let later = listed(&mut later.into_iter());
    text + &format!("\nOf later versions of Redis and Valkey it has {later}. `WEFT` is its own.\n")
}

/// Whether Redis got the command after the compared version.
fn is_later(entry: &Entry) -> bool {
    let mut numbers = entry.spec.since.split('.').filter_map(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) > VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_missing() {
        let text = section(node::table());
        let (missing, later) = text.split_once("\nOf later versions").unwrap_or_default();
        for entry in node::table().commands() {
            let name = format!("`{}`", entry.spec.name.to_uppercase());
            assert!(!missing.contains(&name), "{name}: {missing}");
        }
        assert!(later.contains("`MSETEX`") && !later.contains("`GET`"), "{later}");
    }
}
