//! `weft bench` with every workload on few keys against this build's server, and the results of
//! comparisons that fail or are interrupted.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use test_support::{eventually, output_of, send_signal, weft};
use tools::load::workload::Workload;
use tools::load::workload::table::TABLE;

use crate::{Client, Server, Value};

/// The largest number of workloads whose output fits into a pipe.
const ROWS_AT_ONCE: usize = 20;

/// Whether the server has the first command of each of the row's requests.
fn is_known(row: &Workload, client: &mut Client) -> bool {
    let requests = [row.read, row.write, row.prepare].into_iter().flatten();
    let mut names = requests.filter_map(|request| request.split_whitespace().next());
    names.all(|name| client.ask(&format!("COMMAND INFO {name}")).items() != [Value::NULL_ARRAY])
}

#[test]
fn every_workload_runs_without_an_error_or_is_unknown() {
    let server = Server::start(&["--io-threads", "1"]);
    let (port, mut client) = (server.port.to_string(), server.client());
    let load = ["-n", "200", "--keys", "50", "--warm-up", "0", "--prefill"];
    for rows in TABLE.chunks(ROWS_AT_ONCE) {
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let mut command = weft();
        command.args(["bench", "--json", "-p", &port, "-t", &names.join(",")]).args(load);
        let output = output_of(&mut command);
        let (out, errors) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
        let (out, errors) = (out.unwrap(), errors.unwrap());
        let shown: Vec<Json> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(shown.len(), rows.len(), "{errors}");
        let mut all_known = true;
        for (row, shown) in rows.iter().zip(shown) {
            assert_eq!(shown["workload"], row.name);
            if is_known(row, &mut client) {
                assert_eq!(shown["first_error"], "", "{shown}");
                assert_eq!(shown["aborted_per_request"], 0.0, "{shown}");
                assert!(shown["requests"].as_u64().unwrap() >= 200, "{shown}");
            } else {
                all_known = false;
                assert!(shown.to_string().contains("ERR unknown command"), "{shown}");
            }
        }
        assert_eq!(output.status.success(), all_known, "{errors}");
    }
}

/// The option that has the bench start a server, which leaves a line in `starts`.
fn noted_server(folder: &Path, starts: &Path) -> String {
    let (script, program) = (folder.join("server.sh"), env!("CARGO_BIN_EXE_weft"));
    let run = format!("echo >> {}; exec {program} server \"$@\"", starts.display());
    fs::write(&script, run).unwrap();
    format!("--server=weft=sh {} --port {{port}}", script.display())
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts a bench, checks its status, and returns its output.
fn interrupted(child: Child, signal: &str) -> String {
    send_signal(child.id(), signal);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_comparison_goes_on_after_a_case_that_fails() {
    let (server, other) = (Server::start(&["--maxmemory", "1"]), Server::start(&[]));
    let at = [("weft", &server), ("other", &other)]
        .map(|(name, server)| format!("--at={name}=127.0.0.1:{}", server.port));
    for form in [&[][..], &["--markdown"], &["--json"]] {
        let mut command = weft();
        command.args(["bench", "compare", "--subject", "weft", "--no-floor"]).args(&at);
        command.args(["-t", "ping,set,echo", "--rounds", "1", "--duration", "0.05"]).args(form);
        let output = output_of(&mut command);
        let out = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("1 measurement failed"), "{errors}");
        if form == ["--json"] {
            let lines: Json = serde_json::from_str(&out).unwrap();
            for (line, name) in lines.as_array().unwrap().iter().zip(["ping", "set", "echo"]) {
                assert_eq!(line["workload"], name);
                let (failed, measured) = (&line["servers"][0], &line["servers"][1]);
                assert!(measured["error"].is_null() && measured["p99_us"].is_f64(), "{line}");
                assert_eq!(failed["error"].to_string().contains("OOM"), name == "set", "{line}");
                assert_eq!(failed["p99_us"].is_null(), name == "set", "{line}");
            }
        } else {
            assert_eq!(out.matches("set, pipeline 1 on weft: FAILED: ").count(), 1, "{out}");
            assert_eq!(out.matches("OOM").count(), 1, "{out}");
            assert!(out.contains("ping, pipeline 1") && out.contains("echo, pipeline 1"), "{out}");
        }
    }
}

#[test]
fn runs_that_find_no_key_say_so_in_every_text() {
    let server = Server::start(&["--io-threads", "1"]);
    let port = server.port.to_string();
    let load = ["-t", "get", "-n", "200", "--warm-up", "0"];
    for (more, note) in [
        (&[][..], "100.0 nulls per 100 replies"),
        (&["--run-count", "2"], "100.0 nulls per 100 replies"),
        (&["-q"], ", 100.0% NULLS"),
    ] {
        let output = output_of(weft().args(["bench", "-p", &port]).args(load).args(more));
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains(note), "{out}");
    }
}

/// A comparison of two running servers with these words.
fn comparison(a: &Server, b: &Server, words: &[&str]) -> (String, Option<i32>) {
    let at =
        [("a", a), ("b", b)].map(|(name, server)| format!("--at={name}=127.0.0.1:{}", server.port));
    let mut command = weft();
    command.args(["bench", "compare", "--no-floor", "--rounds", "1", "--duration", "0.05"]);
    let output = output_of(command.args(&at).args(words));
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn a_peer_that_lacks_an_option_is_no_failure_and_one_without_memory_is() {
    let (full, other) = (Server::start(&["--maxmemory", "1"]), Server::start(&[]));
    for more in [&[][..], &["--subject", "b"]] {
        let words = [&["-t", "set"], more].concat();
        let (out, code) = comparison(&full, &other, &words);
        assert!(out.contains("set, pipeline 1 on a: FAILED: "), "{out}");
        assert!(out.contains("OOM") && code == Some(1), "{out}");
    }
    let command = ["--command", "SET __key__ __data__ NOSUCH"];
    for (more, code, word) in [(&[][..], 1, "FAILED"), (&["--subject", "b"], 1, "not supported")] {
        let (out, found) = comparison(&other, &other, &[&command, more].concat());
        assert!(out.contains(&format!(" on a: {word}: ")), "{out}");
        assert!(out.contains("syntax error") && found == Some(code), "{out}");
    }
}

#[test]
fn an_unwritable_output_is_found_before_the_measurement() {
    let (server, folder) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let (port, missing) = (server.port.to_string(), folder.path().join("missing/file"));
    let at = format!("--at=weft=127.0.0.1:{port}");
    let bench = ["bench", "-p", &port, "-n", "10", "-t", "ping"];
    let comparison = ["bench", "compare", &at, "-n", "10", "-t", "ping", "--rounds", "1"];
    let cases = [(&bench[..], "--html"), (&bench, "--json-out-file"), (&comparison, "--html")];
    for (words, option) in cases {
        for (path, reason) in [(&*missing, "no such folder"), (folder.path(), "is a folder")] {
            let output = output_of(weft().args(words).arg(option).arg(path));
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{errors}");
            assert!(errors.contains(reason), "{errors}");
        }
    }
}

/// A bench whose output has no reader or cannot be written.
fn unheard(out: Stdio, words: &[&str]) -> (String, Option<i32>) {
    let child = weft().args(words).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn results_reach_their_files_without_a_terminal() {
    let (server, folder) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let (port, at) = (server.port.to_string(), format!("--at=weft=127.0.0.1:{}", server.port));
    let file = folder.path().join("results");
    let path = file.to_str().unwrap();
    let one = ["bench", "-p", &port, "-n", "10", "-t", "ping,echo", "--json-out-file", path];
    let several = [&one[..], &["--run-count", "2"]].concat();
    let compared =
        ["bench", "compare", "--no-floor", &at, "-n", "10", "-t", "ping", "--rounds", "1"];
    let compared = [&compared[..], &["--html", path]].concat();
    for (words, of_pipe, of_disk) in
        [(&one[..], "echo", "ping"), (&several, "echo", "ping"), (&compared, "ping", "ping")]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        for (out, name, status) in
            [(Stdio::from(writer), of_pipe, 0), (Stdio::from(full), of_disk, 1)]
        {
            fs::write(&file, "before").unwrap();
            let (errors, code) = unheard(out, words);
            assert_eq!(code, Some(status), "{words:?}: {errors}");
            assert_eq!(errors.contains("No space left"), status == 1, "{words:?}: {errors}");
            assert!(fs::read_to_string(&file).unwrap().contains(name), "{words:?}");
        }
    }
}

#[test]
fn the_reason_of_a_closed_connection_is_printed() {
    let few = Server::start(&["--maxclients", "20"]);
    let short = Server::start(&["--proto-max-bulk-len", "1mb"]);
    let (few, short) = (few.port.to_string(), short.port.to_string());
    let (full, long) = ("ERR max number of clients reached", "ERR Protocol error: invalid bulk");
    let set = ["-p", &short, "-t", "set", "-d", "3000000", "-r", "3", "-n", "9"];
    for (words, reason) in [
        (&["-p", &few, "-t", "ping", "-c", "30", "-n", "1000000"][..], full),
        (&["-p", &few, "-t", "ping", "-c", "30", "--rps", "1000", "--warm-up", "0"], full),
        (&["-p", &few, "-I", "-c", "30"], full),
        (&set, long),
        (&[&set[..], &["--prefill"]].concat(), long),
    ] {
        let output = output_of(weft().arg("bench").args(words));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains(reason), "{words:?}: {errors}");
        assert_eq!(output.status.code(), Some(1), "{words:?}: {errors}");
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(!out.contains("are open"), "{words:?}: {out}");
    }
}

#[test]
fn a_server_without_tls_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"-ERR Protocol error: unbalanced quotes in request\r\n");
    });
    let output = output_of(weft().args(["bench", "--tls", "--insecure", "-p", &port]));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("does the server speak TLS on that port?"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
    server.join().unwrap();
}

#[test]
fn an_endless_bench_ends_when_its_output_is_closed() {
    let (server, (reader, writer)) = (Server::start(&[]), std::io::pipe().unwrap());
    drop(reader);
    let words = ["bench", "-l", "-n", "10", "-t", "ping", "-p", &server.port.to_string()];
    assert_eq!(unheard(writer.into(), &words), (String::new(), Some(0)));
}

#[test]
fn where_nothing_is_measured_files_stay_as_they_are() {
    let (server, folder) = (Server::start(&["--maxmemory", "1"]), tempfile::tempdir().unwrap());
    let (port, at) = (server.port.to_string(), format!("--at=weft=127.0.0.1:{}", server.port));
    let file = folder.path().join("results");
    let path = file.to_str().unwrap();
    let words = ["-n", "10", "-t", "get", "--warm-up", "0"];
    for command in [
        &["bench", "-p", &port, "--prefill", "--json-out-file", path][..],
        &["bench", "-p", &port, "--prefill", "--html", path],
    ] {
        fs::write(&file, "before").unwrap();
        let output = output_of(weft().args(command).args(words));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("OOM") && output.status.code() == Some(1), "{errors}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "before", "{command:?}");
    }
    // A row of failures is a result of a comparison.
    let command = ["bench", "compare", "--no-floor", "--rounds", "1", &at, "--html", path];
    let output = output_of(weft().args(command).args(words));
    assert_eq!(output.status.code(), Some(1));
    assert!(fs::read_to_string(&file).unwrap().contains("OOM"));
}

#[test]
fn a_preset_that_fails_does_not_keep_the_next_from_being_measured() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let peer = bin.join("redis-server");
    fs::write(&peer, "#!/bin/sh\necho no luck\nexit 1\n").unwrap();
    fs::set_permissions(&peer, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = weft();
    command.args(["bench", "preset", "append-only", "threads", "--peers"]).arg(folder.path());
    let output = output_of(&mut command);
    let (out, errors) = (String::from_utf8(output.stdout).unwrap(), output.stderr);
    let errors = String::from_utf8(errors).unwrap();
    assert!(out.contains("SET with an append-only file") && out.contains("Threads on"), "{out}");
    assert_eq!(errors.matches("no luck").count(), 2, "{errors}");
    assert!(errors.contains("2 measurements failed"), "{errors}");
    assert_eq!(output.status.code(), Some(1), "{errors}");
}

#[test]
fn a_shown_preset_names_certificates_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = weft();
    command.args(["bench", "preset", "tls", "--show"]).env("TMPDIR", folder.path());
    let out = String::from_utf8(output_of(&mut command).stdout).unwrap();
    let (_, file) = out.split_once("--cacert ").unwrap();
    assert!(Path::new(file.split_whitespace().next().unwrap()).is_file(), "{out}");
}

#[test]
fn an_interruption_is_heard_while_a_server_does_not_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let child = spawn(weft().args(["bench", "-t", "ping", "-p", &port]));
    let (mut stream, _) = listener.accept().unwrap();
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    let since = Instant::now();
    assert_eq!(interrupted(child, "INT"), "");
    // Less than the time after which the server counts as lost.
    assert!(since.elapsed() < Duration::from_secs(15));
}

#[test]
fn an_interrupt_keeps_earlier_figures_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = weft();
    command.args(["bench", "memory", "--figures", "connections,idle", "--connections", "1"]);
    command.args(["--clients", "1", "--duration", "600"]).env("TMPDIR", &temporary);
    let child = spawn(command.arg(noted_server(folder.path(), &starts)));
    let begun = || fs::read_to_string(&starts).is_ok_and(|text| text.lines().count() >= 2);
    eventually("the second figure begins", begun);
    let out = interrupted(child, "INT");
    assert!(out.contains("bytes/idle connection") && !out.contains("idle CPU"), "{out}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
