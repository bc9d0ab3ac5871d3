//! The scripts and functions of templates: `{script:get}` stands for the source of `get`,
//! `{sha1:get}` for the SHA-1 by which EVALSHA calls it.
//!
//! They do the same as commands next to them in the table of workloads, so that the difference is
//! the cost of a script. All of their keys are declared.

use sha1::{Digest, Sha1};

/// The scripts by name.
const SCRIPTS: &[(&str, &str)] = &[
    ("get", "return redis.call('GET', KEYS[1])"),
    ("set-all", "for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[1]) end"),
    (
        "library",
        "#!lua name=bench\n\
         local function get(keys) return redis.call('GET', keys[1]) end\n\
         redis.register_function('bench_get', get)",
    ),
];

/// The source of a script.
pub fn source(name: &str) -> Option<&'static str> {
    SCRIPTS.iter().find(|script| script.0 == name).map(|script| script.1)
}

/// The SHA-1 of a script's source in hexadecimal, in lower case as SCRIPT LOAD gives it.
pub fn sha1(name: &str) -> Option<String> {
    let digest = Sha1::digest(source(name)?);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sha1_is_that_of_servers() {
        // The reply of SCRIPT LOAD of Redis 8.0.
        let get = "d3c21d0c2b9ca22f82737626a27bcaf5d288f99f";
        assert_eq!(sha1("get").as_deref(), Some(get));
        assert_eq!((source("none"), sha1("none")), (None, None));
    }
}
