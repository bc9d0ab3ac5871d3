//! What `weft check` leaves beside the files that it repairs, and which files it does not take.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::Server;
use crate::server::weft;

/// The bytes of an RDB file whose end is missing.
fn damaged() -> Vec<u8> {
    let server = Server::start(&["--save", ""]);
    let mut client = server.client();
    (0..10).for_each(|n| client.ok(&format!("SET key:{n} value:{}", "x".repeat(1000 + n))));
    client.ok("CONFIG SET rdbcompression no");
    client.ok("SAVE");
    let whole = fs::read(server.path("dump.rdb")).unwrap();
    whole[..whole.len() - 9].to_vec()
}

fn fix(file: &Path) -> Output {
    weft().args(["check", "rdb", "--fix", "--yes"]).arg(file).output().unwrap()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
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
    let checksum = bytes.len() - 8;
    // 0xf5, the length in two bytes, and the source.
    let source = bytes.windows(15).position(|text| text == b"#!lua name=seco").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.rdb");
    // With a wrong checksum, and without one.
    for _ in 0..2 {
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
        assert!(out.contains("It will leave out what stands at"), "{out}");
        assert!(!out.contains("all is right"), "{out}");
        let again = Server::start(&["--dir", &folder.path().display().to_string()]);
        let mut client = again.client();
        assert_eq!(client.ask("FCALL first 0").text(), "first");
        assert_eq!(client.ask("FCALL second 0").text(), "ERR Function not found");
        assert_eq!(client.ask("GET key").text(), "value");
        bytes[checksum..].fill(0);
    }
}

#[test]
fn a_file_that_is_saved_during_the_question_stays() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let (file, new) = (folder.path().join("dump.rdb"), folder.path().join("new.rdb"));
    let saved = [&bytes[..], b"more"].concat();
    let steps: [&dyn Fn(); 2] = [
        &|| {
            fs::write(&new, &saved).unwrap();
            fs::rename(&new, &file).unwrap();
        },
        &|| fs::write(&file, &saved).unwrap(),
    ];
    for save in steps {
        fs::write(&file, &bytes).unwrap();
        let mut child = weft()
            .args(["check", "rdb", "--fix"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"[y/N]: ") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            text.extend(byte);
        }
        save();
        child.stdin.take().unwrap().write_all(b"y\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("it has changed meanwhile"), "{errors}");
        assert_eq!(names(folder.path()), ["dump.rdb"]);
        assert_eq!(fs::read(&file).unwrap(), saved);
    }
}

#[test]
fn a_file_without_a_whole_key_becomes_one_that_is_empty() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    fs::write(&file, &bytes[..300]).unwrap();
    let output = fix(&file);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("with 0 keys"), "{out}");
    let server = Server::start(&["--dir", &folder.path().display().to_string()]);
    assert_eq!(server.client().ask("DBSIZE").int(), 0);
}

#[test]
fn files_beside_a_damaged_one_stay() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    for (name, text) in [("dump.rdb.damaged", "first"), ("dump.rdb.fixed", "mine")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for name in ["dump.rdb.damaged.1", "dump.rdb.damaged.2"] {
        fs::write(&file, &bytes).unwrap();
        let output = fix(&file);
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && out.contains(&format!("is {name}\n")), "{out}");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), bytes);
    }
    assert_eq!(fs::read_to_string(folder.path().join("dump.rdb.damaged")).unwrap(), "first");
    assert_eq!(fs::read_to_string(folder.path().join("dump.rdb.fixed")).unwrap(), "mine");
    assert_eq!(names(folder.path()).len(), 5, "{:?}", names(folder.path()));
}

#[test]
fn a_repaired_file_has_the_mode_and_the_owner_of_the_damaged_one() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let file = folder.path().join("dump.rdb");
    fs::write(&file, &bytes).unwrap();
    // Nobody but root may give a file away.
    let _ = chown(&file, Some(12345), Some(12346));
    for mode in [0o600, 0o664] {
        fs::write(&file, &bytes).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let of = |file: &Path| {
            let found = fs::metadata(file).unwrap();
            (found.mode() & 0o7777, found.uid(), found.gid())
        };
        let before = of(&file);
        assert!(fix(&file).status.success());
        assert_eq!(of(&file), before);
        assert_ne!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn a_link_to_a_damaged_file_stays_one() {
    let (bytes, folder) = (damaged(), tempfile::tempdir().unwrap());
    let (file, link) = (folder.path().join("dump.rdb"), folder.path().join("link.rdb"));
    fs::write(&file, &bytes).unwrap();
    symlink("dump.rdb", &link).unwrap();
    let output = fix(&link);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(names(folder.path()), ["dump.rdb", "dump.rdb.damaged", "link.rdb"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_ne!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_disk_that_fills_leaves_the_damaged_file_alone() {
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
    assert!(errors.contains("cannot fix dump.rdb, which stays as it is"), "{errors}");
    assert_eq!(names(folder.path()), ["dump.rdb"]);
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn what_is_no_regular_file_is_not_looked_through() {
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
