//! Messages of a server that does not start, or is started by hand: each reason once.

use std::fs;
use std::path::Path;

use test_support::{Certificates, Launch, output_of_server, printed};

use crate::{Client, Server};

/// Asserts that a server does not start, and gives a reason with these words once.
#[track_caller]
fn refuses(folder: &Path, args: &[&str], words: &[&str]) -> String {
    let output = output_of_server(folder, args);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
    for words in words {
        assert_eq!(text.matches(words).count(), 1, "{args:?}: {words:?} once in {text}");
    }
    text
}

#[test]
fn a_log_that_cannot_be_opened_prevents_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["Can't open the log file 'none/log': No such file or directory"];
    refuses(folder.path(), &["--port", "0", "--logfile", "none/log"], &words);
    let words = ["Can't open the log file '.': Is a directory"];
    refuses(folder.path(), &["--port", "0", "--logfile", "."], &words);
    // Before the server leaves the terminal.
    let words = ["Can't open the log file 'none/log'"];
    let daemon = ["--port", "0", "--daemonize", "yes", "--logfile", "none/log"];
    refuses(folder.path(), &daemon, &words);
    // The path is relative to the working directory.
    fs::create_dir(folder.path().join("data")).unwrap();
    let absent = ["--port", "0", "--dir", "data", "--logfile", "data/log"];
    refuses(folder.path(), &absent, &["Can't open the log file 'data/log'"]);
}

#[test]
fn a_second_primary_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("replica.conf");
    fs::write(&file, "port 0\nreplicaof 127.0.0.1 6379\n").unwrap();
    refuses(folder.path(), &["replica.conf"], &["'replicaof 127.0.0.1 6379'"]);
    refuses(folder.path(), &["--port", "0", "--slaveof", "a", "1"], &["'replicaof a 1'"]);
    let words = ["'cluster-enabled yes'"];
    refuses(folder.path(), &["--port", "0", "--cluster-enabled", "yes"], &words);
    assert!(!folder.path().join("dump.rdb").exists());
    let server = Server::start(&["--replicaof", "no", "one", "--cluster-enabled", "no"]);
    assert_eq!(server.client().ask("ROLE").to_string(), r#"*[$"master", :"0", *[]]"#);
}

#[test]
fn links_between_servers_need_certificates_for_tls() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["--tls-replication", "--tls-cluster"] {
        let words = ["No tls-cert-file is configured"];
        refuses(folder.path(), &["--port", "0", name, "yes"], &words);
    }
    let server = Server::start(&[]);
    let mut client = server.client();
    let refused = client.ask("CONFIG SET tls-replication yes").text();
    assert!(refused.starts_with("ERR CONFIG SET failed"), "{refused}");
    assert_eq!(client.ask("CONFIG GET tls-replication").items()[1].text(), "no");
    let certificates = Certificates::new();
    let mut options = certificates.server_options("no");
    options.extend(["--tls-replication".to_owned(), "yes".to_owned()]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start(&options);
    server.wait_for_log("'tls-replication' has no effect: replication does not exist yet");
}

#[test]
fn an_empty_name_of_the_rdb_file_starts_without_one() {
    let server = Server::start(&["--dbfilename", ""]);
    let mut client = server.client();
    client.ok("SET k v");
    assert_eq!(client.ask("CONFIG GET dbfilename").items()[1].text(), "");
    assert!(client.ask("SAVE").text().starts_with("ERR"));
    assert_eq!(client.ask("GET k").text(), "v");
}

#[test]
fn errors_at_start_are_printed_once() {
    let taken = Server::start(&[]);
    let port = taken.port.to_string();
    let folder = tempfile::tempdir().unwrap();
    let bind = ["--port", &port, "--bind", "127.0.0.1"];
    refuses(folder.path(), &bind, &["bind: Address already in use"]);
    let text = refuses(folder.path(), &["--maxmemroy", "1gb"], &["Did you mean 'maxmemory'?"]);
    assert!(text.contains("Bad directive or wrong number of arguments"), "{text}");
    // A log file, and the terminal.
    let with_file = [&bind[..], &["--logfile", "log"]].concat();
    refuses(folder.path(), &with_file, &["bind: Address already in use"]);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.matches("bind: Address already in use").count(), 1, "{log}");
    // A log that has no warnings.
    let silent = [&bind[..], &["--loglevel", "nothing"]].concat();
    refuses(folder.path(), &silent, &["bind: Address already in use"]);
    fs::write(folder.path().join("dump.rdb"), "no RDB file").unwrap();
    refuses(folder.path(), &["--port", "0"], &["Can't load dump.rdb"]);
    refuses(folder.path(), &["--aclfile", "none.acl"], &["opening file 'none.acl'"]);
}

#[test]
fn a_redirected_log_has_no_banner() {
    for options in [&[][..], &["--always-show-logo", "no"]] {
        let mut server = Server::start(options);
        server.signal("TERM");
        server.wait();
        let log = server.log();
        assert!(log.contains("bye bye") && !log.contains("Weft is ready"), "{log}");
    }
    Server::start(&["--always-show-logo", "yes"]).wait_for_log("Weft is ready");
}

#[test]
fn the_configuration_of_included_files_survives_a_rewrite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weft.conf");
    fs::write(folder.path().join("local.conf"), "hz 20\ntimeout 7\n").unwrap();
    fs::write(&file, "hz 30\ninclude local.conf\n").unwrap();
    let start = || Launch::weft().at(folder.path()).configured_by(&file).start();
    let shown = |client: &mut Client| {
        ["hz", "timeout"].map(|name| client.ask(&format!("CONFIG GET {name}")).items()[1].text())
    };
    let server = start();
    let mut client = server.client();
    assert_eq!(shown(&mut client), ["20", "7"]);
    client.ok("CONFIG SET hz 40 timeout 0");
    client.ok("CONFIG REWRITE");
    drop(server);
    assert_eq!(shown(&mut start().client()), ["40", "0"]);
}
