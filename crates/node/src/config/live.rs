//! CONFIG GET and CONFIG SET on a running server.
//!
//! SET is all or nothing: all values are read into a copy, which replaces the configuration if none
//! was refused. The caller applies the changes, and keeps the old configuration to undo them.

use super::parameter::{Apply, Parameter};
use super::{Config, PARAMETERS, SetError, find};

/// A change that the running server must apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The change; never [`Apply::Nothing`].
    pub apply: Apply,
    /// The first parameter that requires it, named in the error if it fails.
    pub name: &'static str,
}

impl Config {
    /// CONFIG SET: changes all the named parameters, or none.
    ///
    /// `local` is whether the client is on this host, which protected parameters may require. While
    /// keys are loaded, `dir` cannot change, because it locates their files. Returns the changes to
    /// apply, each once; a parameter set to its present value needs none.
    ///
    /// # Errors
    /// Redis's reply for the first pair that is refused.
    pub fn set(
        &mut self,
        pairs: &[(&[u8], &[u8])],
        local: bool,
        is_loading: bool,
    ) -> Result<Vec<Change>, SetError> {
        let mut rows: Vec<(&'static Parameter, &'static str, &[u8])> =
            Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            let Some(row) = find(name) else {
                return Err(SetError::unknown(name));
            };
            if row.immutable {
                return Err(SetError::failed(name, "can't set immutable config"));
            }
            if row.protected && !self.enable_protected_configs.allows(local) {
                return Err(SetError::failed(name, "can't set protected config"));
            }
            if is_loading && row.apply == Apply::Directory {
                return Err(SetError::Loading);
            }
            if rows.iter().any(|(other, ..)| other.name == row.name) {
                return Err(SetError::failed(name, "duplicate parameter"));
            }
            rows.push((row, row.name_like(name), value));
        }
        let mut new = self.clone();
        let mut changes: Vec<Change> = Vec::new();
        // CONFIG SET replaces save points; a further line of a file would add to them.
        new.saving.begin_points();
        for (row, name, value) in rows {
            row.read(&mut new, &split(row, value))
                .map_err(|reason| SetError::failed(name.as_bytes(), &reason))?;
            let changed = row.volatile || row.print(&new) != row.print(self);
            if !changed {
                continue;
            }
            let warning = row.no_effect.map(|reason| Apply::NoEffect(row.name, reason));
            for apply in [warning, Some(row.apply)].into_iter().flatten() {
                let known = changes.iter().any(|change| change.apply == apply);
                if !known && apply != Apply::Nothing {
                    changes.push(Change { apply, name: row.name });
                }
            }
        }
        *self = new;
        Ok(changes)
    }

    /// CONFIG GET: names and values of the parameters that match a pattern, each once.
    ///
    /// A pattern without `*`, `?` or `[` is a name, which is printed as given. Aliases are matched
    /// and listed like names.
    pub fn matching(&self, patterns: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut push = |name: &[u8], value: &dyn Fn() -> Vec<u8>| {
            if !found.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                found.push((name.to_vec(), value()));
            }
        };
        for pattern in patterns {
            let is_name = !pattern.iter().any(|byte| b"*?[".contains(byte));
            let fits = |name: &str| match is_name {
                true => name.as_bytes().eq_ignore_ascii_case(pattern),
                false => base::glob::matches(pattern, name.as_bytes(), true),
            };
            let shown = |name: &'static str| if is_name { pattern } else { name.as_bytes() };
            for row in PARAMETERS.iter().filter(|row| is_name || !row.hidden) {
                for name in [Some(row.name), row.alias].into_iter().flatten() {
                    if fits(name) {
                        push(shown(name), &|| row.print(self));
                    }
                }
            }
        }
        found
    }
}

/// The arguments in a value of CONFIG SET: single spaces separate them, and quotes have no meaning,
/// unlike in a file.
pub(super) fn split(row: &Parameter, value: &[u8]) -> Vec<Vec<u8>> {
    match value {
        [] if row.multi => Vec::new(),
        _ if row.multi => value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect(),
        _ => vec![value.to_vec()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Permit;

    #[track_caller]
    fn set(config: &mut Config, pairs: &[(&str, &str)]) -> Result<Vec<Change>, String> {
        let pairs: Vec<_> = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        let before = config.clone();
        let result = config.set(&pairs, false, false).map_err(|error| error.to_string());
        assert!(result.is_ok() || *config == before, "a refused SET changed the configuration");
        result
    }

    #[track_caller]
    fn refused(pairs: &[(&str, &str)], error: &str) {
        assert_eq!(set(&mut Config::default(), pairs), Err(error.to_owned()));
    }

    #[track_caller]
    fn failed(pairs: &[(&str, &str)], name: &str, reason: &str) {
        let text = "ERR CONFIG SET failed (possibly related to argument";
        refused(pairs, &format!("{text} '{name}') - {reason}"));
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        let unknown = "ERR Unknown option or number of arguments for CONFIG SET - 'nope'";
        refused(&[("nope", "1")], unknown);
        refused(&[("nope", "1"), ("databases", "5")], unknown);
        refused(&[("timeout", "1"), ("nope", "5")], unknown);
        failed(&[("DATABASES", "5"), ("nope", "1")], "DATABASES", "can't set immutable config");
        failed(&[("dir", "/tmp")], "dir", "can't set protected config");
        failed(&[("hz", "10"), ("HZ", "20")], "HZ", "duplicate parameter");
        failed(&[("server_cpulist", "1")], "server_cpulist", "can't set immutable config");
        let integer = "argument couldn't be parsed into an integer";
        failed(&[("hash-max-ZIPLIST-entries", "x")], "hash-max-ziplist-entries", integer);
        failed(&[("set-max-listpack-value", "1kb")], "set-max-listpack-value", integer);
        failed(&[("PORT", "x")], "port", integer);
        failed(&[("timeout", "5"), ("hz", "abc")], "hz", integer);
        failed(&[("port", "+5")], "port", integer);
        failed(&[("port", "70000")], "port", "argument must be between 0 and 65535 inclusive");
        let names = "argument(s) must be one of the following: ";
        let levels = format!("{names}debug, verbose, notice, warning, nothing");
        failed(&[("loglevel", "x")], "loglevel", &levels);
        failed(&[("protected-mode", "x")], "protected-mode", "argument must be 'yes' or 'no'");
        let memory = "argument must be a memory value";
        failed(&[("proto-max-bulk-len", "-1")], "proto-max-bulk-len", memory);
    }

    #[test]
    fn output_limits_are_set_for_single_classes() {
        let name = "client-output-buffer-limit";
        let mut config = Config::default();
        assert!(set(&mut config, &[(name, "replica 1mb 5kb 3 PUBSUB 1 2 0")]).is_ok());
        assert!(set(&mut config, &[(name, "")]).is_ok());
        let shown = config.matching(&[b"client-output*"]);
        let value = b"normal 0 0 0 slave 1048576 5120 3 pubsub 1 2 0".to_vec();
        assert_eq!(shown, [(name.as_bytes().to_vec(), value)]);
        let wrong = "Wrong number of arguments in buffer limit configuration.";
        failed(&[(name, "normal 1  5kb 3")], name, wrong);
        let class = "Invalid client class specified in buffer limit configuration.";
        failed(&[(name, "master 1 2 1")], name, class);
        let value = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        failed(&[(name, "slave 1 2 -1")], name, value);
        failed(&[(name, "normal 9 9 9 slave 1 2 x")], name, value);
    }

    #[test]
    fn bind_takes_none_to_sixteen_addresses() {
        let mut config = Config::default();
        assert!(set(&mut config, &[("bind", "127.0.0.1 -::1")]).is_ok());
        assert_eq!(config.bind, ["127.0.0.1", "-::1"]);
        assert!(set(&mut config, &[("bind", "")]).is_ok());
        assert!(config.bind.is_empty());
        failed(&[("bind", &"1 ".repeat(17))], "bind", "Too many bind addresses specified.");
        failed(&[("bind", "a  b")], "bind", "Failed to bind to specified addresses.");
    }

    #[test]
    fn each_change_to_apply_is_returned_once() {
        let mut config = Config::default();
        let change = |apply, name| Change { apply, name };
        assert_eq!(
            set(&mut config, &[("port", "0"), ("bind", "::1"), ("io-threads", "4"), ("hz", "10")]),
            Ok(vec![change(Apply::Listeners, "port"), change(Apply::Threads, "io-threads")])
        );
        assert_eq!(set(&mut config, &[("port", "0"), ("timeout", "0")]), Ok(vec![]));
        assert_eq!(set(&mut config, &[("protected-mode", "no")]), Ok(vec![]));
        // An unchanged path may name a new certificate.
        let tls = Ok(vec![change(Apply::Tls, "tls-cert-file")]);
        assert_eq!(set(&mut config, &[("tls-cert-file", "")]), tls);
    }

    #[test]
    fn protected_parameters_need_permission() {
        let pair: &[(&[u8], &[u8])] = &[(b"dir", b"/tmp")];
        for (permit, remote, local) in
            [(Permit::No, false, false), (Permit::Local, false, true), (Permit::Yes, true, true)]
        {
            let config = Config { enable_protected_configs: permit, ..Config::default() };
            assert_eq!(config.clone().set(pair, false, false).is_ok(), remote);
            assert_eq!(config.clone().set(pair, true, false).is_ok(), local);
        }
    }

    #[track_caller]
    fn get(patterns: &[&str], names: &[&str]) {
        let patterns: Vec<_> = patterns.iter().map(|p| p.as_bytes()).collect();
        let found = Config::default().matching(&patterns);
        let found: Vec<_> = found.iter().map(|(name, _)| String::from_utf8_lossy(name)).collect();
        assert_eq!(found, names);
    }

    #[test]
    fn patterns_find_names_and_aliases() {
        get(&["PORT", "port"], &["PORT"]);
        get(&["por*", "PORT", "[p]ort"], &["port"]);
        get(&["server?cpulist"], &["server-cpulist", "server_cpulist"]);
        get(&["SERVER_CPULIST"], &["SERVER_CPULIST"]);
        get(&["p\\ort", "nothing"], &[]);
        get(&["slave-r*"], &["slave-read-only"]);
        get(&["slowlog-*", "HZ"], &["slowlog-log-slower-than", "slowlog-max-len", "HZ"]);
    }

    #[test]
    fn names_of_files_cannot_be_paths() {
        let mut config = Config::default();
        for (name, what) in [("appendfilename", "file"), ("appenddirname", "dir")] {
            let row = PARAMETERS.iter().find(|row| row.name == name);
            for path in ["a/b", "", "..", "."] {
                let refused = row.map(|row| row.read(&mut config, &[path.into()]));
                let reason = format!("append{what}name can't be a path, just a {what}name");
                assert_eq!(refused, Some(Err(reason.into())), "{path}");
            }
            let read = row.map(|row| row.read(&mut config, &[b"other".to_vec()]));
            assert_eq!(read, Some(Ok(())));
            failed(&[(name, "x")], name, "can't set immutable config");
        }
        assert_eq!(config.append_only.appenddirname, "other");
    }

    #[test]
    fn config_set_replaces_save_points() {
        let mut config = Config::default();
        let mut check = |value: &str, printed: &str| {
            let saving = Ok(vec![Change { apply: Apply::Saving, name: "save" }]);
            assert_eq!(set(&mut config, &[("save", value)]), saving, "{value}");
            assert_eq!(config.matching(&[b"save"])[0].1, printed.as_bytes());
        };
        check("60 1", "60 1");
        check("900 1 30 0", "900 1 30 0");
        check("", "");
        check("7 8", "7 8");
        for wrong in ["60", "a b", "1 2 3", "0 1", "1 -1", "5000000000 1"] {
            failed(&[("save", wrong)], "save", "Invalid save parameters");
        }
        failed(&[("dbfilename", "x")], "dbfilename", "can't set protected config");
        failed(&[("rdbchecksum", "no")], "rdbchecksum", "can't set immutable config");
    }
}
