//! The names of workloads, with those of other benchmarks, and the workloads without a name.

use super::Workload;
use super::table::TABLE;

/// Names of redis-benchmark, with the names here.
const ALIASES: &[(&str, &str)] =
    &[("ping_mbulk", "ping"), ("mset", "mset10"), ("lrange", "lrange_100")];

/// The commands of the command line.
pub const COMMAND: Workload = Workload::new("command");

/// The first request of a new connection.
pub const CONNECT: Workload = Workload { read: Some("PING"), ..Workload::new("connect") };

/// The other names of a workload.
pub fn aliases(name: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter(move |(_, own)| *own == name).map(|(alias, _)| *alias)
}

/// The row of a name, in any case.
pub fn find(name: &str) -> Option<&'static Workload> {
    let is_alias = |(alias, _): &&(&str, &str)| alias.eq_ignore_ascii_case(name);
    let own = ALIASES.iter().find(is_alias).map_or(name, |(_, own)| own);
    TABLE.iter().find(|row| row.name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_stands_for_a_workload_and_is_none() {
        for (alias, own) in ALIASES {
            assert_eq!(find(alias).map(|row| row.name), Some(*own));
            assert!(TABLE.iter().all(|row| row.name != *alias), "{alias}");
        }
        assert_eq!(find("LRange_100").map(|row| row.name), Some("lrange_100"));
        assert_eq!(find("nothing"), None);
    }
}
