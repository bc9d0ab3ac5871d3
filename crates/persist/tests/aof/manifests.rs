//! Valid and invalid manifests.

use persist::aof::manifest::{LINE_BYTES_MAX, Manifest, ManifestFault};
use persist::aof::{FileType, LogId, ManifestEntry};

fn check(text: &str, wanted: Result<&str, (usize, ManifestFault)>) {
    check_bytes(text.as_bytes(), wanted);
}

/// Checks that a manifest is valid and has this normal form, or that a line has this fault.
fn check_bytes(text: &[u8], wanted: Result<&str, (usize, ManifestFault)>) {
    let shown = String::from_utf8_lossy(text);
    match (Manifest::parse(text), wanted) {
        (Ok(manifest), Ok(normal)) => {
            assert_eq!(String::from_utf8_lossy(&manifest.write()), normal, "{shown}");
            assert_eq!(Manifest::parse(&manifest.write()).unwrap_or_default(), manifest);
        }
        (Err(error), Err((line, fault))) => {
            assert_eq!((error.line, error.fault), (line, fault), "{shown}");
            assert_eq!(error.to_string().contains("at line"), line > 0);
        }
        (found, _) => panic!("{shown}: {found:?}"),
    }
}

#[test]
fn manifests_of_servers_are_valid() {
    let whole = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                 file appendonly.aof.1.incr.aof seq 1 type h\n\
                 file appendonly.aof.2.incr.aof seq 2 type i startoffset 7 endoffset 12\n\
                 file appendonly.aof.3.incr.aof seq 3 type i startoffset 0\n";
    check(whole, Ok(whole));
    // In any order, and with additions of later versions.
    check(
        "# a comment\nfile i seq 1 type i\nseq 1 new thing file b type base\r\n#\n",
        Ok("file b seq 1 type b\nfile i seq 1 type i\n"),
    );
    check("  FILE a\tSEQ 1 Type i  \n", Ok("file a seq 1 type i\n"));
    check("file a seq 1 type i file b\n\n", Err((2, ManifestFault::Format)));
    check("file a seq 1 type i startoffset -1\n", Ok("file a seq 1 type i\n"));
    check("file a seq 007x type i\n", Ok("file a seq 7 type i\n"));
    check("file a file b seq 2 type i\n", Ok("file b seq 2 type i\n"));
    check("# nothing\n", Ok(""));
}

#[test]
fn names_are_quoted() {
    check("file \"a b\" seq 1 type b\n", Ok("file \"a b\" seq 1 type b\n"));
    check("file 'a b' seq 1 type b\n", Ok("file \"a b\" seq 1 type b\n"));
    check("file \"\\x41\\\"\\xff\" seq 1 type b\n", Ok("file \"A\\\"\\xff\" seq 1 type b\n"));
    check("file \"a'b\" seq 1 type b\n", Ok("file \"a'b\" seq 1 type b\n"));
    let entry = ManifestEntry::new(b"\xe4 \"'\\\r\n\t".to_vec(), 9, FileType::Base);
    // A name with a backslash is refused.
    let manifest = Manifest { base: Some(entry), ..Manifest::default() };
    assert_eq!(Manifest::parse(&manifest.write()).unwrap_err().fault, ManifestFault::Path);
}

#[test]
fn invalid_manifests_are_refused() {
    check("", Err((0, ManifestFault::Empty)));
    for line in [
        "\n",
        " \n",
        "file a\n",
        "file a seq 1\n",
        "file a seq 1 type\n",
        "x y z w v u\n",
        "file a seq 1 type b x\n",
        "file a seq 0 type b\n",
        "file a seq x type b\n",
        "file a seq -1 type b\n",
        "file a seq 99999999999999999999 type b\n",
        "file \"\" seq 1 type b\n",
        "file a seq 1 type \"\"\n",
        "file \"a seq 1 type b\n",
        "file \"a\"b seq 1 type b\n",
        "file .. seq 1 type b\n",
        "file \"a\\x00\" seq 1 type b\n",
    ] {
        check(line, Err((1, ManifestFault::Format)));
        check(&format!("# first\n{line}"), Err((2, ManifestFault::Format)));
    }
    check("file a seq 1 type b", Err((1, ManifestFault::LongLine)));
    check("file a seq 1 type b\0\n", Err((1, ManifestFault::LongLine)));
    check("file a/b seq 1 type b\n", Err((1, ManifestFault::Path)));
    check("file a\\b seq 1 type b\n", Err((1, ManifestFault::Path)));
    check("file a seq 1 type x\n", Err((1, ManifestFault::Type)));
    check("file a seq 1 type b\nfile b seq 2 type b\n", Err((2, ManifestFault::TwoBases)));
    check("file a seq 2 type i\nfile b seq 2 type i\n", Err((2, ManifestFault::Order)));
    check("file a seq 2 type i\nfile b seq 1 type i\n", Err((2, ManifestFault::Order)));
    check_bytes(b"file \xff seq 1 type b\n", Ok("file \"\\xff\" seq 1 type b\n"));
}

#[test]
fn lines_have_a_limit() {
    let line = |len: usize| {
        let rest = "file  seq 1 type b\n";
        format!("file {} seq 1 type b\n", "a".repeat(len - rest.len()))
    };
    assert!(Manifest::parse(line(LINE_BYTES_MAX).as_bytes()).is_ok());
    check(&line(LINE_BYTES_MAX + 1), Err((1, ManifestFault::LongLine)));
    // The rest of a comment beyond the limit is a line of its own.
    let comment = format!("#{}\n", "x".repeat(LINE_BYTES_MAX));
    check(&comment, Err((2, ManifestFault::Format)));
}

#[test]
fn a_manifest_that_was_changed_is_refused_until_its_seal_is_removed() {
    let entry = ManifestEntry::new(b"a".to_vec(), 7, FileType::Base);
    let log = Some(LogId([1, u64::MAX]));
    let manifest = Manifest { base: Some(entry), log, ..Manifest::default() };
    let sealed = String::from_utf8(manifest.sealed()).unwrap_or_default();
    assert_eq!(Manifest::parse(sealed.as_bytes()), Ok(manifest));
    let seal = " log 0000000000000001ffffffffffffffff checksum ";
    let (line, digits) = sealed.trim_end().split_once(seal).unwrap_or_default();
    assert!(line == "file a seq 7 type b" && digits.len() == 16, "{sealed}");
    check(&format!("{line}\n"), Ok("file a seq 7 type b\n"));
    // Without a checksum, changes are not noticed.
    let unsealed = sealed.replace(&format!(" checksum {digits}"), "");
    assert_eq!(Manifest::parse(unsealed.as_bytes()).map(|manifest| manifest.log), Ok(log));
    check(&sealed.replace("seq 7", "seq 5"), Err((1, ManifestFault::Checksum)));
    check(&sealed.replace("checksum", "chekcsum"), Err((1, ManifestFault::Checksum)));
    check(&sealed.replace("checksum", "Checksum"), Err((1, ManifestFault::Checksum)));
    check(&format!("# a comment\n{sealed}"), Err((2, ManifestFault::Checksum)));
    check(&format!("{sealed}file i seq 1 type i\n"), Err((1, ManifestFault::Checksum)));
    check(sealed.trim_end(), Err((1, ManifestFault::Checksum)));
    check(&format!("{}\n", &sealed[..sealed.len() - 2]), Err((1, ManifestFault::Checksum)));
}
