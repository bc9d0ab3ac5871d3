//! A first word of `weft` that is nothing: the parts of weft are listed.

use crate::server::{run_to_end, weft};
use crate::{run, texts};

#[test]
fn an_unknown_part_lists_the_parts() {
    let folder = tempfile::tempdir().unwrap();
    for word in ["tpo", "redis.conf", "folder/weft.conf", ""] {
        let output = run(weft().arg(word).current_dir(folder.path()), b"");
        let (out, errors, code) = texts(&output);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{word}: {errors}");
        assert!(errors.starts_with(&format!("'{word}' is neither")), "{errors}");
        for part in ["server", "cli", "bench", "report", "check"] {
            assert!(errors.contains(&format!("weft {part} ")), "no {part}: {errors}");
        }
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
