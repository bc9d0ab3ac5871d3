//! A first word of `weft` that is nothing: the parts of weft are listed.

use crate::server::{run_to_end, weft};
use crate::{run, texts};

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
fn a_file_is_still_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cfg"), "nonsense 1\n").unwrap();
    let by_name = run(weft().arg("cfg").current_dir(folder.path()), b"");
    let (_, errors, code) = texts(&by_name);
    assert_eq!(code, Some(1));
    assert!(errors.contains("nonsense"), "{errors}");
    let served = run_to_end(folder.path(), &["cfg"]);
    assert_eq!(texts(&served), texts(&by_name));
}
