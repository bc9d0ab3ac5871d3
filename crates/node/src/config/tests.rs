//! The table checked as a whole, and the grammar of files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashSet;

use super::*;

/// Loads a text that includes nothing.
fn load(text: &str) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut config = Config::default();
    let origin = Origin::File("a.conf".to_owned());
    let warnings = config.load(text.as_bytes(), origin, &mut |_| Err("no files".to_owned()))?;
    Ok((config, warnings))
}

#[track_caller]
fn loads(text: &str) -> Config {
    load(text).unwrap().0
}

/// The text must be refused at that line for that reason.
#[track_caller]
fn refuses(text: &str, line: usize, reason: &str) {
    let error = load(text).unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (line, reason));
    assert_eq!(error.text, text.lines().nth(line - 1).unwrap().trim());
}

#[test]
fn names_are_unique_and_in_lower_case() {
    let names = PARAMETERS.iter().flat_map(|row| [Some(row.name), row.alias]).flatten();
    let others = NOT_YET.iter().map(|entry| entry.name).chain(DEPRECATED.iter().copied());
    let directives = REFUSED.iter().map(|(name, _)| *name);
    let mut seen = HashSet::new();
    for name in names.chain(others).chain(directives) {
        assert_eq!(name, name.to_ascii_lowercase());
        assert!(seen.insert(name), "{name} is listed twice");
    }
}

/// What CONFIG GET prints of every parameter by default.
const DEFAULTS: &[(&str, &str)] = &[
    ("bind", "* -::*"),
    ("port", "6379"),
    ("tcp-backlog", "511"),
    ("unixsocket", ""),
    ("unixsocketperm", "0"),
    ("protected-mode", "yes"),
    ("tls-port", "0"),
    ("tls-cert-file", ""),
    ("tls-key-file", ""),
    ("tls-key-file-pass", ""),
    ("tls-ca-cert-file", ""),
    ("tls-ca-cert-dir", ""),
    ("tls-dh-params-file", ""),
    ("tls-auth-clients", "yes"),
    ("tls-protocols", ""),
    ("tls-ciphers", ""),
    ("tls-ciphersuites", ""),
    ("tls-prefer-server-ciphers", "no"),
    ("tls-session-caching", "yes"),
    ("tls-session-cache-size", "20480"),
    ("tls-session-cache-timeout", "300"),
    ("requirepass", ""),
    ("maxclients", "10000"),
    ("timeout", "0"),
    ("tcp-keepalive", "300"),
    ("proto-max-bulk-len", "536870912"),
    ("client-query-buffer-limit", "1073741824"),
    (
        "client-output-buffer-limit",
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
    ),
    ("max-new-connections-per-cycle", "10"),
    ("max-new-tls-connections-per-cycle", "1"),
    ("io-threads", "auto"),             // Redis: 1
    ("io-threads-always-active", "no"), // not in Redis
    ("io-threads-execute", "all"),      // not in Redis
    ("server-cpulist", ""),
    ("bio-cpulist", ""),
    ("hz", "10"),
    ("dynamic-hz", "yes"),
    ("databases", "16"),
    ("active-expire-effort", "1"),
    ("lazyfree-lazy-expire", "no"),
    ("lazyfree-lazy-server-del", "no"),
    ("lazyfree-lazy-user-del", "no"),
    ("lazyfree-lazy-user-flush", "no"),
    ("activerehashing", "yes"),
    ("disable-thp", "yes"),
    ("jemalloc-bg-thread", "yes"),
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("hll-sparse-max-bytes", "3000"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("set-max-intset-entries", "512"),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("loglevel", "notice"),
    ("logfile", ""),
    ("hide-user-data-from-log", "no"),
    ("crash-log-enabled", "yes"),
    ("crash-memcheck-enabled", "yes"),
    ("ignore-warnings", ""),
    ("always-show-logo", "no"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("dir", "."), // Redis: the absolute path, which only the server knows
    ("daemonize", "no"),
    ("supervised", "no"),
    ("pidfile", ""),
    ("enable-protected-configs", "no"),
    ("enable-debug-command", "no"),
];

#[test]
fn defaults_print_as_in_redis_except_where_weft_has_its_own() {
    let config = Config::default();
    let printed: Vec<_> = PARAMETERS
        .iter()
        .map(|row| (row.name, String::from_utf8(row.print(&config)).unwrap()))
        .collect();
    let printed: Vec<_> = printed.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(printed, DEFAULTS);
}

/// A value that differs from the default, as CONFIG GET prints it.
fn other_value(row: &Parameter, config: &Config) -> Vec<u8> {
    match row.kind {
        Kind::Flag(_) if row.print(config) == b"yes" => b"no".to_vec(),
        Kind::Flag(_) => b"yes".to_vec(),
        Kind::Number { notation: Notation::Octal, max, .. } => format!("{max:o}").into_bytes(),
        // The tick's rate is lowered to its limit instead of refused.
        Kind::Number { max, .. } if row.name == "hz" => {
            max.min(i64::from(HZ_MAX)).to_string().into()
        }
        Kind::Number { max, .. } => max.to_string().into_bytes(),
        Kind::Text(_) => "päth with spaces/\"quoted\"".as_bytes().to_vec(),
        Kind::Secret(_) => b"\xff\0 \n\"'".to_vec(),
        Kind::Choice { names, .. } => {
            let present = row.print(config);
            names.iter().find(|name| name.as_bytes() != present).unwrap().as_bytes().to_vec()
        }
        Kind::Special(_) => match row.name {
            "bind" => b"127.0.0.1 -::1".to_vec(),
            "io-threads" => b"128".to_vec(),
            "server-cpulist" | "bio-cpulist" => b"0-6:2,7".to_vec(),
            _ => b"normal 1 2 3 slave 4 5 6 pubsub 7 8 9".to_vec(),
        },
    }
}

#[test]
fn every_parameter_takes_back_what_it_prints() {
    for row in PARAMETERS {
        let mut config = Config::default();
        for value in [row.print(&config), other_value(row, &config)] {
            let args: Vec<Vec<u8>> = match row.multi {
                true => value.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect(),
                false => vec![value.clone()],
            };
            row.read(&mut config, &args).unwrap();
            assert_eq!(row.print(&config), value, "{}", row.name);
        }
        let others = Config::default();
        let changed =
            PARAMETERS.iter().filter(|other| other.print(&config) != other.print(&others));
        let changed: Vec<_> = changed.map(|other| other.name).collect();
        assert_eq!(changed, [row.name], "a setter must change its own field only");
        let file = config.rewrite(b"");
        assert_eq!(loads(std::str::from_utf8(&file).unwrap()), config, "{}", row.name);
    }
}

#[test]
fn every_parameter_refuses_no_arguments_and_too_many() {
    for row in PARAMETERS.iter().filter(|row| !row.multi) {
        let wrong = "wrong number of arguments";
        refuses(row.name, 1, wrong);
        refuses(&format!("{} a b", row.name), 1, wrong);
    }
    assert!(loads("bind").bind.is_empty());
    assert_eq!(loads("client-output-buffer-limit"), Config::default());
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let cases = [
        ("port 70000", "argument must be between 0 and 65535 inclusive"),
        ("timeout -1", "argument must be between 0 and 2147483647 inclusive"),
        ("maxclients 0", "argument must be between 1 and 4294967295 inclusive"),
        ("io-threads 129", "argument must be between 1 and 128 inclusive"),
        ("unixsocketperm 1777", "argument must be between 0 and 777 inclusive"),
        ("unixsocketperm 999", "argument couldn't be parsed as an octal number"),
        ("slowlog-log-slower-than 1mb", "argument couldn't be parsed into an integer"),
        ("port 0x10", "argument couldn't be parsed into an integer"),
        (
            "client-query-buffer-limit 5",
            "argument must be between 1048576 and 9223372036854775807 inclusive",
        ),
        ("logfile \"\\x00\"", "argument must be UTF-8 text without zero bytes"),
    ];
    for (text, reason) in cases {
        refuses(text, 1, reason);
    }
    assert_eq!((loads("hz 0").hz, loads("hz 99999").hz), (HZ_MIN, HZ_MAX));
    assert_eq!(loads("unixsocketperm 0770").unixsocketperm, 0o770);
    assert_eq!(loads("proto-max-bulk-len 2GB").proto_max_bulk_len, 2 << 30);
    assert_eq!(loads("proto-max-bulk-len 2GB").bulk_bytes_max(), 2 << 30);
    // As Redis accepts it, but no value is as long.
    assert_eq!(loads("proto-max-bulk-len 8GB").proto_max_bulk_len, 8 << 30);
    assert_eq!(loads("proto-max-bulk-len 8GB").bulk_bytes_max(), (3 << 30) - (1 << 20));
}

#[test]
fn the_grammar_of_lines() {
    let config = loads("# comment\r\n\r\n  \t PORT\t7000  \r\nport 7001\nlogfile 'a b'\n");
    assert_eq!((config.port, config.logfile.as_str()), (7001, "a b"));
    assert_eq!(loads("requirepass \"a\\xff\\n#\"").requirepass, b"a\xff\n#");
    assert_eq!(loads("bind \"127.0.0.1 ::1\"").bind, ["127.0.0.1", "::1"]);
    assert_eq!(loads("bind 10.0.0.1 -::1").bind, ["10.0.0.1", "-::1"]);
    assert_eq!(loads("io-threads AUTO\nserver_cpulist 1").server_cpulist, "1");
    refuses("# x\n\nport \"1", 3, "Unbalanced quotes in configuration line");
    for bad in ["nonsense", "nonsense 5", "include", "include a b", "--port 1"] {
        refuses(bad, 1, "Bad directive or wrong number of arguments");
    }
}

#[test]
fn a_fatal_error_names_file_line_and_reason() {
    let error = load("\nport abc").unwrap_err();
    let expected = format!(
        "*** FATAL CONFIG FILE ERROR (Weft {}) ***\n\
         Reading the configuration file a.conf, at line 2\n>>> 'port abc'\n\
         argument couldn't be parsed into an integer",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn parameters_without_effect_warn_when_they_ask_for_something() {
    let quiet = "rdbcompression YES\nsave \"\"\nauto-aof-rewrite-min-size 64mb\nappendonly no\n\
                 oom-score-adj-values 0 200 800\nio-threads-do-reads yes\naclfile \"\"";
    assert_eq!(load(quiet).unwrap(), (Config::default(), vec![]));
    let (config, warnings) = load("save 60 1 30 5\nmaxmemory 1gb\nAppendOnly yes").unwrap();
    assert_eq!(config, Config::default());
    let named: Vec<_> = warnings.iter().map(|w| (w.line, w.name.as_str())).collect();
    assert_eq!(named, [(1, "save"), (2, "maxmemory"), (3, "appendonly")]);
    let text = "'save' has no effect yet (in the configuration file a.conf, at line 1)";
    assert_eq!(warnings[0].to_string(), text);
    refuses("rdbcompression", 1, "wrong number of arguments");
    assert_eq!(load("save").unwrap(), (Config::default(), vec![]));
    refuses("io-threads-do-reads", 1, "Bad directive or wrong number of arguments");
}

#[test]
fn parameters_without_effect_say_why_when_they_are_set() {
    let (_, warnings) = load("list-compress-depth 0\nlazyfree-lazy-user-del YES").unwrap();
    let texts: Vec<_> = warnings.iter().map(Warning::to_string).collect();
    let text = "'lazyfree-lazy-user-del' has no effect: values that take long to free are always \
                freed in the background (in the configuration file a.conf, at line 2)";
    assert_eq!(texts, [text]);
    let mut config = Config::default();
    let changes = config.set(&[(b"list-compress-depth", b"1")], false).unwrap();
    let reason = "chunks of lists are not compressed";
    assert_eq!(
        changes,
        [Change {
            apply: Apply::NoEffect("list-compress-depth", reason),
            name: "list-compress-depth"
        }]
    );
}

#[test]
fn every_parameter_has_a_reader_or_says_that_it_has_no_effect() {
    for row in PARAMETERS {
        assert_ne!(row.reader.is_some(), row.no_effect().is_some(), "{}", row.name);
    }
}

#[test]
fn ticks_follow_the_number_of_clients() {
    let config = Config::default();
    for (clients, hz) in [(0, 10), (2009, 10), (2010, 20), (4020, 40), (1 << 30, 500)] {
        assert_eq!(config.ticks_a_second(clients), hz, "{clients}");
    }
    assert_eq!(Config { dynamic_hz: false, ..config }.ticks_a_second(1 << 30), 10);
}

#[test]
fn directives_that_guard_the_server_are_not_ignored() {
    for (name, reason) in REFUSED {
        refuses(&format!("{name} x y"), 1, reason);
    }
}

/// Loads a text whose includes are found among `files`, by name.
fn load_with(files: &[(&str, &str)], text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    config.load(text.as_bytes(), Origin::CommandLine, &mut |path| {
        let pattern = path.as_bytes();
        let matching =
            files.iter().filter(|(name, _)| base::glob::matches(pattern, name.as_bytes(), false));
        let found: Vec<_> = matching
            .map(|(name, text)| Included { name: (*name).to_owned(), text: (*text).into() })
            .collect();
        if found.is_empty() && !path.contains('*') {
            return Err("No such file or directory".to_owned());
        }
        Ok(found)
    })?;
    Ok(config)
}

#[test]
fn includes_stand_for_their_files() {
    let files = &[("a", "port 1\nhz 20"), ("b", "include a\nhz 30"), ("/etc/c", "port 3")];
    let config = load_with(files, "port 5\ninclude b\ntimeout 9").unwrap();
    assert_eq!((config.port, config.hz, config.timeout), (1, 30, 9));
    assert_eq!(load_with(files, "include ?\ninclude none*").unwrap().hz, 30);
    assert_eq!(load_with(files, "dir /etc/\ninclude c").unwrap().port, 3);
    let error = load_with(files, "\ninclude c").unwrap_err();
    assert_eq!((error.line, error.origin), (2, Origin::CommandLine));
    assert_eq!(error.reason, "can't open config file 'c': No such file or directory");
}

#[test]
fn errors_in_included_files_name_them() {
    let files = &[("a", "port x"), ("b", "include a"), ("loop", "hz 1\ninclude loop")];
    let error = load_with(files, "include b").unwrap_err();
    assert_eq!((error.origin, error.line), (Origin::File("a".to_owned()), 1));
    let error = load_with(files, "include loop").unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (2, "'loop' includes itself"));
}

#[test]
fn includes_do_not_nest_for_ever() {
    let mut config = Config::default();
    let mut count = 0;
    let result = config.load(b"include x", Origin::Stdin, &mut |_| {
        count += 1;
        Ok(vec![Included { name: count.to_string(), text: b"include x".to_vec() }])
    });
    assert_eq!(result.unwrap_err().reason, "files include each other too deeply");
}

#[test]
fn the_sample_file_is_the_table_and_loads_quietly() {
    let file = include_str!("../../../../weft.conf");
    assert_eq!(file, sample(), "weft.conf must be what node::config::sample() gives");
    assert_eq!(load(file).unwrap(), (Config::default(), vec![]));
    assert!(file.lines().all(|line| line.len() <= 100));
}

#[test]
fn arguments_override_the_file() {
    let args = ["--port", "7000", "--io-threads", "4", "--bind", "::1", "--save"];
    let args: Vec<_> = args.iter().map(std::ffi::OsString::from).collect();
    let Invocation::Run { options, .. } = parse_arguments(&args) else { panic!("no run") };
    let mut config = loads("port 1\nhz 20\nbind 10.0.0.1");
    let warnings = config.load(&options, Origin::CommandLine, &mut |_| Ok(vec![])).unwrap();
    assert!(warnings.is_empty());
    assert_eq!((config.port, config.hz, config.io_threads), (7000, 20, IoThreads::Count(4)));
    assert_eq!(config.bind, ["::1"]);
}
