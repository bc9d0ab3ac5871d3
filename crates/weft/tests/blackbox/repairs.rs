//! The files that `weft check` writes next to damaged ones, and the files that it refuses.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use test_support::{Launch, weft};

use crate::Server;

/// The bytes of an RDB file that breaks off in its tenth and last key.
fn damaged() -> Vec<u8> {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    (0..10).for_each(|n| client.ok(&format!("SET key:{n} value:{}", "x".repeat(1000 + n))));
    client.ok("CONFIG SET rdbcompression no");
    client.ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    whole[..whole.len() - 20].to_vec()
}

fn fix(file: &Path) -> Output {
    weft().args(["check", "rdb", "--fix", "--yes"]).arg(file).output().unwrap()
}

/// The sorted names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_new_file_has_everything_before_the_damage_and_loads() {
    let server = Server::start(&["--save", "", "--rdbcompression", "no"]);
    let mut client = server.client();
    let code = "#!lua name=lib\nredis.register_function('f', function() return 'found' end)";
    assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", code.as_bytes()]).text(), "lib");
    client.ok("SET plain value");
    client.ok("SET expiring value PX 10000000");
    assert_eq!(client.ask("SADD set a b c").int(), 3);
    client.ok("SELECT 3");
    client.ok("SET other value");
    client.ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, new) = (folder.path().join("dump.rdb"), folder.path().join("dump.rdb.fixed"));
    // Without the end mark and the checksum.
    let damaged = &whole[..whole.len() - 9];
    fs::write(&file, damaged).unwrap();
    let output = fix(&file);
    let out = String::from_utf8_lossy(&output.stdout);
    let damage = format!("damaged at offset {}:", damaged.len());
    assert!(output.status.success() && out.contains(&damage), "{out}");
    assert!(out.contains("Wrote dump.rdb.fixed with 4 keys; dump.rdb is unchanged"), "{out}");
    assert_eq!(fs::read(&file).unwrap(), damaged);
    assert_eq!(fs::read(&new).unwrap(), whole, "only the end was missing");
    fs::write(&new, [&whole[..], &[0; 50]].concat()).unwrap();
    let checked = weft().args(["check", "rdb"]).arg(&new).output().unwrap();
    let out = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && out.contains("ignores the 50 bytes after"), "{out}");
    let options = ["--dir", &folder.path().display().to_string(), "--dbfilename", "dump.rdb.fixed"];
    let again = Server::start(&options);
    let mut client = again.client();
    assert_eq!(client.ask("DBSIZE").int(), 3);
    assert_eq!(client.ask("FCALL f 0").text(), "found");
    assert_eq!(client.ask("SCARD set").int(), 3);
    assert_eq!(client.ask("GET plain").text(), "value");
    assert!((9_000_000..=10_000_000).contains(&client.ask("PTTL expiring").int()));
}

#[test]
fn the_last_key_before_the_damage_is_named_with_its_offset() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    fs::write(&file, &bytes[..bytes.len() - 2000]).unwrap();
    let output = weft().args(["check", "rdb"]).arg(&file).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    let last = out.split("the last is '").nth(1).unwrap();
    let (key, rest) = last.split_once("' in database 0, at offset ").unwrap();
    let offset: usize = rest.split_whitespace().next().unwrap().parse().unwrap();
    let named = [&[0, key.len() as u8], key.as_bytes()].concat();
    assert!(bytes[offset..].starts_with(&named), "{out}");
    assert!(out.contains("Use the --fix option"), "{out}");
    assert_eq!(names(folder.path()), ["dump.rdb"]);
}

#[test]
fn a_library_that_cannot_be_loaded_is_left_out() {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    for name in ["first", "second"] {
        let code = format!("redis.register_function('{name}', function() return '{name}' end)");
        let code = format!("#!lua name={name}\n{code}");
        assert_eq!(client.ask_args(&[b"FUNCTION", b"LOAD", code.as_bytes()]).text(), name);
    }
    client.ok("SET key value");
    client.ok("CONFIG SET rdbcompression no");
    client.ok("SAVE");
    let mut bytes = fs::read(server.path("dump.rdb")).unwrap();
    let at = bytes.windows(15).position(|text| text == b"return 'second'").unwrap();
    bytes[at - 2] = b'(';
    // 0xf5, the length in two bytes, and the source.
    let source = bytes.windows(15).position(|text| text == b"#!lua name=seco").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.rdb");
    fs::write(&file, [&bytes[..], b"*1\r\n$4\r\nPING\r\n"].concat()).unwrap();
    let as_base = weft().args(["check", "aof"]).arg(&file).output().unwrap();
    assert_eq!(as_base.status.code(), Some(1), "{as_base:?}");
    let out = String::from_utf8_lossy(&as_base.stdout);
    let valid = format!("0 commands, valid up to offset {}", source - 3);
    assert!(out.contains(&valid), "{valid}: {out}");
    fs::write(&file, &bytes).unwrap();
    let output = fix(&file);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("cannot be loaded: ERR"), "{out}");
    assert!(out.contains("without the libraries that cannot be loaded"), "{out}");
    let options = ["--dir", &folder.path().display().to_string(), "--dbfilename", "dump.rdb.fixed"];
    let again = Server::start(&options);
    let mut client = again.client();
    assert_eq!(client.ask("FCALL first 0").text(), "first");
    assert_eq!(client.ask("FCALL second 0").text(), "ERR Function not found");
    assert_eq!(client.ask("GET key").text(), "value");
}

#[test]
fn a_fixed_append_only_file_has_the_batches_after_the_damage() {
    let on = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = Server::start(&on);
    (0..20).for_each(|n| server.client().ok(&format!("SET key:{n} value")));
    let server = server.restart(&on);
    let file = server.path("appendonlydir/appendonly.aof.1.incr.aof");
    let manifest = server.path("appendonlydir/appendonly.aof.manifest");
    let folder = server.into_folder();
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(13).position(|text| text == b"$5\r\nkey:7\r\n$5").unwrap();
    bytes[at + 16] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let output = weft().args(["check", "aof", "--fix", "--yes"]).arg(&manifest).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("between commands that are kept"), "{out}");
    let kept = folder.path().join("appendonlydir/appendonly.aof.1.incr.aof.original");
    assert_eq!(fs::read(kept).unwrap(), bytes);
    let server = Server::start_in(folder, &on);
    let mut client = server.client();
    assert_eq!(client.ask("DBSIZE").int(), 19);
    assert_eq!(client.ask("EXISTS key:7").int(), 0);
    assert_eq!(client.ask("GET key:19").text(), "value");
}

#[test]
fn a_closed_file_that_lacks_its_last_batches_is_refused_and_fixed() {
    let on = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::start(&on);
    (0..3).for_each(|n| server.client().ok(&format!("SET key:{n} value")));
    server.signal("TERM");
    assert!(server.wait().success());
    let file = server.path("appendonlydir/appendonly.aof.1.incr.aof");
    let manifest = server.path("appendonlydir/appendonly.aof.manifest");
    let folder = server.into_folder();
    let bytes = fs::read(&file).unwrap();
    let last = bytes.windows(4).rposition(|mark| mark == b"#WC:").unwrap();
    fs::write(&file, &bytes[..last]).unwrap();
    let Err(log) = Launch::weft().at(folder.path()).options(&on).try_start() else {
        panic!("it starts without the last batch")
    };
    assert!(log.contains("the file is shorter than when it was closed"), "{log}");
    let named = fs::read_to_string(&manifest).unwrap();
    assert!(named.contains("endoffset"), "{named}");
    let output = weft().args(["check", "aof", "--fix", "--yes"]).arg(&manifest).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let kept = folder.path().join("appendonlydir/appendonly.aof.manifest.original");
    assert_eq!(fs::read_to_string(kept).unwrap(), named);
    let server = Server::start_in(folder, &on);
    assert_eq!(server.client().ask("EXISTS key:0 key:1 key:2").int(), 2);
}

#[test]
fn no_server_uses_files_between_their_check_and_the_end_of_their_fix() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(format!("appendonly.aof.{name}"));
    let line = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    fs::write(path("manifest"), line).unwrap();
    fs::write(path("1.incr.aof"), "#TS:10\r\n*1\r\n$4\r\nPING\r\n#TS:20\r\n*1\r\n$4\r\nPI")
        .unwrap();
    for file in ["manifest", "1.incr.aof"] {
        let mut child = weft()
            .args(["check", "aof", "--fix"])
            .arg(path(file))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"[y/N]: ") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            text.push(byte[0]);
        }
        // As a server does, which has no lock here yet.
        let lock = fs::File::open(path("lock")).unwrap();
        assert!(matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
        child.stdin.take().unwrap().write_all(b"n\n").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        lock.lock().unwrap();
        for args in [&["--fix", "--yes"][..], &["--truncate-to-timestamp", "10"]] {
            let output = weft().args(["check", "aof"]).args(args).arg(path(file)).output().unwrap();
            let out = String::from_utf8_lossy(&output.stdout);
            assert!(out.contains("A server uses these files"), "{out}");
            assert_eq!(output.status.code(), Some(1), "{out}");
        }
    }
    assert!(!path("1.incr.aof.original").exists());
}

#[test]
fn a_question_that_is_not_answered_with_y_writes_nothing() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    fs::write(&file, &bytes).unwrap();
    for (answer, files) in [("n\n", 1), ("", 1), ("y\n", 2)] {
        let mut child = weft()
            .args(["check", "rdb", "--fix"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("This will write dump.rdb.fixed with 9 keys\nContinue? [y/N]: "));
        assert_eq!(output.status.success(), files == 2, "{out}");
        assert_eq!(names(folder.path()).len(), files, "{out}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn a_new_file_replaces_no_other_file() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let (file, new) = (folder.path().join("dump.rdb"), folder.path().join("dump.rdb.fixed"));
    fs::write(&file, &bytes).unwrap();
    fs::write(&new, "mine").unwrap();
    let output = fix(&file);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write dump.rdb.fixed: a file of this name exists"), "{errors}");
    assert_eq!(names(folder.path()), ["dump.rdb", "dump.rdb.fixed"]);
    assert_eq!(fs::read_to_string(&new).unwrap(), "mine");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_new_file_has_the_mode_and_the_owner_of_the_damaged_one() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let (file, new) = (folder.path().join("dump.rdb"), folder.path().join("dump.rdb.fixed"));
    fs::write(&file, &bytes).unwrap();
    // Only root may give a file away.
    let _ = chown(&file, Some(12345), Some(12346));
    for mode in [0o600, 0o664] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let of = |file: &Path| {
            let found = fs::metadata(file).unwrap();
            (found.mode() & 0o7777, found.uid(), found.gid())
        };
        let before = of(&file);
        assert!(fix(&file).status.success());
        assert_eq!((of(&file), of(&new)), (before, before));
        fs::remove_file(&new).unwrap();
    }
}

#[test]
fn a_disk_that_fills_leaves_no_new_file() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    fs::write(&file, &bytes).unwrap();
    let line = "trap '' XFSZ; ulimit -f 1; exec \"$0\" check rdb --fix --yes \"$1\"";
    let output = Command::new("sh")
        .args(["-c", line])
        .args([Path::new(weft().get_program()), &file])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write dump.rdb.fixed: "), "{errors}");
    assert!(errors.contains("dump.rdb is unchanged"), "{errors}");
    assert_eq!(names(folder.path()), ["dump.rdb"]);
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn only_regular_files_are_checked() {
    for (kind, file) in [("aof", "/dev/null"), ("rdb", "/dev/zero"), ("aof", "/tmp")] {
        let output = weft().args(["check", kind, file]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(&format!("{file} is no regular file")), "{errors}");
    }
    let words = ["check", "aof", "--truncate-to-timestamp", "-5", "file"];
    let output = weft().args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("invalid value '-5'"), "{errors}");
}
