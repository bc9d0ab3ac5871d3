//! The report of a stack overflow: this program runs itself, and crashes.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

const LOG: &str = "WEFT_TEST_CRASH_LOG";
const PROTECTED: &str = "WEFT_TEST_CRASH_PROTECTED";
/// `SIGSEGV`.
const SEGMENTATION_FAULT: i32 = 11;

/// Uses up the stack.
#[expect(unconditional_recursion, reason = "this is how a stack overflows")]
fn overflow(depth: u64) -> u64 {
    let bytes = black_box([depth; 64]);
    overflow(depth + 1) + bytes[depth as usize % 64]
}

/// Crashes if the environment says so, and otherwise does nothing.
#[test]
fn child() {
    let Some(log) = std::env::var_os(LOG) else { return };
    sys::crash::prepare(log.to_str().unwrap(), "head\n".to_owned(), "tail\n".to_owned()).unwrap();
    sys::crash::enable(true);
    let is_protected = std::env::var_os(PROTECTED).is_some();
    let work = move || {
        if is_protected {
            sys::crash::protect_thread();
            sys::crash::protect_thread();
        }
        overflow(0)
    };
    let thread = std::thread::Builder::new().name("deep".to_owned()).spawn(work);
    black_box(thread.unwrap().join().unwrap());
}

fn report(log: &Path, is_protected: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child"]).env(LOG, log);
    if is_protected {
        command.env(PROTECTED, "yes");
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), Some(SEGMENTATION_FAULT), "{output:?}");
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn the_report_of_a_stack_overflow_has_frames() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(&folder.path().join("log"), true);
    assert!(report.starts_with("head\n") && report.ends_with("tail\n"), "{report}");
    for words in ["crashed by signal: 11 (SIGSEGV)", "Thread: deep (", "has overflowed"] {
        assert!(report.contains(words), "no {words:?}: {report}");
    }
    let frames = report.lines().find_map(|line| line.strip_prefix("Frames: ")).unwrap();
    assert!(frames.split(' ').count() > 20, "{report}");
}

#[test]
fn a_thread_without_a_stack_for_handlers_has_a_shorter_report() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(&folder.path().join("log"), false);
    assert!(report.contains("crashed by signal: 11 (SIGSEGV)"), "{report}");
    assert!(report.contains("Thread: deep (") && report.ends_with("tail\n"), "{report}");
}
