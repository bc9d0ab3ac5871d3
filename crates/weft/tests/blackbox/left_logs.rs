//! The log that a killed process leaves beside its append-only file: it goes on with that file and
//! with no other, whatever became of the files meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::Server;
use crate::server::{READY, eventually};

const ON: &[&str] = &["--save", "", "--appendonly", "yes"];
const FILES: &str = "appendonlydir";
const LOG: &str = "appendonlydir/appendonly.aof.log";

/// Starts a server by a shell, so that a limit of the size of files is told as an error.
fn start(folder: TempDir) -> Server {
    Server::start_in(folder, ON, READY, |command| {
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let folder = command.get_current_dir().unwrap().to_owned();
        let program = command.get_program().to_owned();
        *command = Command::new("sh");
        command.arg("-c").arg("trap '' XFSZ; exec \"$0\" \"$@\"");
        command.arg(program).args(args).current_dir(folder)
    })
}

/// Acknowledges a write that only the log has, and is killed.
fn kill_after_unwritten(mut server: Server) -> TempDir {
    let id = server.process().0.to_string();
    let limited = Command::new("prlimit").args(["--pid", &id, "--fsize=1"]).status();
    assert!(limited.unwrap().success());
    server.client().ok("SET unwritten 1");
    server.signal("KILL");
    server.wait();
    server.into_folder()
}

fn copy(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if wanted(&name) {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

fn remove_files(folder: &TempDir) {
    for file in fs::read_dir(folder.path().join(FILES)).unwrap() {
        let path = file.unwrap().path();
        if !path.ends_with("appendonly.aof.log") {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(folder.path().join(LOG).is_file());
}

/// Starts a server and looks which of the keys are there.
fn check(folder: TempDir, keys: &[(&str, bool)], said: &str) -> Server {
    let server = start(folder);
    let mut client = server.client();
    for (key, is_there) in keys {
        assert_eq!(client.ask(&format!("EXISTS {key}")).int(), i64::from(*is_there), "{key}");
    }
    assert!(server.log().contains(said), "{}", server.log());
    server
}

const USED: &str = "bytes of commands come from its log";
const OTHER: &str = "is not used: it is of other files";
const COPIED: &str = "is not used: it is a copy, or of an earlier start of the machine";

/// A folder where `before` is in the files, and `unwritten` only in the log.
fn killed() -> TempDir {
    let server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET before 1");
    // The log of the next process begins where the files end, so that positions fit.
    let server = start(restarted(server));
    kill_after_unwritten(server)
}

fn restarted(mut server: Server) -> TempDir {
    server.signal("TERM");
    assert!(server.wait().success());
    server.into_folder()
}

#[test]
fn a_log_goes_on_with_its_own_files_once() {
    let server = check(killed(), &[("before", true), ("unwritten", true)], USED);
    assert_eq!(server.client().ask("DEL unwritten").int(), 1);
    let folder = restarted(server);
    let server = check(folder, &[("before", true), ("unwritten", false)], "");
    assert!(!server.log().contains(USED));
}

#[test]
fn files_that_were_moved_with_their_log_are_gone_on_with() {
    let (folder, other) = (killed(), tempfile::tempdir().unwrap());
    fs::rename(folder.path().join(FILES), other.path().join(FILES)).unwrap();
    check(other, &[("before", true), ("unwritten", true)], USED);
}

#[test]
fn a_log_does_not_go_on_with_a_backup_of_its_files() {
    let server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET before 1");
    let folder = restarted(server);
    let backup = tempfile::tempdir().unwrap();
    copy(&folder.path().join(FILES), backup.path(), |_| true);
    let folder = kill_after_unwritten(start(folder));
    remove_files(&folder);
    copy(backup.path(), &folder.path().join(FILES), |_| true);
    check(folder, &[("before", true), ("unwritten", false)], OTHER);
}

#[test]
fn a_log_does_not_go_on_with_files_of_another_server() {
    let (folder, server) = (killed(), start(tempfile::tempdir().unwrap()));
    server.client().ok("SET another 1");
    let other = restarted(server);
    remove_files(&folder);
    copy(&other.path().join(FILES), &folder.path().join(FILES), |_| true);
    let keys = [("before", false), ("unwritten", false), ("another", true)];
    check(folder, &keys, OTHER);
}

#[test]
fn a_log_does_not_go_on_with_files_that_were_deleted() {
    let folder = killed();
    remove_files(&folder);
    let server = check(folder, &[("before", false), ("unwritten", false)], OTHER);
    server.client().ok("SET new 1");
    check(kill_after_unwritten(server), &[("new", true), ("unwritten", true)], USED);
}

#[test]
fn a_copy_of_a_log_is_not_used() {
    let (folder, other) = (killed(), tempfile::tempdir().unwrap());
    copy(&folder.path().join(FILES), &other.path().join(FILES), |_| true);
    check(other, &[("before", true), ("unwritten", false)], COPIED);
    // The original is.
    check(folder, &[("before", true), ("unwritten", true)], USED);
}

#[test]
fn a_log_is_not_used_behind_what_another_server_has_written() {
    let folder = killed();
    let file = folder.path().join(FILES).join("appendonly.aof.1.incr.aof");
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\n1\r\n");
    fs::write(&file, bytes).unwrap();
    let keys = [("before", true), ("unwritten", false), ("other", true)];
    check(folder, &keys, "is not used: another server has written to the files since");
}

#[test]
fn a_log_is_not_used_where_its_files_have_become_shorter() {
    let folder = killed();
    let file = folder.path().join(FILES).join("appendonly.aof.1.incr.aof");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let said = "is not used: it does not go on where the files end";
    check(folder, &[("before", false), ("unwritten", false)], said);
}

#[test]
fn what_could_not_be_written_when_the_server_ends_is_left_in_the_log() {
    let mut server = start(tempfile::tempdir().unwrap());
    let mut client = server.client();
    client.ok("SET before 1");
    assert_eq!(client.ask(&format!("SET filler {}", "x".repeat(8000))).text(), "OK");
    let written = |server: &Server| server.info("aof_current_size").parse::<u64>().unwrap() > 8000;
    eventually("it is written", || written(&server));
    // The manifest may be written, but nothing more of the commands.
    let id = server.process().0.to_string();
    let limited = Command::new("prlimit").args(["--pid", &id, "--fsize=4000"]).status();
    assert!(limited.unwrap().success());
    client.ok("SET unwritten 1");
    server.signal("TERM");
    server.wait();
    check(server.into_folder(), &[("before", true), ("unwritten", true)], USED);
}

#[test]
fn the_log_of_another_user_is_not_executed() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    // Only root can give files away: others would not be able to do what is tested either.
    if std::os::unix::fs::chown(folder.path().join(LOG), Some(12345), None).is_ok() {
        check(folder, &[("unwritten", false)], READY);
    }
}

#[test]
fn one_process_at_a_time_writes_an_append_only_file() {
    let mut server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET k v");
    let directory = server.folder().path().display().to_string();
    let other = Server::start(&["--save", "", "--dir", &directory]);
    let mut client = other.client();
    let refused = client.ask("CONFIG SET appendonly yes").text();
    assert!(refused.contains("Unable to turn on AOF. Check server logs."), "{refused}");
    assert!(other.log().contains("in use by another process"), "{}", other.log());
    server.signal("KILL");
    server.wait();
    let _folder = server.into_folder();
    client.ok("CONFIG SET appendonly yes");
}
