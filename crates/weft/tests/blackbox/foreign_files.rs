//! Files with items that only other servers write, byte by byte.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use test_support::{Launch, eventually, in_shell, weft};

use crate::Server;

const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";
/// The key `doc`, with a value of the module `test-type` in its encoding version 3.
const MODULE_KEY: &[u8] = b"\x07\x03doc\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x05\x03abc\x00";
/// Data of the same module without a key.
const MODULE_AUX: &[u8] = b"\xf7\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x02\x01\x05\x03abc\x00";
const PLAIN_KEY: &[u8] = b"\x00\x01k\x01v";
const MODULE: &str = "'test-type' (encoding version 3)";
const MANIFEST: &str = "file appendonly.aof.1.base.rdb seq 1 type b\n";
const BASE: &str = "appendonlydir/appendonly.aof.1.base.rdb";
const AOF: [&str; 2] = ["--appendonly", "yes"];
const SKIP: [&str; 2] = ["--rdb-load-unknown", "skip"];

/// An RDB file without a checksum.
fn rdb(items: &[&[u8]]) -> Vec<u8> {
    [b"REDIS0011\xfe\x00", &items.concat()[..], END].concat()
}

/// An expiry in milliseconds since 1970.
fn expiry(at_ms: i64) -> Vec<u8> {
    [&b"\xfc"[..], &at_ms.to_le_bytes()].concat()
}

fn dump_in_folder(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dump.rdb"), bytes).unwrap();
    folder
}

/// A folder with an append-only file that has only this base.
fn base_in_folder(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("appendonlydir")).unwrap();
    fs::write(folder.path().join("appendonlydir/appendonly.aof.manifest"), MANIFEST).unwrap();
    fs::write(folder.path().join(BASE), bytes).unwrap();
    folder
}

fn start(folder: TempDir, options: &[&str]) -> Server {
    Launch::weft().in_folder(folder).options(options).start()
}

/// The log of a server that must not start.
fn refusal(folder: &Path, options: &[&str]) -> String {
    match Launch::weft().at(folder).options(options).try_start() {
        Ok(_) => panic!("it starts"),
        Err(log) => log,
    }
}

fn check(kind: &str, file: &Path) -> (Option<i32>, String) {
    let output = weft().args(["check", kind]).arg(file).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn rewrite(server: &Server) {
    server.client().ask("BGREWRITEAOF");
    eventually("it is rewritten", || {
        server.info("aof_rewrite_in_progress") == "0" && server.info("aof_rewrite_scheduled") == "0"
    });
    assert_eq!(server.info("aof_last_bgrewrite_status"), "ok");
}

#[test]
fn an_expiry_is_that_of_the_next_key_whatever_is_between() {
    const AT_MS: i64 = 4_000_000_000_000;
    // KeyDB writes its version of a key there.
    let between: &[&[u8]] = &[b"\xfa\x0bmvcc-tstamp\x011", b"\xfb\x03\x03", b"\xfe\x00"];
    let file = rdb(&[
        &expiry(AT_MS),
        between[0],
        PLAIN_KEY,
        &expiry(AT_MS + 1),
        &between.concat(),
        b"\x00\x02k2\x01v",
        &expiry(1000),
        between[0],
        b"\x00\x04gone\x01v",
        b"\x00\x05stays\x01v",
    ]);
    for is_base in [false, true] {
        let server = match is_base {
            true => start(base_in_folder(&file), &AOF),
            false => start(dump_in_folder(&file), &[]),
        };
        let mut client = server.client();
        for (key, at) in [("k", AT_MS), ("k2", AT_MS + 1), ("gone", -2), ("stays", -1)] {
            assert_eq!(client.ask(&format!("PEXPIRETIME {key}")).int(), at, "{key} {is_base}");
        }
    }
    let folder = dump_in_folder(&file);
    let (code, out) = check("rdb", &folder.path().join("dump.rdb"));
    assert!(code == Some(0) && out.contains("4 keys"), "{out}");
}

#[test]
fn a_file_with_data_of_a_module_is_refused() {
    let file = rdb(&[PLAIN_KEY, &expiry(4_000_000_000_000), MODULE_KEY]);
    let folder = dump_in_folder(&file);
    let log = refusal(folder.path(), &["--save", "3600 1"]);
    let at = file.len() - END.len() - MODULE_KEY.len();
    let why = format!(
        "the key 'doc' at byte {at} contains module data I can't load: no matching module type \
         {MODULE}"
    );
    assert!(log.contains(&why) && log.contains("'rdb-load-unknown skip'"), "{why}: {log}");
    assert_eq!(fs::read(folder.path().join("dump.rdb")).unwrap(), file);
    let (code, out) = check("rdb", &folder.path().join("dump.rdb"));
    assert_eq!(code, Some(1), "{out}");
    let found = format!("at offset {at} begin data of the module {MODULE}, with 1 keys");
    assert!(out.contains(&found) && out.contains("'doc' in database 0"), "{found}: {out}");
    assert!(!out.contains("--fix"), "{out}");
    // The same without a key, and in a base.
    let folder = dump_in_folder(&rdb(&[MODULE_AUX, PLAIN_KEY]));
    let log = refusal(folder.path(), &[]);
    assert!(log.contains(&format!("no matching module {MODULE}")), "{log}");
    let folder = base_in_folder(&file);
    let log = refusal(folder.path(), &AOF);
    assert!(log.contains(&why) && log.contains("'rdb-load-unknown skip'"), "{why}: {log}");
    let (code, out) = check("aof", &folder.path().join("appendonlydir/appendonly.aof.manifest"));
    assert!(code == Some(1) && out.contains(&found), "{out}");
}

#[test]
fn an_rdb_file_is_kept_once_when_it_is_loaded_only_in_part() {
    let mut folder = tempfile::tempdir().unwrap();
    for (kept, value) in [("dump.rdb.original", b"u"), ("dump.rdb.original-2", b"v")] {
        let file = rdb(&[MODULE_AUX, b"\x00\x01k\x01", value, MODULE_KEY]);
        fs::write(folder.path().join("new"), &file).unwrap();
        fs::rename(folder.path().join("new"), folder.path().join("dump.rdb")).unwrap();
        let server = start(folder, &SKIP);
        server.wait_for_log(&format!("Data of the module {MODULE} were left out, with 1 keys"));
        let mut client = server.client();
        assert_eq!(client.ask("DBSIZE").int(), 1);
        assert_eq!(client.ask("CONFIG GET rdb-load-unknown").items()[1].text(), "skip");
        server.wait_for_log("dump.rdb was loaded only in part, and is kept as");
        // A start on the same file finds that.
        let server = server.kill_and_start(&SKIP);
        server.client().ok("SAVE");
        server.client().ok("SAVE");
        assert_eq!(fs::read(server.path(kept)).unwrap(), file);
        assert_ne!(fs::read(server.path("dump.rdb")).unwrap(), file);
        folder = server.into_folder();
    }
    assert!(!folder.path().join("dump.rdb.original-3").exists());
    let again = start(folder, &[]);
    assert_eq!(again.client().ask("GET k").text(), "v");
}

#[test]
fn flushall_keeps_a_file_that_was_loaded_only_in_part() {
    let file = rdb(&[PLAIN_KEY, MODULE_KEY]);
    let server = start(dump_in_folder(&file), &[&SKIP[..], &["--save", "3600 1"]].concat());
    server.client().ok("FLUSHALL");
    assert_eq!(fs::read(server.path("dump.rdb.original")).unwrap(), file);
    assert_ne!(fs::read(server.path("dump.rdb")).unwrap(), file);
}

#[test]
fn a_file_is_kept_though_later_starts_load_others() {
    let file = rdb(&[PLAIN_KEY, MODULE_KEY]);
    let options = [&AOF[..], &SKIP].concat();
    // The append-only file begins with the RDB file, which no later start reads.
    let server = start(dump_in_folder(&file), &options).kill_and_start(&options);
    server.client().ok("SAVE");
    assert_eq!(fs::read(server.path("dump.rdb.original")).unwrap(), file);
    // The same the other way round.
    let server = start(base_in_folder(&file), &options).kill_and_start(&SKIP);
    server.client().ok("CONFIG SET appendonly yes");
    eventually("it has a base", || server.info("aof_rewrite_in_progress") == "0");
    rewrite(&server);
    let kept = server.path("appendonlydir.original/appendonly.aof.1.base.rdb");
    assert_eq!(fs::read(kept).unwrap(), file);
}

#[test]
fn a_kept_append_only_file_is_loaded_by_another_server_and_written_by_no_other() {
    let options = [&AOF[..], &SKIP].concat();
    let mut first = start(base_in_folder(&rdb(&[PLAIN_KEY, MODULE_KEY])), &options);
    first.client().ok("SET old 1");
    first.signal("TERM");
    assert!(first.wait().success());
    let folder = first.into_folder();
    // It is kept again, now with a file to which this server would append.
    fs::remove_dir_all(folder.path().join("appendonlydir.original")).unwrap();
    let server = start(folder, &options);
    server.client().ok("SET own 1");
    let kept = ["--appenddirname", "appendonlydir.original"];
    let kept = [&options[..], &kept].concat();
    let other = Launch::weft().at(server.folder()).options(&kept).try_start().ok().unwrap();
    other.client().ok("SET foreign 1");
    assert_eq!(other.client().ask("EXISTS k old own").int(), 2);
    server.client().ok("SET own 2");
    drop(other);
    let server = server.kill_and_start(&options);
    let mut client = server.client();
    assert_eq!(client.ask("EXISTS k old own foreign").int(), 3);
    assert_eq!(client.ask("GET own").text(), "2");
    rewrite(&server);
    client.ok("SET own 3");
    rewrite(&server);
    let other = Launch::weft().at(server.folder()).options(&kept).try_start().ok().unwrap();
    assert_eq!(other.client().ask("EXISTS k old foreign").int(), 3);
    // A part of the kept files was left out again, so they are kept as well, next to themselves.
    assert!(!server.path("appendonlydir.original-2").exists());
}

#[test]
fn an_append_only_file_in_which_a_command_fails_is_kept() {
    let mut file = rdb(&[PLAIN_KEY]);
    file.extend(b"*3\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$1\r\nx\r\n");
    let server = start(base_in_folder(&file), &AOF);
    let kept = server.path("appendonlydir.original/appendonly.aof.1.base.rdb");
    assert_eq!(fs::read(kept).unwrap(), file);
    let server = server.kill_and_start(&AOF);
    assert!(!server.path("appendonlydir.original-2").exists());
}

#[test]
fn an_append_only_file_on_another_disk_is_copied_once() {
    let file = rdb(&[PLAIN_KEY, MODULE_KEY]);
    let options = [&AOF[..], &SKIP].concat();
    let folder = base_in_folder(&file);
    // Where this is the same disk, there is a second name instead.
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let (inside, outside) = (folder.path().join("appendonlydir"), elsewhere.path().join("aof"));
    fs::create_dir(&outside).unwrap();
    for entry in fs::read_dir(&inside).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), outside.join(entry.file_name())).unwrap();
    }
    fs::remove_dir_all(&inside).unwrap();
    std::os::unix::fs::symlink(&outside, &inside).unwrap();
    // A process that was killed while it copied has left this.
    fs::create_dir(folder.path().join("appendonlydir.original.temp")).unwrap();
    fs::write(folder.path().join("appendonlydir.original.temp/part"), "part").unwrap();
    let server = start(folder, &options).kill_and_start(&options);
    server.client().ok("SET own 1");
    let server = server.kill_and_start(&options);
    let kept = server.path("appendonlydir.original/appendonly.aof.1.base.rdb");
    assert_eq!(fs::read(kept).unwrap(), file);
    for other in ["appendonlydir.original-2", "appendonlydir.original.temp"] {
        assert!(!server.path(other).exists(), "{other}");
    }
}

#[test]
fn a_hash_whose_fields_have_all_expired_is_gone_after_a_load() {
    // Packed and as a table: two fields with an expiry in 1970, in Redis's and in Valkey's form.
    let packed: &[u8] = b"\x19\x06packed\x01\0\0\0\0\0\0\0\x17\x17\0\0\0\x06\0\
        \x81f\x02\x81v\x02\x01\x01\x81g\x02\x81v\x02\x02\x01\xff";
    let table: &[u8] = b"\x18\x05table\x01\0\0\0\0\0\0\0\x02\x01\x01f\x01v\x02\x01g\x01v";
    let partly: &[u8] = b"\x18\x06partly\x01\0\0\0\0\0\0\0\x02\x01\x01f\x01v\x00\x01g\x01v";
    let file = [b"REDIS0012\xfe\x00", packed, table, partly, END].concat();
    let valkey: &[u8] = b"\x16\x05table\x01\x01f\x01v\x10\x27\0\0\0\0\0\0";
    let of_valkey = [b"VALKEY080\xfe\x00", valkey, END].concat();
    // Without the search for expired fields they would stay.
    let options = ["--enable-debug-command", "yes", "--hz", "1"];
    for (file, left) in [(&file, 1), (&of_valkey, 0)] {
        let mut server = start(dump_in_folder(file), &options);
        let mut client = server.client();
        assert_eq!(client.ask("DBSIZE").int(), left);
        assert_eq!(client.ask("EXISTS packed table").int(), 0);
        client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
        client.ok("FLUSHALL");
        fs::write(server.path("dump.rdb"), file).unwrap();
        client.ok("DEBUG RELOAD NOSAVE");
        assert_eq!(client.ask("DBSIZE").int(), left);
        drop(client);
        server = start(base_in_folder(file), &[&options[..], &AOF].concat());
        assert_eq!(server.client().ask("DBSIZE").int(), left);
        // The removal is logged: a key of another type may follow.
        assert_eq!(server.client().ask("LPUSH table x").int(), 1);
        server = server.restart(&AOF);
        assert_eq!(server.client().ask("LLEN table").int(), 1);
    }
}

#[test]
fn a_server_whose_log_is_full_of_the_ends_of_fields_serves_reads() {
    // More than the log has room for.
    const FIELDS: u32 = 70_000;
    let mut file = b"REDIS0012\xfe\x00\x00\x01k\x01v\x18\x05table".to_vec();
    file.extend(1u64.to_le_bytes());
    file.push(0x80);
    file.extend(FIELDS.to_be_bytes());
    for field in 0..FIELDS {
        file.extend(b"\x01\x43\xe8");
        file.extend(format!("{field:01000}").as_bytes());
        file.extend(b"\x01v");
    }
    file.extend(END);
    let folder = base_in_folder(&file);
    let limit = |command: &mut Command| {
        in_shell(command, "trap '' XFSZ; ulimit -S -f 512; exec \"$0\" \"$@\"");
    };
    let server = Launch::weft().in_folder(folder).options(&AOF).edited_by(limit).start();
    assert_eq!(server.client().ask("GET k").text(), "v");
    assert_eq!(server.info("aof_last_write_status"), "err");
}

#[test]
fn a_sparse_file_with_wrong_counts_takes_no_memory_for_them() {
    let items: &[&[u8]] = &[
        b"\xfb\x81\x00\x00\x00\x40\0\0\0\0\x81\x00\x00\x00\x40\0\0\0\0",
        b"\x04\x01h\x81\x00\x00\x00\x40\0\0\0\0",
        b"\x02\x01s\x81\x00\x00\x00\x40\0\0\0\0",
        b"\x05\x01z\x81\x00\x00\x00\x40\0\0\0\0",
    ];
    for item in items {
        let folder = dump_in_folder(&[b"REDIS0011\xfe\x00", *item].concat());
        let file = fs::File::options().write(true).open(folder.path().join("dump.rdb")).unwrap();
        file.set_len(1 << 42).unwrap();
        let log = refusal(folder.path(), &[]);
        assert!(log.contains("Can't load dump.rdb"), "{item:?}: {log}");
        assert_eq!(check("rdb", &folder.path().join("dump.rdb")).0, Some(1));
    }
}

#[test]
fn errors_about_damaged_files_name_the_command_that_checks_them() {
    let whole = rdb(&[PLAIN_KEY]);
    let damaged = &whole[..whole.len() - END.len()];
    let folder = dump_in_folder(damaged);
    let log = refusal(folder.path(), &[]);
    let command = format!("'weft check rdb {}'", folder.path().join("dump.rdb").display());
    assert!(log.contains(&command), "{command}: {log}");
    let folder = base_in_folder(damaged);
    let log = refusal(folder.path(), &AOF);
    let manifest = folder.path().join("appendonlydir/appendonly.aof.manifest");
    let command = format!("'weft check aof {}'", manifest.display());
    assert!(log.contains(&command), "{command}: {log}");
}

#[test]
fn restore_refuses_a_value_of_a_module_and_creates_no_hash_that_has_ended() {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.ok("DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    let footer = b"\x0c\x00\0\0\0\0\0\0\0\0";
    let module = [b"\x07\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x05\x03abc\x00", &footer[..]].concat();
    let reply = client.ask_args(&[b"RESTORE", b"doc", b"0", &module]);
    assert_eq!(reply.text(), "ERR Bad data format");
    let ended = [b"\x18\x01\0\0\0\0\0\0\0\x01\x01\x01f\x01v", &footer[..]].concat();
    assert_eq!(client.ask_args(&[b"RESTORE", b"h", b"0", &ended]).text(), "OK");
    assert_eq!(client.ask("EXISTS h").int(), 0);
    client.ok("SET h v");
    assert_eq!(client.ask_args(&[b"RESTORE", b"h", b"0", &ended, b"REPLACE"]).text(), "OK");
    assert_eq!(client.ask("DBSIZE").int(), 0);
}
