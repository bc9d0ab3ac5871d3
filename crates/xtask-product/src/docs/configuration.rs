//! `docs/configuration.md`: every parameter with the contents of its row, part by part.

use node::config::{Config, DEPRECATED, Kind, Notation, PARAMETERS, Parameter, REFUSED, heading};

/// The start of the page.
const INTRODUCTION: &str = "\
<!-- Made by `cargo xtask docs` from the table of parameters; change that. -->

# Configuration

Every parameter of this version, from the table that the server reads by. A parameter is set by a
line of a file (`weft server weft.conf`; [weft.conf](../weft.conf) has all of them), by an option of
the command line (`--maxmemory 2gb`), or while the server runs (`CONFIG SET maxmemory 2gb`). Later
ones override earlier ones. CONFIG REWRITE writes what CONFIG SET has changed into the file.

Sizes take units: `1k` is 1000 bytes and `1kb` 1024, likewise `m`, `mb`, `g` and `gb`.

*At start only*: CONFIG SET refuses it. *Protected*: CONFIG SET refuses it unless
`enable-protected-configs` allows it. *Without effect*: the parameter is accepted, and the log says
why nothing follows from it. The parameters of replication and cluster mode are accepted in this
way, so that a redis.conf starts the server, except `replicaof` and `cluster-enabled yes`: with one
of these the server refuses to start, because it would be a second, empty primary.
";

/// The whole page.
pub fn page() -> String {
    let config = Config::default();
    let mut page = INTRODUCTION.to_owned();
    for row in PARAMETERS {
        if let Some(heading) = heading(row.name) {
            page.push_str(&format!(
                "\n## {heading}\n\n| parameter | value | default | |\n|---|---|---|---|\n"
            ));
        }
        page.push_str(&line(row, &config));
    }
    page + &others()
}

/// The line of a parameter in the table of its part.
fn line(row: &Parameter, config: &Config) -> String {
    let default = row.print(config);
    let default = match default.is_empty() {
        true => "empty".to_owned(),
        false => format!("`{}`", cell(&String::from_utf8_lossy(&default))),
    };
    let alias = row.alias.map(|alias| format!(", also `{alias}`")).unwrap_or_default();
    let mut about = cell(row.about).replace('*', "\\*");
    if !about.ends_with('.') {
        about.push('.');
    }
    for (holds, words) in [(row.immutable, "At start only"), (row.protected, "Protected")] {
        if holds {
            about.push_str(&format!(" *{words}.*"));
        }
    }
    if let Some(reason) = row.no_effect {
        about.push_str(&format!(" *Without effect: {reason}.*"));
    }
    format!("| `{}`{alias} | {} | {default} | {about} |\n", row.name, cell(&values(&row.kind)))
}

/// The values that a parameter takes, in words.
fn values(kind: &Kind) -> String {
    match *kind {
        Kind::Flag(_) => "`yes` or `no`".to_owned(),
        Kind::Number { notation, min, max, .. } => {
            let unit = match notation {
                Notation::Decimal => "",
                Notation::Bytes => " bytes",
                Notation::Octal => " octal",
            };
            let print = |number: i64| match notation {
                Notation::Octal => format!("{number:o}"),
                _ => number.to_string(),
            };
            match max {
                i64::MAX => format!("{} or more{unit}", print(min)),
                _ => format!("{} to {}{unit}", print(min), print(max)),
            }
        }
        Kind::Text(_) | Kind::Secret(_) => "text".to_owned(),
        Kind::Choice { names, .. } => {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::CheckedText { form, .. } => form.to_owned(),
        Kind::Special(special) => special.form.to_owned(),
        // A test finds the empty cell of a new `Kind`.
        _ => String::new(),
    }
}

/// A text that may stand between the bars of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The parameters of Redis that the table lacks.
fn others() -> String {
    let names = |names: Vec<&str>| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let refused: Vec<String> =
        REFUSED.iter().map(|(name, reason)| format!("`{name}` ({reason})")).collect();
    format!(
        "\n## Parameters of Redis that are not here\n\n\
         A file may have these, which have no effect in Redis 8 either: {}.\n\n\
         A file that has one of these is refused: {}.\n",
        names(DEPRECATED.to_vec()),
        refused.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_one_line() {
        let page = page();
        for row in PARAMETERS {
            let opening = format!("\n| `{}`", row.name);
            assert_eq!(page.matches(&opening).count(), 1, "{}", row.name);
        }
        // Four cells, even if a text has bars.
        for line in page.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.replace("\\|", "").matches('|').count(), 5, "{line}");
            assert!(line.ends_with("| |") || !line.contains("|  |"), "{line}");
        }
        assert!(page.contains("\n## Threads\n") && page.ends_with(".\n"));
    }

    #[test]
    fn values_are_described_in_words() {
        let of = |name: &str| {
            let row = node::config::find(name.as_bytes());
            row.map(|row| line(row, &Config::default())).unwrap_or_default()
        };
        assert!(of("port").contains("| 0 to 65535 | `6379` |"), "{}", of("port"));
        assert!(of("maxmemory").contains("| 0 or more bytes | `0` |"), "{}", of("maxmemory"));
        assert!(of("io-threads").contains("| auto \\| number | `auto` |"), "{}", of("io-threads"));
        assert!(of("dir").contains("*Protected.*"), "{}", of("dir"));
        assert!(of("daemonize").contains("*At start only.*"), "{}", of("daemonize"));
        assert!(of("activedefrag").contains("*Without effect: values"), "{}", of("activedefrag"));
    }
}
