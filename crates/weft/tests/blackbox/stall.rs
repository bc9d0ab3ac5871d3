//! `weft bench stall` against this build's server, with few elements.

use std::fs;
use std::process::Stdio;

use serde_json::Value as Json;
use test_support::{eventually, output_of, send_signal, weft};
use tools::bench::stall::table::TABLE;

/// The option that lets the bench start a server with some options.
fn server(options: &str) -> String {
    let program = env!("CARGO_BIN_EXE_weft");
    format!("--server=weft={program} server --port {{port}} --bind 127.0.0.1 {options}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Measures rows with few elements: all, or those in `rows`.
fn measure(rows: &[&str]) -> Vec<Json> {
    let options = server("--io-threads 3 --io-threads-execute all");
    let args =
        ["bench", "stall", "--json", "--subject", "weft", "--size", "1000", "--repeats", "1"];
    let output = output_of(weft().args(args).args(rows).arg(options));
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn threads(line: &Json) -> u64 {
    line["servers"][0]["threads"].as_u64().unwrap()
}

fn replies(line: &Json, place: &str) -> u64 {
    line["servers"][0][place]["replies"].as_u64().unwrap_or(0)
}

/// Whether one request was sent in at least each millisecond of the measured time. A busy machine
/// sends fewer.
fn has_all_requests(line: &Json) -> bool {
    replies(line, "same_thread") + replies(line, "other_threads") >= 200 * threads(line)
}

#[test]
fn every_slow_command_has_victims_on_each_thread() {
    let mut lines = measure(&[]);
    assert_eq!(lines.len(), TABLE.len());
    for (line, row) in lines.iter_mut().zip(TABLE) {
        eventually("all requests are sent", || {
            let has_all = has_all_requests(line);
            if !has_all {
                *line = measure(&["-t", row.name]).remove(0);
            }
            has_all
        });
        let server = &line["servers"][0];
        assert_eq!(line["row"], row.name);
        assert_eq!(server["error"], Json::Null, "{}", row.name);
        let everywhere = row.crowd.is_some_and(|crowd| crowd.measured);
        let busy = if everywhere { usize::MAX } else { row.commands.len() };
        let threads = usize::try_from(threads(line)).unwrap();
        assert_eq!(replies(line, "same_thread") > 0, busy > 0, "{}", row.name);
        assert_eq!(replies(line, "other_threads") > 0, busy < threads, "{}", row.name);
        assert!(server["command_ms"].as_f64().unwrap() > 0.0, "{}", row.name);
    }
    assert!(lines.iter().all(|line| threads(line) > 1), "{lines:?}");
}

#[test]
fn an_error_reply_is_shown_and_fails() {
    let options = server("--proto-max-bulk-len 1mb");
    let args = ["bench", "stall", "--markdown", "--subject", "weft", "--size", "10000"];
    let output =
        output_of(weft().args(args).args(["--repeats", "1", "-t", "get-big"]).arg(options));
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success(), "{out}");
    assert!(errors.contains("1 measurement failed"), "{errors}");
    assert!(out.contains("get-big on weft: FAILED: the server refused the fill"), "{out}");
    let row = out.lines().find(|line| line.contains("GET of a value")).unwrap();
    assert!(row.contains("failed") && !row.contains('.'), "{row}");
}

#[test]
fn an_interrupted_measurement_prints_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let program = env!("CARGO_BIN_EXE_weft");
    let script = folder.path().join("server.sh");
    let run = format!("echo >> {}; exec {program} server \"$@\"", starts.display());
    fs::write(&script, run).unwrap();
    let option = format!("--server=weft=sh {} --port {{port}}", script.display());
    let mut command = weft();
    command.args(["bench", "stall", "-t", "keys,smembers", "--size", "100", "--repeats", "100000"]);
    command.args(["--duration", "2"]).arg(option);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // The second row begins.
    let begun = || fs::read_to_string(&starts).is_ok_and(|text| text.lines().count() >= 2);
    eventually("the second server starts", begun);
    send_signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("interrupted after 1 of 3 rows"), "{errors}");
    assert!(out.contains("| no slow command ") && !out.contains("KEYS"), "{out}");
}
