//! An unknown first word of `weft` lists the parts of weft.

use std::process::Stdio;

use test_support::{output_of_server, weft};

use super::{run, texts};
use crate::Server;

const PARTS: [&str; 7] = ["server", "cli", "bench", "report", "top", "check", "tune"];

#[test]
fn an_unknown_part_lists_the_parts() {
    let folder = tempfile::tempdir().unwrap();
    for word in ["tpo", "redis.conf", "folder/weft.conf", ""] {
        let output = run(weft().arg(word).current_dir(folder.path()), b"");
        let (out, errors, code) = texts(&output);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{word}: {errors}");
        assert!(errors.starts_with(&format!("'{word}' is neither")), "{errors}");
        for part in PARTS {
            assert!(errors.contains(&format!("\nweft {part} ")), "no {part}: {errors}");
        }
    }
}

#[test]
fn help_lists_the_parts_and_each_part_has_its_own() {
    for option in ["-h", "--help"] {
        let (out, errors, code) = texts(&run(weft().arg(option), b""));
        assert_eq!((errors.as_str(), code), ("", Some(0)), "{option}");
        for part in PARTS {
            assert!(out.contains(&format!("\nweft {part} ")), "no {part}: {out}");
        }
    }
    for part in PARTS {
        let (out, errors, code) = texts(&run(weft().args([part, "--help"]), b""));
        assert_eq!((errors.as_str(), code), ("", Some(0)), "{part}");
        assert!(out.contains(&format!("Usage: weft {part} ")), "{part}: {out}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_and_no_crash() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for words in [
        &["--version"][..],
        &["server", "--help"],
        &["tune"],
        &["tune", "--json"],
        &["tune", "--config"],
        &["top", "--once", "-p", &port],
        &["bench", "-p", &port, "-n", "10"],
        &["cli", "-p", &port, "ping"],
    ] {
        for stream in ["out", "both"] {
            let mut command = weft();
            command.args(words).stdin(Stdio::null()).stdout(full());
            let errors = if stream == "out" { Stdio::piped() } else { full().into() };
            let output = command.stderr(errors).spawn().unwrap().wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?} {stream}: {errors}");
            assert!(!errors.contains("panicked"), "{words:?}: {errors}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.rdb");
    std::fs::write(&file, rdb_without_keys()).unwrap();
    for what in ["rdb", "aof"] {
        let check = || {
            let mut command = weft();
            command.args(["check", what]).arg(&file).stderr(Stdio::piped());
            command
        };
        let output = check().stdout(full()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{what}: {errors}");
        assert!(errors.starts_with("cannot print: No space left"), "{what}: {errors}");
        // A closed pipe is no error, and the file was intact.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = check().stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{what}");
    }
    // The output has no reader.
    let output = weft().arg("nothing").stderr(full()).status().unwrap();
    assert_eq!(output.code(), Some(1));
}

/// An RDB file of version 12 without a checksum.
fn rdb_without_keys() -> Vec<u8> {
    [&b"REDIS0012\xff"[..], &[0; 8]].concat()
}

#[test]
fn a_file_is_still_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cfg"), "nonsense 1\n").unwrap();
    let by_name = run(weft().arg("cfg").current_dir(folder.path()), b"");
    let (_, errors, code) = texts(&by_name);
    assert_eq!(code, Some(1));
    assert!(errors.contains("nonsense"), "{errors}");
    let served = output_of_server(folder.path(), &["cfg"]);
    assert_eq!(texts(&served), texts(&by_name));
}

#[test]
fn a_help_that_cannot_be_printed_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = weft().arg("--help").stdout(full).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot print") && output.status.code() == Some(1), "{errors}");
}
