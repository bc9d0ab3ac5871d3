//! CONFIG.

use crate::check::{check, run};
use crate::fake::TestServer;
use node::config::{Apply, Config, Origin, Permit};

#[test]
fn parameters_are_read() {
    check(
        r#"
> CONFIG GET hz HZ port nosuch -> ["hz", "10", "port", "6379"]
> CONFIG GET slowlog-* -> ["slowlog-log-slower-than", "10000", "slowlog-max-len", "128"]
> CONFIG GET nosuch -> []
> CONFIG GET -> -ERR wrong number of arguments for 'config|get' command
> CONFIG -> -ERR wrong number of arguments for 'config' command
> CONFIG NOSUCH x -> -ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.
> CONFIG HELP -> ~~ \[CONFIG <subcommand> *, GET <parameter> ..., *
> HELLO 3 -> ~~ {*
> CONFIG GET save timeout -> {"save": "3600 1 300 100 60 10000", "timeout": "0"}
"#,
    );
}

#[test]
fn all_parameters_change_or_none() {
    check(
        r#"
> CONFIG SET hz 20 timeout 5 -> OK
> CONFIG GET hz timeout -> ["hz", "20", "timeout", "5"]
> CONFIG SET hz 30 timeout x
-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into a
  n integer
> CONFIG SET hz 30 nosuch 1 -> -ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
> CONFIG SET hz 30 HZ 31
-ERR CONFIG SET failed (possibly related to argument 'HZ') - duplicate parameter
> CONFIG SET databases 3
-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
> CONFIG SET hz 30 timeout -> -ERR syntax error
> CONFIG SET hz -> -ERR wrong number of arguments for 'config|set' command
> CONFIG GET hz timeout -> ["hz", "20", "timeout", "5"]
"#,
    );
}

#[test]
fn parameters_without_effect_are_set_and_shown_as_in_redis() {
    check(
        r#"
> CONFIG SET crash-log-enabled no crash-memcheck-enabled no ignore-warnings ARM64-COW-BUG -> OK
> CONFIG GET crash-* ignore-warnings
["crash-log-enabled", "no", "crash-memcheck-enabled", "no", "ignore-warnings", "ARM64-COW-BUG"]
> CONFIG SET activedefrag yes
~~ -ERR CONFIG SET failed (possibly related to argument 'activedefrag') - Active defragmentation can
  not be enabled: values are not moved.*
> CONFIG SET activedefrag no active-defrag-cycle-max 50 active-defrag-ignore-bytes 1mb -> OK
> CONFIG GET activedefrag active-defrag-cycle-max active-defrag-ignore-bytes
["activedefrag", "no", "active-defrag-cycle-max", "50", "active-defrag-ignore-bytes", "1048576"]
> CONFIG SET shutdown-on-sigint "nosave now" shutdown-timeout 5 -> OK
> CONFIG SET shutdown-on-sigterm "save nosave"
-ERR CONFIG SET failed (possibly related to argument 'shutdown-on-sigterm') - shutdown options SAVE
   and NOSAVE can't be used simultaneously
> CONFIG SET shutdown-on-sigterm ""
-ERR CONFIG SET failed (possibly related to argument 'shutdown-on-sigterm') - argument(s) must be on
  e of the following: default, save, nosave, now, force
> CONFIG GET shutdown-*
["shutdown-timeout", "5", "shutdown-on-sigint", "nosave now", "shutdown-on-sigterm", "default"]
> CONFIG SET enable-module-command yes
-ERR CONFIG SET failed (possibly related to argument 'enable-module-command') - can't set immutable
   config
"#,
    );
}

#[test]
fn parameters_of_replication_and_cluster_mode_are_kept() {
    check(
        r#"
> CONFIG SET repl-timeout 30 slave-priority 5 min-replicas-to-write 1 masterauth p -> OK
> CONFIG GET repl-timeout replica-priority min-slaves-to-write masterauth
["repl-timeout", "30", "replica-priority", "5", "min-slaves-to-write", "1", "masterauth", "p"]
> CONFIG SET cluster-node-timeout 5000 cluster-announce-ip 10.0.0.1 -> OK
> CONFIG GET cluster-node-timeout cluster-a*-ip cluster-enabled
["cluster-node-timeout", "5000", "cluster-announce-ip", "10.0.0.1", "cluster-enabled", "no"]
> CONFIG SET cluster-enabled yes
-ERR CONFIG SET failed (possibly related to argument 'cluster-enabled') - can't set immutable config
> CONFIG SET repl-diskless-load always
-ERR CONFIG SET failed (possibly related to argument 'repl-diskless-load') - argument(s) must be one
   of the following: disabled, on-empty-db, swapdb
> CONFIG SET repl-backlog-size 1gb bind-source-addr 10.0.0.1 propagation-error-behavior panic -> OK
> CONFIG GET repl-backlog-size bind-source-addr propagation-error-behavior
["repl-backlog-size", "1073741824", "bind-source-addr", "10.0.0.1", "propagation-error-behavior", "p
  anic"]
> CONFIG GET lua-enable-deprecated-api -> ["lua-enable-deprecated-api", "no"]
> CONFIG GET lua-* -> ["lua-time-limit", "5000"]
"#,
    );
}

#[test]
fn parameters_for_tests_are_shown_only_by_exact_name() {
    check(
        r#"
> CONFIG GET key-load-delay rdb-key-save-delay -> ["key-load-delay", "0", "rdb-key-save-delay", "0"]
> CONFIG GET *key-* -> ~~ \["tls-key-file", "", "tls-key-file-pass", "", *"\]
> CONFIG SET key-load-delay 0 -> OK
"#,
    );
}

#[test]
fn a_change_that_cannot_be_applied_fails() {
    let mut server = TestServer::new(1);
    *server.host.unfollowed.borrow_mut() = Some(Apply::Clients);
    run(
        &mut server,
        r#"
> CONFIG SET hz 20 maxclients 5
-ERR CONFIG SET failed (possibly related to argument 'maxclients') - not today
> CONFIG GET hz maxclients -> ["hz", "10", "maxclients", "10000"]
> CONFIG SET hz 20 -> OK
"#,
    );
}

#[test]
fn a_failed_change_undoes_all_applied_changes() {
    let steps = [
        (Apply::Threads, "io-threads"),
        (Apply::Listeners, "port"),
        (Apply::Allocator, "jemalloc-bg-thread"),
        (Apply::Clients, "maxclients"),
        (Apply::Log, "loglevel"),
    ];
    let set = "CONFIG SET io-threads 4 port 7000 jemalloc-bg-thread no maxclients 5 loglevel debug";
    let get = "CONFIG GET io-threads port jemalloc-bg-thread maxclients loglevel";
    let mut server = TestServer::new(1);
    let (before, _) = server.request("c", &words(get));
    for (step, name) in steps {
        *server.host.unfollowed.borrow_mut() = Some(step);
        let (reply, _) = server.request("c", &words(set));
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(reply.starts_with("-ERR CONFIG SET failed") && reply.contains(name), "{reply}");
        assert!(server.host.applied.borrow().is_empty(), "changes remain after {name} failed");
        assert_eq!(server.request("c", &words(get)).0, before);
    }
    *server.host.unfollowed.borrow_mut() = None;
    assert_eq!(server.request("c", &words(set)).0, b"+OK\r\n");
    assert_eq!(*server.host.applied.borrow(), steps.map(|(step, _)| step));
    assert_ne!(server.request("c", &words(get)).0, before);
}

fn words(text: &str) -> Vec<Vec<u8>> {
    text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn protected_parameters_are_for_local_clients() {
    let config = Config { enable_protected_configs: Permit::Local, ..Config::default() };
    run(&mut TestServer::with_config(1, config), "> CONFIG SET dir /tmp\nOK\n");
    let refused = "-ERR CONFIG SET failed (possibly related to argument 'dir') - \
        can't set protected config\n";
    check(&format!("> CONFIG SET dir /tmp\n{refused}"));
}

#[test]
fn the_file_is_rewritten() {
    let mut server = TestServer::new(1);
    run(
        &mut server,
        r#"
> CONFIG REWRITE x -> -ERR wrong number of arguments for 'config|rewrite' command
> CONFIG REWRITE -> -ERR The server is running without a config file
"#,
    );
    *server.host.config_path.borrow_mut() = "/etc/weft.conf".to_owned();
    *server.host.config_file.borrow_mut() = b"# mine\nhz 10\n".to_vec();
    run(&mut server, "> CONFIG SET hz 50\nOK\n> CONFIG REWRITE\nOK\n");
    let default = "user default on nopass sanitize-payload ~* &* +@all\n";
    let signed = format!("# mine\nhz 50\n\n# Generated by CONFIG REWRITE\n{default}");
    assert_eq!(*server.host.config_file.borrow(), signed.as_bytes());
}

/// Replies are those of Redis 8.0.6.
#[test]
fn renamed_commands_are_called_by_their_new_names() {
    let mut config = Config::default();
    let text = b"rename-command GET fetch\nrename-command set ''\nrename-command acl \"users\"\n\
                 user u on nopass +get -set ~u";
    config.load(text, Origin::Stdin, &mut |_| Ok(vec![])).unwrap();
    let mut server = TestServer::with_config(4, config);
    server.node.load_users(|_| Err(String::new())).unwrap();
    run(
        &mut server,
        r#"
> GET k -> ~~ -ERR unknown command 'GET', with args beginning with: 'k'*
> SET k v -> ~~ -ERR unknown command 'SET', with args beginning with: 'k' 'v'*
> APPEND k v -> 1
> Fetch k -> "v"
> fetch -> -ERR wrong number of arguments for 'get' command
> ACL USERS -> ~~ -ERR unknown command 'ACL', with args beginning with: 'USERS'*
> USERS users -> ["default", "u"]
> Users nosuch -> -ERR unknown subcommand 'nosuch'. Try USERS HELP.
> users HELP -> ~~ \[USERS <subcommand> *, CAT *
> COMMAND INFO get fetch set -> ~~ \[nil, \["get", 2, *\], nil\]
> COMMAND LIST FILTERBY PATTERN [sg]et -> ["get"]
> COMMAND LIST FILTERBY PATTERN acl|u* -> ["acl|users"]
> COMMAND GETKEYS fetch k -> ["k"]
> COMMAND GETKEYS get k -> -ERR Invalid command specified
> EVAL "return redis.call('fetch', 'k')" 0 -> "v"
> EVAL "return redis.call('get', 'k')" 0
~~ -ERR Unknown Redis command called from script script: *
> users SETUSER u +fetch
-ERR Error in ACL SETUSER modifier '+fetch': Unknown command or category name in ACL
> users SETUSER u +acl -set -> OK
> users DRYRUN u fetch k -> "User u has no permissions to access the 'k' key"
> users DRYRUN u get k -> -ERR Command 'get' not found
> INFO commandstats -> ~~ *cmdstat_get:calls=2,*
b> AUTH u x -> OK
b> fetch u -> nil
b> users whoami -> "u"
b> append u x -> -NOPERM User u has no permissions to run the 'append' command
"#,
    );
}

#[test]
fn metrics_parameters_are_applied() {
    check(
        r#"
> CONFIG GET metrics-*
["metrics-port", "0", "metrics-bind", "127.0.0.1 -::1", "metrics-allowed-hosts", ""]
> CONFIG SET metrics-port 9121 metrics-bind "10.0.0.5 ::1" -> OK
> CONFIG GET metrics-[bp]* -> ["metrics-port", "9121", "metrics-bind", "10.0.0.5 ::1"]
> CONFIG SET metrics-allowed-hosts "a.example  b" -> OK
> CONFIG GET metrics-allowed-hosts -> ["metrics-allowed-hosts", "a.example b"]
> CONFIG SET metrics-allowed-hosts http://a
-ERR CONFIG SET failed (possibly related to argument 'metrics-allowed-hosts') - a host is a name wit
  hout scheme and port
> CONFIG SET metrics-allowed-hosts "" -> OK
> CONFIG SET metrics-port 65536
-ERR CONFIG SET failed (possibly related to argument 'metrics-port') - argument must be between 0 an
  d 65535 inclusive
> CONFIG SET metrics-bind "a  b"
-ERR CONFIG SET failed (possibly related to argument 'metrics-bind') - Failed to bind to specified a
  ddresses.
> CONFIG SET metrics-bind "" -> OK
> CONFIG GET metrics-bind -> ["metrics-bind", ""]
"#,
    );
}
