//! The log of a killed process next to its append-only file: it continues that file and no other,
//! whatever happened to the files in between.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use tempfile::TempDir;
use test_support::{Launch, eventually, in_shell};

use crate::Server;

pub const ON: &[&str] = &["--save", "", "--appendonly", "yes"];
const DEBUG: &[&str] = &["--enable-debug-command", "yes"];
pub const FILES: &str = "appendonlydir";
pub const LOG: &str = "appendonlydir/appendonly.aof.log";

/// Starts a server by a shell that ignores SIGXFSZ, so that a file size limit causes an error.
fn start_with(folder: TempDir, options: &[&str]) -> Server {
    start_by_shell(folder, options, "trap '' XFSZ; exec \"$0\" \"$@\"")
}

pub fn start(folder: TempDir) -> Server {
    start_with(folder, ON)
}

/// Starts a server with a limit on the size of files, as on a full disk.
pub fn start_limited(folder: TempDir, options: &[&str], bytes: u64) -> Server {
    let script = format!("trap '' XFSZ; exec prlimit --fsize={bytes}:unlimited \"$0\" \"$@\"");
    start_by_shell(folder, options, &script)
}

/// Starts a server by a shell script that gets the command line as its arguments.
fn start_by_shell(folder: TempDir, options: &[&str], script: &str) -> Server {
    let launch = Launch::weft().in_folder(folder).options(options).options(DEBUG);
    launch.edited_by(|command| in_shell(command, script)).start()
}

fn end_limit(server: &Server) {
    let id = server.process().0.to_string();
    let raised = Command::new("prlimit").args(["--pid", &id, "--fsize=unlimited"]).status();
    assert!(raised.unwrap().success());
}

/// Acknowledges a write that only the log contains, and kills the server.
fn kill_after_unwritten(server: Server) -> TempDir {
    kill_after(server, &["SET unwritten 1"])
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

/// Starts a server and checks which of the keys exist.
pub fn check(folder: TempDir, keys: &[(&str, bool)], said: &str) -> Server {
    let server = start(folder);
    let mut client = server.client();
    for (key, is_there) in keys {
        assert_eq!(client.ask(&format!("EXISTS {key}")).int(), i64::from(*is_there), "{key}");
    }
    assert!(server.log().contains(said), "{}", server.log());
    server
}

pub const USED: &str = "bytes of commands come from its log";
const OTHER: &str = "is not used: it is of other files";
const COPIED: &str = "is not used: it is a copy, or of an earlier start of the machine";

/// A folder where `before` is in the files, and `unwritten` only in the log.
fn killed() -> TempDir {
    let server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET before 1");
    // The log of the next process begins where the files end, so that positions match.
    let server = start(restarted(server));
    kill_after_unwritten(server)
}

pub fn restarted(mut server: Server) -> TempDir {
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
fn a_log_is_not_used_after_writes_of_another_server() {
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
fn unwritten_commands_stay_in_the_log_at_shutdown() {
    let mut server = start(tempfile::tempdir().unwrap());
    let mut client = server.client();
    client.ok("SET before 1");
    assert_eq!(client.ask(&format!("SET filler {}", "x".repeat(8000))).text(), "OK");
    let written = |server: &Server| server.info("aof_current_size").parse::<u64>().unwrap() > 8000;
    eventually("it is written", || written(&server));
    // The manifest can be written, but no further commands.
    let id = server.process().0.to_string();
    let limited = Command::new("prlimit").args(["--pid", &id, "--fsize=4000"]).status();
    assert!(limited.unwrap().success());
    client.ok("SET unwritten 1");
    server.signal("TERM");
    server.wait();
    check(server.into_folder(), &[("before", true), ("unwritten", true)], USED);
}

/// Words of a log, 8 bytes each: the position of its memory, its end, and the first unfinished
/// write of the first thread.
const PLACE: u64 = 3;
pub const END: u64 = 16;
const THREAD: u64 = 40;
/// The size of the ring at its end.
pub const RING_BYTES: u64 = 64 << 20;

pub fn words(file: &fs::File, at: u64, count: usize) -> Vec<u64> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, at * 8).unwrap();
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn set_words(file: &fs::File, at: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&bytes, at * 8).unwrap();
}

pub fn open(path: &Path) -> fs::File {
    fs::File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn nothing_is_lost_by_two_kills_of_which_the_first_hits_an_unfinished_write() {
    const BYTES: u64 = 100;
    let mut server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET before 1");
    let file = server.folder().join(FILES).join("appendonly.aof.1.incr.aof");
    eventually("it is written", || {
        fs::read(&file).unwrap().ends_with(b"$6\r\nbefore\r\n$1\r\n1\r\n")
    });
    server.signal("KILL");
    server.wait();
    let folder = server.into_folder();
    let log = open(&folder.path().join(LOG));
    let end = words(&log, END, 1)[0];
    // As after a thread that reserved its range and wrote nothing.
    set_words(&log, THREAD, &[end >> 9, BYTES]);
    set_words(&log, END, &[end + (BYTES << 9)]);
    let folder = kill_after_unwritten(start(folder));
    check(folder, &[("before", true), ("unwritten", true)], USED);
}

/// Lets the server acknowledge commands that only the log contains, and kills it.
pub fn kill_after(mut server: Server, commands: &[&str]) -> TempDir {
    let mut client = server.client();
    // Nothing is written before.
    client.ok("DEBUG AOF-FLUSH-SLEEP 3600000000");
    commands.iter().for_each(|command| client.ok(command));
    server.signal("KILL");
    server.wait();
    server.into_folder()
}

/// The bytes of a SET in the log.
pub fn set_bytes(key: &str, value: &str) -> u64 {
    let args = ["SET", key, value];
    let bytes: usize = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len()).len()).sum();
    (bytes + "*3\r\n".len()) as u64
}

#[test]
fn commands_around_an_unfinished_write_survive_a_partial_start() {
    let value = "v".repeat(1000);
    let sets: Vec<String> =
        ["a", "b", "x", "c", "d"].map(|key| format!("SET {key} {value}")).into();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    // The end of the file when it is no longer writable, inside the commands after the first.
    for written in 0..5 {
        let mut folder = kill_after(start(tempfile::tempdir().unwrap()), &sets);
        let log = open(&folder.path().join(LOG));
        let (end, bytes) = (words(&log, END, 1)[0] >> 9, set_bytes("x", &value));
        // Another thread than the writer has not finished the third command.
        set_words(&log, THREAD + 8, &[end - 3 * bytes, bytes]);
        let file = folder.path().join(FILES).join("appendonly.aof.1.incr.aof");
        let limit = fs::metadata(&file).unwrap().len() + 500 + written * bytes;
        if written < 4 {
            // An uncompressed base is too large as well.
            let options = [ON, &["--rdbcompression", "no"]].concat();
            let mut server = start_limited(folder, &options, limit);
            server.wait_for_log("The append-only file can't be written: cannot write to");
            server.signal("KILL");
            server.wait();
            folder = server.into_folder();
        }
        let keys = [("a", true), ("b", true), ("x", false), ("c", true), ("d", true)];
        check(folder, &keys, USED);
    }
}

#[test]
fn no_write_is_lost_after_writes_of_another_server() {
    let mut server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET before 1");
    server.signal("TERM");
    server.wait();
    let folder = server.into_folder();
    let file = folder.path().join(FILES).join("appendonly.aof.1.incr.aof");
    let mut bytes = fs::read(&file).unwrap();
    bytes.extend(b"*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\n1\r\n");
    fs::write(&file, bytes).unwrap();
    let folder = kill_after_unwritten(start(folder));
    check(folder, &[("before", true), ("other", true), ("unwritten", true)], USED);
}

#[test]
fn nothing_is_lost_while_the_manifest_cannot_be_replaced() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    // A directory with the name of the new manifest.
    let temporary = folder.path().join(FILES).join("temp-appendonly.aof.manifest");
    fs::create_dir(&temporary).unwrap();
    let server = check(folder, &[("unwritten", true)], "The manifest can't name a new log");
    let folder = kill_after(server, &["SET second 1"]);
    check(folder, &[("unwritten", true), ("second", true)], USED);
}

#[test]
fn a_log_that_cannot_be_opened_ends_the_start() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let (log, other) = (folder.path().join(LOG), folder.path().join("other"));
    fs::rename(&log, &other).unwrap();
    std::os::unix::fs::symlink("appendonly.aof.log", &log).unwrap();
    let mut failing = Command::new(env!("CARGO_BIN_EXE_weft"));
    failing.arg("server").args(ON).args(["--port", "0"]).current_dir(folder.path());
    let ended = failing.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(!ended.status.success() && said.contains("Can't open the log"), "{said}");
    fs::rename(&other, &log).unwrap();
    check(folder, &[("unwritten", true)], USED);
}

#[test]
fn a_position_that_no_log_has_is_not_gone_on_with() {
    let mut server = start(tempfile::tempdir().unwrap());
    server.signal("TERM");
    server.wait();
    let folder = server.into_folder();
    let manifest = folder.path().join(FILES).join("appendonly.aof.manifest");
    // Written as by another server, without a checksum.
    let large = "file appendonly.aof.1.base.rdb seq 1 type b\n\
                 file appendonly.aof.1.incr.aof seq 1 type i startoffset 36028797018963968\n";
    fs::write(manifest, large).unwrap();
    let folder = kill_after_unwritten(start(folder));
    check(folder, &[("unwritten", true)], USED);
}

#[test]
fn a_damaged_log_is_kept() {
    let folder = kill_after(start(tempfile::tempdir().unwrap()), &["SET a 1", "SET b 1"]);
    let log = open(&folder.path().join(LOG));
    let end = words(&log, END, 1)[0] >> 9;
    let ring = log.metadata().unwrap().len() - RING_BYTES;
    log.write_all_at(b"x", ring + (end - set_bytes("b", "1")) % RING_BYTES).unwrap();
    let server = check(folder, &[("a", true), ("b", false)], "damaged and not used, but kept as");
    assert!(server.folder().join(FILES).join("appendonly.aof.log.damaged").is_file());
}

const MISCONF: &str = "MISCONF Errors writing to the AOF file: File too large";

#[test]
fn a_start_on_a_full_disk_serves_reads_and_loses_nothing() {
    let mut folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    for policy in ["always", "everysec"] {
        let options = [ON, &["--appendfsync", policy]].concat();
        let mut server = start_limited(folder, &options, 1);
        let mut client = server.client();
        assert_eq!(client.ask("GET unwritten").text(), "1");
        assert_eq!(client.ask("SET k 1").text(), MISCONF);
        server.wait_for_log("Commands that change keys are refused until a new one is whole");
        if policy == "always" {
            server.signal("KILL");
        } else {
            server.signal("TERM");
        }
        server.wait();
        folder = server.into_folder();
    }
    let server = start_limited(folder, ON, 1);
    let mut client = server.client();
    assert_eq!(client.ask("SET k 1").text(), MISCONF);
    assert!(server.path(&format!("{LOG}.previous")).is_file());
    end_limit(&server);
    eventually("it recovers", || client.ask("SET k 1").text() == "OK");
    assert!(!server.path(&format!("{LOG}.previous")).exists());
    let folder = restarted(server);
    let server = check(folder, &[("unwritten", true), ("k", true)], "");
    assert!(!server.log().contains(USED));
    check(kill_after(server, &["SET later 1"]), &[("later", true)], USED);
}

#[test]
fn expiries_on_a_full_disk_do_not_allow_writes() {
    let server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET filler 1");
    // Nothing is logged when the key expires.
    let folder = kill_after(server, &["DEBUG SET-ACTIVE-EXPIRE 0", "SET k v PX 1"]);
    let server = start_limited(folder, ON, 1);
    let mut client = server.client();
    assert_eq!(client.ask("EXISTS k").int(), 0);
    eventually("it has expired", || server.info("expired_keys") != "0");
    for _ in 0..100 {
        assert_eq!(client.ask("SET k 1").text(), MISCONF);
    }
}

/// Starts a server without an append-only file, whose snapshots take long.
pub fn start_without(folder: TempDir) -> Server {
    let server = start_with(folder, &["--save", ""]);
    let mut client = server.client();
    (0..50).for_each(|n| client.ok(&format!("SET {n} 1")));
    client.ok("CONFIG SET rdb-key-save-delay 1000000");
    server
}

#[test]
fn a_log_is_kept_until_the_base_of_another_file_is_whole() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let mut server = start_without(folder);
    let mut client = server.client();
    for switch in ["yes", "no", "yes"] {
        client.ok(&format!("CONFIG SET appendonly {switch}"));
    }
    server.signal("KILL");
    server.wait();
    // The log of this server is of no use either.
    let mut server = start_without(server.into_folder());
    server.client().ok("CONFIG SET appendonly yes");
    server.signal("KILL");
    server.wait();
    let server = check(server.into_folder(), &[("unwritten", true), ("1", false)], USED);
    let server = start_without(restarted(server));
    let mut client = server.client();
    client.ok("CONFIG SET rdb-key-save-delay 0");
    client.ok("CONFIG SET appendonly yes");
    server.wait_for_log("Background AOF rewrite finished successfully");
    assert!(!server.path(&format!("{LOG}.previous")).exists());
    check(kill_after(server, &["SET new 1"]), &[("new", true), ("1", true)], USED);
}

#[test]
fn a_log_is_kept_when_another_file_cannot_begin() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let manifest = folder.path().join(FILES).join("appendonly.aof.manifest");
    let kept = folder.path().join("kept");
    fs::rename(&manifest, &kept).unwrap();
    fs::create_dir(&manifest).unwrap();
    let server = start_without(folder);
    let refused = server.client().ask("CONFIG SET appendonly yes").text();
    assert!(refused.contains("Unable to turn on AOF"), "{refused}");
    fs::remove_dir(&manifest).unwrap();
    fs::rename(&kept, &manifest).unwrap();
    check(restarted(server), &[("unwritten", true)], USED);
}

#[test]
fn a_moved_server_keeps_the_logs_of_other_servers() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let options = [ON, &["--enable-protected-configs", "yes"]].concat();
    for switches in [true, false] {
        let server = Server::start(&options);
        let mut client = server.client();
        client.ok(&format!("CONFIG SET dir {}", folder.path().display()));
        if switches {
            client.ok("CONFIG SET appendonly no");
        }
        let own = server.path(LOG);
        let _folder = restarted(server);
        assert!(!own.exists());
    }
    check(folder, &[("unwritten", true)], USED);
}

#[test]
fn a_forced_shutdown_does_not_wait_for_the_first_base() {
    let mut server = start_without(tempfile::tempdir().unwrap());
    let mut client = server.client();
    client.ok("CONFIG SET appendonly yes");
    server.wait_for_log("Background append only file rewriting started");
    client.send("SHUTDOWN NOSAVE FORCE");
    assert!(server.wait().success());
    assert!(server.log().contains("Writing initial AOF. Exit anyway."), "{}", server.log());
}

/// Moves the log of a folder to its place when the folder's disk is full.
fn move_to_memory(folder: &TempDir) -> TempFile {
    let facts = fs::metadata(folder.path().join(FILES)).unwrap();
    let name = format!("/dev/shm/weft-{:x}-{:x}-appendonly.aof.log", facts.dev(), facts.ino());
    let (from, to) = (folder.path().join(LOG), TempFile(name.into()));
    fs::copy(&from, &to.0).unwrap();
    fs::remove_file(from).unwrap();
    let log = open(&to.0);
    let facts = log.metadata().unwrap();
    let created = facts.created().unwrap().duration_since(UNIX_EPOCH).unwrap();
    set_words(&log, PLACE + 2, &[facts.ino(), created.as_nanos() as u64]);
    to
}

/// A file that is removed on drop.
struct TempFile(PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_log_in_shared_memory_is_used_if_it_is_the_users_own() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let _log = move_to_memory(&folder);
    check(folder, &[("unwritten", true)], USED);
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let log = move_to_memory(&folder);
    // Only root can give files away; other users cannot cause this situation.
    if std::os::unix::fs::chown(&log.0, Some(12345), None).is_ok() {
        check(folder, &[("unwritten", false)], "is not used: it is another user's");
    }
}

#[test]
fn a_log_is_used_after_a_change_of_the_servers_user() {
    let folder = kill_after_unwritten(start(tempfile::tempdir().unwrap()));
    let _ = std::os::unix::fs::chown(folder.path().join(LOG), Some(12345), None);
    check(folder, &[("unwritten", true)], USED);
}

#[test]
fn one_process_at_a_time_writes_an_append_only_file() {
    let mut server = start(tempfile::tempdir().unwrap());
    server.client().ok("SET k v");
    let directory = server.folder().display().to_string();
    let other = Server::start(&["--save", "", "--dir", &directory]);
    let mut client = other.client();
    let refused = client.ask("CONFIG SET appendonly yes").text();
    assert!(refused.contains("Unable to turn on AOF. Check server logs."), "{refused}");
    other.wait_for_log("in use by another process");
    // A server that writes only a base does not use it either.
    let lines = other.log().matches("in use by another process").count();
    client.ask("BGREWRITEAOF");
    let refused = || other.log().matches("in use by another process").count() > lines;
    eventually("it is refused", refused);
    server.signal("KILL");
    server.wait();
    let _folder = server.into_folder();
    client.ok("CONFIG SET appendonly yes");
}
