//! Parameters that are not in the table: deprecated, refused, or unknown.

use super::{PARAMETERS, find};

/// Parameters without effect in Redis 8 too; each takes one argument and causes no warning.
pub const DEPRECATED: &[&str] = &[
    "io-threads-do-reads",
    "list-max-ziplist-entries",
    "list-max-ziplist-value",
    "lua-replicate-commands",
];

/// Directives that restrict access, with the reason why a file with one is refused.
pub const REFUSED: &[(&str, &str)] = &[
    ("loadmodule", "modules are not supported"),
    ("sentinel", "sentinel directive while not in sentinel mode"),
];

/// Parameters of Valkey whose values are secrets.
const SECRETS: &[&str] = &["primaryauth", "primaryuser"];

/// Whether the value of this parameter is a secret that no log may show.
pub(crate) fn is_secret(name: &[u8]) -> bool {
    find(name).is_some_and(|row| row.sensitive)
        || SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_bytes()))
}

/// Whether the arguments of this name, or of one that a slip of the keyboard has made it, are
/// secrets. The rules of a user may contain passwords.
pub(super) fn is_or_resembles_secret(name: &[u8]) -> bool {
    if find(name).is_some() {
        return is_secret(name);
    }
    let sensitive = PARAMETERS.iter().filter(|row| row.sensitive);
    let names = sensitive.flat_map(|row| [Some(row.name), row.alias]).flatten();
    let mut names = names.chain(SECRETS.iter().copied()).chain([USER]);
    let name = name.to_ascii_lowercase();
    names.any(|secret| distance(&name, secret.as_bytes()) <= slips_max(&name))
}

/// The directives of files that are not parameters.
pub(super) const DIRECTIVES: &[&str] = &["include", "rename-command", USER];

/// The directive of users.
pub(super) const USER: &str = "user";

/// The parameter or directive whose name is closest to an unknown one, if it is close enough to be
/// a slip of the keyboard.
pub(super) fn closest(unknown: &[u8]) -> Option<&'static str> {
    let unknown = unknown.to_ascii_lowercase();
    let names = PARAMETERS.iter().flat_map(|row| [Some(row.name), row.alias]).flatten();
    let names = names.chain(DIRECTIVES.iter().copied());
    let distances = names.map(|name| (distance(&unknown, name.as_bytes()), name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= slips_max(&unknown)).then_some(name)
}

/// The most edits in an unknown name: a third of a short one could be any word.
fn slips_max(unknown: &[u8]) -> usize {
    (unknown.len() / 4).clamp(1, DISTANCE_MAX)
}

/// The most edits from a name to what was probably meant by it.
const DISTANCE_MAX: usize = 4;
/// Longer names are not compared.
const COMPARED_BYTES_MAX: usize = 64;

/// The number of bytes to insert, remove, replace or exchange with the next one to turn one name
/// into another (Damerau and Levenshtein, without edits between exchanged bytes).
fn distance(a: &[u8], b: &[u8]) -> usize {
    if a.len().abs_diff(b.len()) > DISTANCE_MAX || a.len() > COMPARED_BYTES_MAX {
        return usize::MAX;
    }
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for (i, of_a) in a.iter().enumerate() {
        rows.rotate_left(1);
        let mut row = vec![i + 1];
        for (j, of_b) in b.iter().enumerate() {
            let replaced = rows[1][j] + usize::from(of_a != of_b);
            let mut least = replaced.min(rows[1][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *of_a == b[j - 1] && a[i - 1] == *of_b {
                least = least.min(rows[0][j - 1] + 1);
            }
            row.push(least);
        }
        rows[2] = row;
    }
    rows[2][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_names_the_parameter_that_was_meant() {
        for (unknown, meant) in [
            ("maxmemroy", Some("maxmemory")),
            ("MAX-MEMORY", Some("maxmemory")),
            ("tls_port", Some("tls-port")),
            ("io-thread", Some("io-threads")),
            ("prot", Some("port")),
            ("slaev-priority", Some("slave-priority")),
            ("includ", Some("include")),
            ("dri", Some("dir")),
            ("nonsense", None),
            ("x", None),
            ("", None),
            (&"x".repeat(1 << 20), None),
        ] {
            assert_eq!(closest(unknown.as_bytes()), meant, "{unknown:.20}");
        }
    }
}
