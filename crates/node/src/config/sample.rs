//! The sample configuration file, generated from the table: every parameter with its default.
//!
//! `weft.conf` at the root of the repository is this text; a test compares them.

use super::{Config, PARAMETERS};

const INTRODUCTION: &str = "\
# Weft: every parameter with its default. Start the server with this file, or with a redis.conf:
#
#     weft server weft.conf --port 7000
#
# One parameter a line; \"quotes\" allow blanks and escapes such as \\n and \\xff. Sizes have units:
# 1k is 1000 bytes and 1kb is 1024, likewise m, mb, g and gb. Later lines override earlier ones, and
# command line options override the file. `include other.conf` reads another file.
";

/// Headings, each with the first parameter of its part of the table.
const HEADINGS: &[(&str, &str)] = &[
    ("bind", "Network"),
    ("tls-port", "TLS"),
    ("requirepass", "Users"),
    ("maxclients", "Clients"),
    ("io-threads", "Threads"),
    ("databases", "Keys and memory"),
    ("appendonly", "Append-only file"),
    ("loglevel", "Logs"),
    ("save", "Snapshots"),
    ("dir", "Process"),
    ("replicaof", "Replication"),
    ("cluster-enabled", "Cluster"),
];

/// The heading before a parameter, if it is the first of its part.
pub fn heading(name: &str) -> Option<&'static str> {
    HEADINGS.iter().find(|(first, _)| *first == name).map(|(_, heading)| *heading)
}

/// The text of a configuration file that sets every parameter to its default.
pub fn sample() -> String {
    let config = Config::default();
    let mut text = INTRODUCTION.to_owned();
    for row in PARAMETERS {
        if let Some(heading) = heading(row.name) {
            text.push_str(&format!("\n#### {heading} ####\n"));
        }
        text.push_str(&format!("\n# {}\n", row.about));
        if let Some(reason) = row.no_effect {
            text.push_str(&format!("# Accepted without effect: {reason}.\n"));
        }
        for value in row.file_values(&config) {
            text.push_str(&format!("{} {}\n", row.name, String::from_utf8_lossy(&value)));
        }
    }
    text
}
