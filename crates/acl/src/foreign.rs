//! The commands and categories of Redis, Valkey and their modules that do not exist here.
//!
//! Rules may name them, so that the users and ACL files of such a server work unchanged. A rule
//! about one is kept and shown, and changes nothing until the command exists. Lines of
//! `rename-command` may name the commands too. A name leaves this
//! list when its command gets a row.

/// The names in lower case, subcommands as `command|subcommand`.
#[rustfmt::skip]
pub const FOREIGN: &[&str] = &[
    // Replication, cluster mode and the log of commands.
    "client|capa", "client|import-source", "clusterscan", "cluster|cancelslotmigrations",
    "cluster|flushslot", "cluster|getslotmigrations", "cluster|migrateslots", "cluster|migration",
    "cluster|slot-stats", "cluster|syncslots", "commandlog", "commandlog|get", "commandlog|help",
    "commandlog|len", "commandlog|reset", "failover", "migrate", "psync", "replconf",
    "restore-asking", "sflush", "sync", "trimslots",
    // Sentinel.
    "sentinel", "sentinel|ckquorum", "sentinel|config", "sentinel|debug", "sentinel|failover",
    "sentinel|flushconfig", "sentinel|get-master-addr-by-name", "sentinel|get-primary-addr-by-name",
    "sentinel|help", "sentinel|info-cache", "sentinel|is-master-down-by-addr",
    "sentinel|is-primary-down-by-addr", "sentinel|master", "sentinel|masters", "sentinel|monitor",
    "sentinel|myid", "sentinel|pending-scripts", "sentinel|primaries", "sentinel|primary",
    "sentinel|remove", "sentinel|replicas", "sentinel|reset", "sentinel|sentinels", "sentinel|set",
    "sentinel|simulate-failure", "sentinel|slaves",
    // Vector sets.
    "vadd", "vcard", "vdim", "vemb", "vgetattr", "vinfo", "vismember", "vlinks", "vrandmember",
    "vrange", "vrem", "vsetattr", "vsim",
    // The modules of Redis 8.
    "bf.add", "bf.card", "bf.exists", "bf.info", "bf.insert", "bf.loadchunk", "bf.madd",
    "bf.mexists", "bf.reserve", "bf.scandump", "cf.add", "cf.addnx", "cf.count", "cf.del",
    "cf.exists", "cf.info", "cf.insert", "cf.insertnx", "cf.loadchunk", "cf.mexists", "cf.reserve",
    "cf.scandump", "cms.incrby", "cms.info", "cms.initbydim", "cms.initbyprob", "cms.merge",
    "cms.query", "ft._list", "ft.aggregate", "ft.aliasadd", "ft.aliasdel", "ft.aliasupdate",
    "ft.alter", "ft.config", "ft.create", "ft.cursor", "ft.dictadd", "ft.dictdel", "ft.dictdump",
    "ft.dropindex", "ft.explain", "ft.explaincli", "ft.hybrid", "ft.info", "ft.profile",
    "ft.search", "ft.spellcheck", "ft.sugadd", "ft.sugdel", "ft.sugget", "ft.suglen", "ft.syndump",
    "ft.synupdate", "ft.tagvals", "json.arrappend", "json.arrindex", "json.arrinsert",
    "json.arrlen", "json.arrpop", "json.arrtrim", "json.clear", "json.debug", "json.del",
    "json.forget", "json.get", "json.merge", "json.mget", "json.mset", "json.numincrby",
    "json.nummultby", "json.numpowby", "json.objkeys", "json.objlen", "json.resp", "json.set",
    "json.strappend", "json.strlen", "json.toggle", "json.type", "tdigest.add", "tdigest.byrank",
    "tdigest.byrevrank", "tdigest.cdf", "tdigest.create", "tdigest.info", "tdigest.max",
    "tdigest.merge", "tdigest.min", "tdigest.quantile", "tdigest.rank", "tdigest.reset",
    "tdigest.revrank", "tdigest.trimmed_mean", "topk.add", "topk.count", "topk.incrby", "topk.info",
    "topk.list", "topk.query", "topk.reserve", "ts.add", "ts.alter", "ts.create", "ts.createrule",
    "ts.decrby", "ts.del", "ts.deleterule", "ts.get", "ts.incrby", "ts.info", "ts.madd", "ts.mget",
    "ts.mrange", "ts.mrevrange", "ts.queryindex", "ts.range", "ts.revrange",
];

/// The categories that modules of Redis 8 and Valkey add, in lower case.
const CATEGORIES: &[&str] =
    &["bloom", "cms", "cuckoo", "json", "search", "tdigest", "timeseries", "topk"];

/// Whether modules add the category with this name in any case.
pub(crate) fn is_category(name: &[u8]) -> bool {
    CATEGORIES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The command with this name in any case.
pub fn find(name: &[u8]) -> Option<&'static str> {
    FOREIGN.iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes())).copied()
}

/// Whether it has subcommands.
pub(crate) fn has_subcommands(name: &str) -> bool {
    let is_sub = |known: &&str| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('|'));
    FOREIGN.iter().any(is_sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_lower_case() {
        for (at, name) in FOREIGN.iter().enumerate() {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(!FOREIGN[..at].contains(name), "{name} is listed twice");
        }
        assert_eq!(find(b"VAdd"), Some("vadd"));
        assert!(has_subcommands("sentinel") && !has_subcommands("sync"));
    }
}
