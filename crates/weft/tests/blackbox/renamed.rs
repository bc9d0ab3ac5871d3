//! A server whose working directory is renamed continues in that directory, and does not touch the
//! files of another server that starts under the old name.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use test_support::{Launch, eventually};

use crate::Server;
use crate::left_logs::{FILES, LOG, kill_after};

/// The keys that a server has written, and that must be there after its end.
const PARTS: [&str; 3] = ["before", "rewritten", "after"];

/// A server in a directory, with an append-only file or only with an RDB file.
fn start(directory: &Path, appends: bool) -> Server {
    let directory = directory.display().to_string();
    let appends = if appends { "yes" } else { "no" };
    let options = ["--enable-debug-command", "yes", "--enable-protected-configs", "yes"];
    Server::start(&[&options[..], &["--dir", &directory, "--appendonly", appends]].concat())
}

/// A directory under its new name, the server that started in it, and an empty directory with the
/// old name.
fn renamed(appends: bool) -> (TempDir, Server, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let folder_path = folder.path().canonicalize().unwrap();
    let (data, moved) = (folder_path.join("data"), folder_path.join("moved"));
    fs::create_dir(&data).unwrap();
    let server = start(&data, appends);
    server.client().ok("SET first:before 1");
    fs::rename(&data, &moved).unwrap();
    fs::create_dir(&data).unwrap();
    (folder, server, data, moved)
}

/// Writes all files again, with new keys before and after.
fn write(server: &Server, name: &str) {
    let mut client = server.client();
    client.ok(&format!("SET {name}:rewritten 1"));
    client.ask("BGREWRITEAOF");
    eventually("it is rewritten", || server.info("aof_rewrites") == "1");
    eventually("it is over", || server.info("aof_rewrite_in_progress") == "0");
    client.ok("SAVE");
    client.ask("BGSAVE");
    eventually("it is saved", || server.info("rdb_bgsave_in_progress") == "0");
    client.ok(&format!("SET {name}:after 1"));
}

/// Checks which keys a server has.
#[track_caller]
fn check(server: &Server, name: &str, parts: &[&str]) {
    let mut client = server.client();
    for part in parts {
        assert_eq!(client.ask(&format!("EXISTS {name}:{part}")).int(), 1, "{name}:{part}");
    }
    assert_eq!(client.ask("DBSIZE").int(), parts.len() as i64, "{}", client.ask("KEYS *").text());
}

fn kill(mut server: Server) {
    server.signal("KILL");
    server.wait();
}

#[test]
fn two_servers_in_directories_of_one_name_have_their_own_data() {
    let (_folder, first, data, moved) = renamed(true);
    let second = start(&data, true);
    second.client().ok("SET second:before 1");
    let both = [(first, "first", &moved), (second, "second", &data)];
    both.iter().for_each(|(server, name, _)| write(server, name));
    for (server, name, directory) in both {
        kill(server);
        let server = start(directory, true);
        check(&server, name, &PARTS);
        kill(server);
        // The RDB file is older than the last key.
        check(&start(directory, false), name, &PARTS[..2]);
    }
}

#[test]
fn the_end_of_a_server_keeps_the_log_of_another() {
    let (_folder, mut first, data, moved) = renamed(true);
    let second = start(&data, true);
    first.signal("TERM");
    assert!(first.wait().success());
    assert!(!moved.join(LOG).exists());
    check(&start(&moved, true), "first", &PARTS[..1]);
    // After a kill, acknowledged writes are only in its log.
    kill_after(second, &["SET second:before 1"]);
    check(&start(&data, true), "second", &PARTS[..1]);
}

#[test]
fn an_append_only_file_begins_in_the_directory_of_the_server() {
    let (_folder, first, data, moved) = renamed(false);
    let second = start(&data, true);
    second.client().ok("SET second:before 1");
    first.client().ok("CONFIG SET appendonly yes");
    write(&first, "first");
    kill(first);
    kill(second);
    check(&start(&moved, true), "first", &PARTS);
    check(&start(&data, true), "second", &PARTS[..1]);
}

#[test]
fn a_save_ends_in_the_directory_of_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let (data, moved) = (folder.path().join("data"), folder.path().join("moved"));
    fs::create_dir(&data).unwrap();
    let server = start(&data, false);
    let mut client = server.client();
    (0..20).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ok("CONFIG SET rdb-key-save-delay 10000000");
    client.ask("BGSAVE");
    let is_saving = |directory: &Path| {
        let mut files = fs::read_dir(directory).unwrap();
        files.any(|file| file.unwrap().file_name().to_string_lossy().starts_with("temp-"))
    };
    eventually("it saves", || is_saving(&data));
    fs::rename(&data, &moved).unwrap();
    fs::create_dir(&data).unwrap();
    client.ok(&format!("CONFIG SET dir {}", data.display()));
    client.ok("CONFIG SET rdb-key-save-delay 0");
    eventually("it is saved", || server.info("rdb_bgsave_in_progress") == "0");
    assert!(moved.join("dump.rdb").is_file() && !is_saving(&moved));
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
    // The old name now belongs to another directory, and the server moves there.
    client.ok("SAVE");
    assert!(data.join("dump.rdb").is_file());
    // The running save is given up, and its file is removed from wherever it is.
    client.ok("CONFIG SET rdb-key-save-delay 10000000");
    client.ask("BGSAVE");
    eventually("it saves", || is_saving(&data));
    let again = folder.path().join("again");
    fs::rename(&data, &again).unwrap();
    let mut server = server;
    ["INT", "INT"].iter().for_each(|signal| {
        server.signal(signal);
        server.wait_for_log("Received SIGINT scheduling shutdown");
    });
    server.wait();
    assert!(!is_saving(&again));
}

#[test]
fn the_directory_is_shown_by_its_present_name() {
    let (folder, first, data, moved) = renamed(true);
    let mut client = first.client();
    let shown = |client: &mut crate::Client| client.ask("CONFIG GET dir").items()[1].text();
    assert_eq!(shown(&mut client), moved.display().to_string());
    fs::create_dir(moved.join("sub")).unwrap();
    client.ok("CONFIG SET dir sub");
    assert_eq!(shown(&mut client), moved.join("sub").display().to_string());
    client.ok(&format!("CONFIG SET dir {}", data.display()));
    assert_eq!(shown(&mut client), data.display().to_string());
    // The append-only file stays in its first directory.
    write(&first, "first");
    assert!(!data.join(FILES).exists() && data.join("dump.rdb").is_file());
    kill(first);
    check(&start(&moved, true), "first", &PARTS);
    drop(folder);
}

#[test]
fn a_rewritten_configuration_has_the_directory_of_that_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let (data, moved, file) = (path.join("data"), path.join("moved"), path.join("weft.conf"));
    fs::create_dir(&data).unwrap();
    fs::write(&file, format!("dir {}\n", data.display())).unwrap();
    let server = Launch::weft().configured_by(&file).start();
    fs::rename(&data, &moved).unwrap();
    server.client().ok("CONFIG REWRITE");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(&format!("dir \"{}\"", moved.display())), "{text}");
}

#[test]
fn a_server_whose_directory_is_removed_goes_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let (gone, other) = (path.join("gone"), path.join("other"));
    fs::create_dir(&gone).unwrap();
    let server = start(&gone, false);
    let mut client = server.client();
    client.ok("SET first:before 1");
    fs::remove_dir_all(&gone).unwrap();
    let set_dir = format!("CONFIG SET dir {}", other.display());
    assert!(client.ask(&set_dir).text().contains("No such file or directory"));
    fs::create_dir(&other).unwrap();
    client.ok(&set_dir);
    client.ok("SAVE");
    assert!(other.join("dump.rdb").exists());
}

/// CONFIG SET dir to a directory without an append-only file.
#[test]
fn no_key_goes_when_there_is_no_append_only_file_to_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let (data, other) = (path.join("data"), path.join("other"));
    [&data, &other].iter().for_each(|directory| fs::create_dir(directory).unwrap());
    let server = start(&data, true);
    let mut client = server.client();
    client.ok("SET first:before 1");
    client.ok(&format!("CONFIG SET dir {}", other.display()));
    assert!(client.ask("DEBUG LOADAOF").text().contains("Error trying to load the AOF files"));
    server.wait_for_log("there is no append-only file in the working directory");
    check(&server, "first", &["before"]);
    client.ok(&format!("CONFIG SET dir {}", data.display()));
    client.ok("DEBUG LOADAOF");
    check(&server, "first", &["before"]);
}
