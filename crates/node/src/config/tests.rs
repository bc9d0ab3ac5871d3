//! Tests of the whole table and of the grammar of files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashSet;

use super::*;

/// Loads a text without includes.
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

/// Asserts that the text is refused at this line for this reason.
#[track_caller]
fn refuses(text: &str, line: usize, reason: &str) {
    let error = load(text).unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (line, reason));
    let given = text.lines().nth(line - 1).unwrap().trim();
    let name = given.split(' ').next().unwrap();
    match find(name.as_bytes()).is_some_and(|row| row.sensitive) && given != name {
        true => assert_eq!(error.text, format!("{name} (redacted)")),
        false => assert_eq!(error.text, given),
    }
}

#[test]
fn names_are_unique_and_in_lower_case() {
    let names = PARAMETERS.iter().flat_map(|row| [Some(row.name), row.alias]).flatten();
    let others = DEPRECATED.iter().copied();
    let directives = REFUSED.iter().map(|(name, _)| *name);
    let mut seen = HashSet::new();
    for name in names.chain(others).chain(directives) {
        assert_eq!(name, name.to_ascii_lowercase());
        assert!(seen.insert(name), "{name} is listed twice");
    }
}

/// A value that differs from the default, as CONFIG GET prints it.
pub(super) fn other_value(row: &Parameter, config: &Config) -> Vec<u8> {
    match row.kind {
        Kind::Flag(_) if row.print(config) == b"yes" => b"no".to_vec(),
        Kind::Flag(_) => b"yes".to_vec(),
        Kind::Number { notation: Notation::Octal, max, .. } => format!("{max:o}").into_bytes(),
        // A higher rate of ticks is clamped instead of refused.
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
        Kind::CheckedText { .. } | Kind::Special(_) => match row.name {
            "bind" => b"127.0.0.1 -::1".to_vec(),
            "maxmemory-clients" => b"7%".to_vec(),
            "metrics-allowed-hosts" => b"weft.example *".to_vec(),
            "io-threads" => b"128".to_vec(),
            "save" => b"900 1 30 0".to_vec(),
            "dbfilename" => "däta \"1\".rdb".as_bytes().to_vec(),
            "appendfilename" | "appenddirname" => "däta \"1\"".as_bytes().to_vec(),
            "server-cpulist" | "bio-cpulist" | "bgsave-cpulist" | "aof-rewrite-cpulist" => {
                b"0-6:2,7".to_vec()
            }
            "proc-title-template" => "{{ünusual \"{title}\"\\".as_bytes().to_vec(),
            "latency-tracking-info-percentiles" => b"0 12.5 99.999999 100".to_vec(),
            "notify-keyspace-events" => b"g$lKEm".to_vec(),
            "replicaof" => b"::1 7000".to_vec(),
            "oom-score-adj-values" => b"-5 0 2000".to_vec(),
            "shutdown-on-sigint" | "shutdown-on-sigterm" => b"nosave now force".to_vec(),
            _ => b"normal 1 2 3 slave 4 5 6 pubsub 7 8 9".to_vec(),
        },
    }
}

#[test]
fn every_parameter_reads_the_value_that_it_prints() {
    // `activedefrag` has no other value.
    for row in PARAMETERS.iter().filter(|row| row.name != "activedefrag") {
        let mut config = Config::default();
        for value in [row.print(&config), other_value(row, &config)] {
            config = Config::default();
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
        assert_eq!(changed, [row.name], "a setter changed another field");
        let file = config.rewrite(b"", &[]);
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
    // Accepted as in Redis, although no value can be as long.
    assert_eq!(loads("proto-max-bulk-len 8GB").proto_max_bulk_len, 8 << 30);
    assert_eq!(loads("proto-max-bulk-len 8GB").bulk_bytes_max(), (3 << 30) - (1 << 20));
}

#[test]
fn shutdown_options_are_combined() {
    let config = loads("shutdown-on-sigint force SAVE force default\nshutdown-on-sigterm now");
    let SignalShutdown { save, nosave, now, force } = config.shutdown_on_sigint;
    assert_eq!((save, nosave, now, force), (true, false, false, true));
    assert_eq!(print("shutdown-on-sigint", &config), "save force");
    assert_eq!(print("shutdown-on-sigterm", &config), "now");
    let names = "argument(s) must be one of the following: default, save, nosave, now, force";
    refuses("shutdown-on-sigint", 1, names);
    refuses("shutdown-on-sigterm now then", 1, names);
    let both = "shutdown options SAVE and NOSAVE can't be used simultaneously";
    refuses("shutdown-on-sigint save nosave", 1, both);
}

fn print(name: &str, config: &Config) -> String {
    String::from_utf8(find(name.as_bytes()).unwrap().print(config)).unwrap()
}

#[test]
fn oom_scores_are_checked() {
    for (name, printed) in [("Relative", "yes"), ("yes", "yes"), ("absolute", "absolute")] {
        assert_eq!(print("oom-score-adj", &loads(&format!("oom-score-adj {name}"))), printed);
    }
    refuses(
        "oom-score-adj maybe",
        1,
        "argument(s) must be one of the following: no, yes, relative, absolute",
    );
    refuses("oom-score-adj-values 1 2", 1, "wrong number of arguments");
    let range = "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
    for wrong in ["0 0 2001", "0 -2001 0", "a 0 0", "0 0 \"\""] {
        refuses(&format!("oom-score-adj-values {wrong}"), 1, range);
    }
}

#[test]
fn an_empty_title_or_an_unknown_variable_is_refused() {
    let reason = "template format is invalid or contains unknown variables";
    for wrong in ["\"\"", "\" \"", "{title}", "{nosuch}", "{title"] {
        refuses(&format!("proc-title-template {wrong}"), 1, reason);
    }
    let config = loads("proc-title-template \"my {title}\"");
    assert_eq!(process_title(&config, "weft", ""), "my weft");
}

#[test]
fn maxmemory_clients_is_in_bytes_or_per_cent() {
    let limit = |text: &str| {
        let config = load(text).unwrap().0;
        (config.eviction.maxmemory_clients, config.eviction.clients_bytes_max())
    };
    let mb = 1 << 20;
    assert_eq!(limit("maxmemory-clients 1mb"), (ClientsLimit::Bytes(mb), Some(mb)));
    assert_eq!(limit("maxmemory-clients 100"), (ClientsLimit::Bytes(100), Some(mb / 8)));
    assert_eq!(limit("maxmemory-clients 5%"), (ClientsLimit::Percent(5), None));
    let of_maxmemory = limit("maxmemory 100mb\nmaxmemory-clients 5%");
    assert_eq!(of_maxmemory, (ClientsLimit::Percent(5), Some(5 * mb)));
    assert_eq!(limit("maxmemory 100mb\nmaxmemory-clients 0%"), (ClientsLimit::Bytes(0), None));
    for wrong in ["%", "-1%", "5 %", "x", "-5", "5%%"] {
        let line = format!("maxmemory-clients \"{wrong}\"");
        refuses(&line, 1, "argument must be a memory or percent value");
    }
    refuses("maxmemory-clients 101%", 1, "percentage argument must be less or equal to 100");
}

#[test]
fn active_defragmentation_is_refused() {
    assert_eq!(load("activedefrag no\nactive-defrag-cycle-min 1").unwrap().1, []);
    refuses("activedefrag maybe", 1, "argument must be 'yes' or 'no'");
    let reason = "Active defragmentation cannot be enabled: values are not moved. Memory that is \
        freed is used for later values, and MEMORY PURGE returns whole pages that are unused";
    refuses("activedefrag yes", 1, reason);
    let warnings = load("active-defrag-threshold-upper 50").unwrap().1;
    assert_eq!(warnings[0].reason, "values are not moved to reduce fragmentation");
}

#[test]
fn lines_follow_the_grammar() {
    let config = loads("# comment\r\n\r\n  \t PORT\t7000  \r\nport 7001\nlogfile 'a b'\n");
    assert_eq!((config.port, config.logfile.as_str()), (7001, "a b"));
    assert_eq!(loads("requirepass \"a\\xff\\n#\"").requirepass, b"a\xff\n#");
    assert_eq!(loads("bind \"127.0.0.1 ::1\"").bind, ["127.0.0.1", "::1"]);
    assert_eq!(loads("bind 10.0.0.1 -::1").bind, ["10.0.0.1", "-::1"]);
    assert_eq!(loads("io-threads AUTO\nserver_cpulist 1").server_cpulist, "1");
    let meant = "Bad directive or wrong number of arguments. Did you mean 'maxmemory'?";
    refuses("maxmemroy 1gb", 1, meant);
    refuses("# x\n\nport \"1", 3, "Unbalanced quotes in configuration line");
    for bad in ["nonsense", "nonsense 5", "include", "include a b", "--port 1"] {
        refuses(bad, 1, "Bad directive or wrong number of arguments");
    }
}

#[test]
fn rename_command_renames_or_disables_commands() {
    let renamed = "rename-command GET fetch\nrename-command Fetch take\nrename-command set ''\n\
                   rename-command MGET mget\nrename-command append get\n\
                   rename-command del x\nrename-command x Del";
    let config = loads(renamed);
    let called = |command: &str| {
        let name = config.acl.renamed_commands.called(command);
        name.map(|name| String::from_utf8(name).unwrap())
    };
    for foreign in ["migrate", "SYNC", "psync", "replconf", "failover", "json.get"] {
        let hidden = loads(&format!("rename-command {foreign} ''\nrename-command get x"));
        assert_eq!(hidden.acl.renamed_commands.called("get"), Some(b"x".to_vec()), "{foreign}");
    }
    let names = ["get", "set", "mget", "append", "del"].map(called);
    let expected = [Some("take"), None, Some("mget"), Some("get"), Some("Del")];
    assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
    for (text, line, reason) in [
        ("rename-command nosuch x", 1, "No such command in rename-command"),
        ("rename-command config|get x", 1, "No such command in rename-command"),
        ("rename-command sentinel|master x", 1, "No such command in rename-command"),
        ("rename-command sync get", 1, "Target command name already exists"),
        ("rename-command sync a\nrename-command sync b", 2, "No such command in rename-command"),
        ("rename-command sync a\nrename-command get A", 2, "Target command name already exists"),
        ("rename-command get x\nrename-command get y", 2, "No such command in rename-command"),
        ("rename-command '' y", 1, "No such command in rename-command"),
        ("rename-command get SET", 1, "Target command name already exists"),
        ("rename-command get x\nrename-command set X", 2, "Target command name already exists"),
        ("rename-command get", 1, "Bad directive or wrong number of arguments"),
    ] {
        refuses(text, line, reason);
    }
}

/// The append-only file knows commands by their original names.
#[test]
fn no_command_gets_the_original_name_of_a_logged_one() {
    for (lines, command, other) in [
        (&["set x", "get SET"][..], "GET", "SET"),
        (&["set ''", "append set"], "APPEND", "SET"),
        (&["exec x", "psync exec"], "PSYNC", "EXEC"),
        (&["multi x", "get multi"], "GET", "MULTI"),
        (&["select x", "x y", "del Select"], "DEL", "SELECT"),
        (&["xgroup x", "object xgroup"], "OBJECT", "XGROUP"),
        (&["function x", "get function"], "GET", "FUNCTION"),
        (&["get x", "set get", "x set"], "GET", "SET"),
    ] {
        let text: Vec<_> = lines.iter().map(|line| format!("rename-command {line}")).collect();
        let reason = format!(
            "{command} cannot be renamed to {other}: the append-only file and replicas know \
             {other} by this name, also where it is renamed or disabled"
        );
        refuses(&text.join("\n"), lines.len(), &reason);
    }
}

#[test]
fn a_fatal_error_shows_no_secret() {
    for (line, shown) in [
        ("user bob on >secret +nosuch", "user bob (redacted)"),
        ("USER bob on >secret +nosuch", "USER bob (redacted)"),
        ("user bob on <secret", "user bob (redacted)"),
        ("user bob #secret", "user bob (redacted)"),
        ("user bob (+get >secret)", "user bob (redacted)"),
        ("user bob \">secret", "user (redacted)"),
        ("requirepass two secret", "requirepass (redacted)"),
        ("requirepass \"secret", "requirepass (redacted)"),
        ("'requirepass' secret words", "requirepass (redacted)"),
        ("requirepass=secret", "requirepass (redacted)"),
        ("tls-key-file-pass two secret", "tls-key-file-pass (redacted)"),
        ("masterauth \"secret", "masterauth (redacted)"),
        ("masterauht secret", "masterauht (redacted)"),
        ("RequirePas secret", "RequirePas (redacted)"),
        ("primaryauht secret", "primaryauht (redacted)"),
        ("usr bob on >secret", "usr (redacted)"),
        ("username secret-agent", "username secret-agent"),
    ] {
        let error = load(line).unwrap_err();
        assert_eq!(error.text, shown);
        assert!(!error.reason.contains("secret"), "{}", error.reason);
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
fn parameters_without_effect_cause_a_warning_unless_they_have_the_default() {
    let quiet = "repl-timeout 60\nrepl-backlog-size 1mb\nreplica-priority 100\nslaveof no one\n\
                 oom-score-adj-values 0 200 800\nio-threads-do-reads yes\naclfile \"\"";
    assert_eq!(load(quiet).unwrap(), (Config::default(), vec![]));
    let (config, warnings) = load("repl-timeout 61\nmasterauth x\nSlave-Priority 5").unwrap();
    assert_eq!((config.replication.timeout, config.replication.priority), (61, 5));
    let named: Vec<_> = warnings.iter().map(|w| (w.line, w.name)).collect();
    assert_eq!(named, [(1, "repl-timeout"), (2, "masterauth"), (3, "replica-priority")]);
    let text = "'repl-timeout' has no effect: replication does not exist yet (in the \
                configuration file a.conf, at line 1)";
    assert_eq!(warnings[0].to_string(), text);
    for wrong in ["replicaof", "replicaof a", "replicaof a b c"] {
        refuses(wrong, 1, "wrong number of arguments");
    }
    for wrong in ["replicaof a b", "slaveof a 65536", "replicaof a -1"] {
        refuses(wrong, 1, "Invalid master port");
    }
    refuses("repl-timeout", 1, "wrong number of arguments");
    refuses("io-threads-do-reads", 1, "Bad directive or wrong number of arguments");
}

#[test]
fn save_lines_add_up_and_replace_the_default() {
    for (text, printed) in [
        ("", "3600 1 300 100 60 10000"),
        ("save 900 1\nsave 30 5", "900 1 30 5"),
        ("save 900 1 30 5", "900 1 30 5"),
        ("save 900 1\nsave \"\"", ""),
        ("save 900 1\nsave \"\"\nsave 5 6", "5 6"),
        ("save", ""),
        ("save \"900 1\"", "900 1"),
    ] {
        assert_eq!(print("save", &loads(text)), printed, "{text}");
    }
    let nested = "save 4 4\ninclude none";
    let files =
        &[("a", "save 1 1\nsave 2 2"), ("b", "save 3 3"), ("nested", nested), ("none", "hz 10")];
    for (text, printed) in [
        ("include a\nsave 60 1\nsave 5 6", "60 1 5 6"),
        ("save 60 1\ninclude a\ninclude b", "60 1 1 1 2 2 3 3"),
        ("include a\ninclude none\ninclude b", "1 1 2 2 3 3"),
        ("include a\ninclude none", "1 1 2 2"),
        ("save 60 1\ninclude none\nsave 5 6", "5 6"),
        ("include none", "3600 1 300 100 60 10000"),
        ("include nested\ninclude b", "4 4 3 3"),
        ("include nested\nsave 5 6", "5 6"),
    ] {
        assert_eq!(print("save", &load_with(files, text).unwrap()), printed, "{text}");
    }
    refuses("save 900", 1, "Invalid save parameters");
    refuses("dbfilename folder/file", 1, "dbfilename can't be a path, just a filename");
}

#[test]
fn setting_a_parameter_without_effect_gives_the_reason() {
    let (_, warnings) = load("list-compress-depth 0\nlazyfree-lazy-user-del YES").unwrap();
    let texts: Vec<_> = warnings.iter().map(Warning::to_string).collect();
    let text = "'lazyfree-lazy-user-del' has no effect: values that take long to free are always \
                freed in the background (in the configuration file a.conf, at line 2)";
    assert_eq!(texts, [text]);
    let mut config = Config::default();
    let changes = config.set(&[(b"list-compress-depth", b"1")], false, false).unwrap();
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
fn every_parameter_has_a_reader_or_no_effect() {
    for row in PARAMETERS {
        assert_ne!(row.reader.is_some(), row.no_effect.is_some(), "{}", row.name);
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
fn directives_that_restrict_access_are_refused() {
    for (name, reason) in REFUSED {
        refuses(&format!("{name} x y"), 1, reason);
    }
}

/// Loads a text whose includes are in `files`, by name.
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
fn includes_insert_their_files() {
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
fn errors_in_included_files_name_the_file() {
    let files = &[("a", "port x"), ("b", "include a"), ("loop", "hz 1\ninclude loop")];
    let error = load_with(files, "include b").unwrap_err();
    assert_eq!((error.origin, error.line), (Origin::File("a".to_owned()), 1));
    let error = load_with(files, "include loop").unwrap_err();
    assert_eq!((error.line, error.reason.as_str()), (2, "'loop' includes itself"));
}

#[test]
fn the_depth_of_includes_is_limited() {
    let mut config = Config::default();
    let mut count = 0;
    let result = config.load(b"include x", Origin::Stdin, &mut |_| {
        count += 1;
        Ok(vec![Included { name: count.to_string(), text: b"include x".to_vec() }])
    });
    assert_eq!(result.unwrap_err().reason, "files include each other too deeply");
}

#[test]
fn the_sample_file_matches_the_table_and_loads_without_warnings() {
    let file = include_str!("../../../../weft.conf");
    assert_eq!(file, sample(), "weft.conf differs from node::config::sample()");
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
