//! `weft report`: pages about running servers and servers that it starts, and its failures.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use roxmltree::{Document, ParsingOptions};
use serde_json::Value as Json;
use tempfile::TempDir;
use test_support::{output_of, send_signal, weft};

use crate::Server;

/// The status after an interrupt.
const INTERRUPTED: i32 = 130;

/// A report with few keys and short windows.
fn report(folder: &TempDir, options: &[&str]) -> Command {
    let mut command = weft();
    command.args(["report", "--keys", "100", "--threads", "1"]).args(options);
    command.arg("-o").arg(page_in(folder));
    command
}

fn page_in(folder: &TempDir) -> PathBuf {
    folder.path().join("page.html")
}

fn running(server: &Server) -> String {
    format!("weft=127.0.0.1:{}", server.port)
}

/// The command line of this build's server.
fn started() -> String {
    let program = env!("CARGO_BIN_EXE_weft");
    let words = [program, "server", "--save", ""];
    let line = shlex::try_join(words).unwrap();
    format!("weft={line} --port {{port}} --dir {{dir}}")
}

/// Runs `read` on a page, which must be well-formed.
fn read_page<T>(page: &Path, read: impl FnOnce(&Document<'_>) -> T) -> T {
    let html = std::fs::read_to_string(page).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    read(&Document::parse_with_options(&html, options).unwrap())
}

/// The figures in a page.
fn data_of(page: &Path) -> Json {
    read_page(page, |document| {
        let mut scripts = document.descendants().filter(|node| node.has_tag_name("script"));
        serde_json::from_str(scripts.next().unwrap().text().unwrap()).unwrap()
    })
}

/// Series, label and value of every mark in the plots of a page.
fn marks_of(page: &Path) -> Vec<(String, String, f64)> {
    read_page(page, |document| {
        let marks = document.descendants().filter(|node| node.has_attribute("data-value"));
        let mark = |node: roxmltree::Node<'_, '_>| {
            let read = |name| node.attribute(name).unwrap().to_owned();
            (read("data-series"), read("data-label"), read("data-value").parse().unwrap())
        };
        marks.map(mark).collect()
    })
}

/// Experiment, series and label of each point, with the servers of the point.
fn points(data: &Json) -> Vec<(String, Vec<Json>)> {
    let mut points = Vec::new();
    for experiment in data["experiments"].as_array().unwrap() {
        for point in experiment["points"].as_array().unwrap() {
            let words = [&experiment["experiment"], &point["series"], &point["label"]];
            let place = words.map(|word| word.as_str().unwrap().to_owned()).join(" ");
            points.push((place, point["servers"].as_array().unwrap().clone()));
        }
    }
    points
}

#[test]
fn a_page_shows_the_measurements() {
    let (server, folder) = (Server::start(&["--io-threads", "1"]), tempfile::tempdir().unwrap());
    let server = running(&server);
    let options = ["--connect", &server, "--only", "clients,pipelining,threads"];
    let extent = ["--iterations", "2", "--duration", "0.03"];
    let output = output_of(report(&folder, &options).args(extent));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = data_of(&page_in(&folder));
    let mut marks = marks_of(&page_in(&folder));
    for (place, servers) in points(&data) {
        // A server that the report did not start has no start to measure.
        let expected: &[&str] = if place.starts_with("threads") { &[] } else { &["weft", "floor"] };
        let names: Vec<&str> =
            servers.iter().map(|server| server["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{place}");
        for server in servers {
            assert_eq!(server["failure"], Json::Null, "{place}: {server}");
            assert_eq!(server["windows"].as_array().unwrap().len(), 2, "{place}: {server}");
            let rate = server["requests_per_second"].as_f64().unwrap();
            let (name, label) =
                (server["name"].as_str().unwrap(), place.rsplit(' ').next().unwrap());
            let found = marks.iter().position(|mark| {
                (mark.0.as_str(), mark.1.as_str()) == (name, label)
                    && (mark.2 - rate).abs() <= 1e-9 * rate
            });
            marks.swap_remove(found.unwrap_or_else(|| panic!("{place}: no {name} {rate}")));
        }
    }
    assert_eq!(marks, []);
    let markdown = std::fs::read_to_string(page_in(&folder).with_extension("md")).unwrap();
    for words in ["# Report on weft\n", "## Scaling with clients", "weft answers at most"] {
        assert!(markdown.contains(words), "no {words:?} in:\n{markdown}");
    }
}

#[test]
fn started_servers_take_part_in_all_experiments() {
    let (server, folder) = (started(), tempfile::tempdir().unwrap());
    let options = ["--server", &server, "--no-floor", "--iterations", "1", "--duration", "0.05"];
    let output = output_of(&mut report(&folder, &options));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = data_of(&page_in(&folder));
    let points = points(&data);
    assert_eq!(points.len(), 4 + 10 + 4 + 16 + 3 + 6 + 8 + 4 + 3);
    for (place, servers) in points {
        assert_eq!(servers.len(), 1, "{place}");
        assert_eq!(servers[0]["failure"], Json::Null, "{place}");
        let has_io = servers[0]["threads"].to_string().contains("weft-io-");
        assert!(!has_io || !place.starts_with("threads") || !place.ends_with(" 1"), "{place}");
    }
    assert!(data["servers"][0]["version"].as_str().unwrap().starts_with("Weft "), "{data}");
}

#[test]
fn impossible_measurements_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let check = |options: &[&str], expected: &str| {
        let output = output_of(&mut report(&folder, options));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{options:?}");
        assert!(errors.contains(expected), "{options:?}: {errors}");
        assert!(!page_in(&folder).exists(), "{options:?}");
    };
    check(&["--server", "false"], "'false' is not NAME=COMMAND");
    check(&["--server", "x=false"], "x did not start: it ended");
    check(&["--server", "x=/nowhere/at all"], "x did not start: No such file");
    check(&["--server", "x=a", "--server", "x=b"], "two servers are called 'x'");
    check(&["--connect", "x=127.0.0.1:1"], "cannot connect to 127.0.0.1:1");
    check(&["--connect", "x=127.0.0.1"], "'x=127.0.0.1' is not NAME=HOST:PORT");
    check(&["--only", "nothing"], "invalid value 'nothing'");
    check(&["--duration", "0"], "a window has at least");
    let protected = Server::start(&["--requirepass", "secret"]);
    check(&["--connect", &running(&protected)], "NOAUTH");
    let nowhere = output_of(weft().args(["report", "-o", "/nowhere/page.html"]));
    let errors = String::from_utf8_lossy(&nowhere.stderr).into_owned();
    assert!(!nowhere.status.success() && errors.contains("cannot write /nowhere"), "{errors}");
    // A folder that is not writable is noticed before the measurement.
    let args = ["report", "--connect", "x=127.0.0.1:1", "-o", "/proc/page.html"];
    let refused = output_of(weft().args(args));
    let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(errors.contains("cannot write /proc/page.html"), "{errors}");
}

#[test]
fn a_file_that_is_no_report_is_replaced_only_by_its_name() {
    let (server, folder) = (Server::start(&["--io-threads", "1"]), tempfile::tempdir().unwrap());
    let server = running(&server);
    let extent = ["--no-floor", "--only", "pipelining", "--iterations", "1", "--duration", "0.01"];
    let run = |files: &[&str]| {
        let mut command = weft();
        command.args(["report", "--keys", "10", "--threads", "1", "--connect", &server]);
        let output = output_of(command.args(extent).args(files).current_dir(&folder));
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let path = |name: &str| folder.path().join(name);
    let refused = |files: &[&str], expected: &str| {
        let (success, errors) = run(files);
        assert!(!success && errors.contains(expected), "{files:?}: {errors}");
    };
    for name in ["page.html", "page.md", "weft-report.html"] {
        std::fs::write(path(name), "notes").unwrap();
    }
    refused(&["-o", "page.html"], "page.md exists and is no report, so it is not replaced");
    refused(&[], "weft-report.html exists and is no report, so it is not replaced");
    refused(&["-o", "other.md"], "other.md would be the page and its Markdown");
    refused(&["-o", "other.md", "--markdown", "./other.md"], "would be the page and its Markdown");
    refused(&["-o", "."], ". is a folder");
    // A pipe is not read.
    let made = std::process::Command::new("mkfifo").arg(path("pipe.md")).status().unwrap();
    assert!(made.success());
    refused(&["-o", "pipe.html"], "pipe.md exists and is no report");
    for name in ["page.html", "page.md", "weft-report.html"] {
        assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "notes", "{name}");
    }
    // Both are named, and both are reports afterwards.
    let written = |files: &[&str]| {
        let (success, errors) = run(files);
        assert!(success, "{files:?}: {errors}");
    };
    written(&["-o", "page.html", "--markdown", "page.md"]);
    assert!(std::fs::read_to_string(path("page.md")).unwrap().starts_with("# Report on weft\n"));
    written(&["-o", "page.html"]);
    std::fs::rename(path("page.html"), path("weft-report.html")).unwrap();
    written(&[]);
}

/// Starts a report of two experiments, and returns when the second one runs.
fn half_done(folder: &TempDir, server: &Server) -> Child {
    let server = running(server);
    let options = ["--connect", &server, "--only", "operations,clients", "--no-floor"];
    let extent = ["--iterations", "1", "--duration", "0.4"];
    let mut command = report(folder, &options);
    command.args(extent).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("2 of 2: ")));
    child
}

#[test]
fn an_interrupt_leaves_the_results_so_far() {
    let (server, folder) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let mut child = half_done(&folder, &server);
    send_signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(INTERRUPTED));
    let data = data_of(&page_in(&folder));
    assert_eq!(data["is_interrupted"], true);
    let points = points(&data);
    let measured = |name: &str| {
        let of = points.iter().filter(|(place, _)| place.starts_with(name));
        of.filter(|(_, servers)| !servers.is_empty()).count()
    };
    assert_eq!(measured("operations"), 4);
    assert!(measured("clients") < 10, "{}", measured("clients"));
}

#[test]
fn a_server_that_dies_is_reported_next_to_the_results() {
    let (mut server, folder) = (Server::start(&[]), tempfile::tempdir().unwrap());
    let mut child = half_done(&folder, &server);
    server.signal("KILL");
    server.wait();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let data = data_of(&page_in(&folder));
    let points = points(&data);
    for (place, servers) in &points {
        assert_eq!(servers.len(), 1, "{place}");
        let (failed, windows) = (!servers[0]["failure"].is_null(), &servers[0]["windows"]);
        assert_eq!(windows.as_array().unwrap().is_empty(), failed, "{place}: {servers:?}");
        assert!(!(failed && place.starts_with("operations")), "{place}");
    }
    assert!(points.iter().any(|(_, servers)| !servers[0]["failure"].is_null()));
    let markdown = std::fs::read_to_string(page_in(&folder).with_extension("md")).unwrap();
    assert!(markdown.contains("> **Note:** Not measured"), "{markdown}");
}

#[test]
fn a_terminal_shows_the_time_left_and_ends_it_with_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let size = PtySize { rows: 10, cols: 200, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let options = ["--server", &started(), "--only", "operations,clients", "--no-floor"];
    let mut plain = report(&folder, &options);
    plain.args(["--iterations", "1", "--duration", "0.4"]);
    let mut command = CommandBuilder::new(plain.get_program());
    command.args(plain.get_args());
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let (mut shown, mut bytes, mut is_sent) = (String::new(), [0; 4096], false);
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if shown.contains(" left, Scaling with clients") && !is_sent {
            pair.master.take_writer().unwrap().write_all(b"\x03").unwrap();
            is_sent = true;
        }
    }
    assert_eq!(child.wait().unwrap().exit_code(), INTERRUPTED as u32, "{shown}");
    assert!(shown.contains("the page has the results so far") && is_sent, "{shown}");
    let data = data_of(&page_in(&folder));
    assert_eq!(data["is_interrupted"], true);
    for (place, servers) in points(&data) {
        assert!(!servers.iter().any(|server| !server["failure"].is_null()), "{place}: {servers:?}");
        assert!(place.starts_with("clients") || servers.len() == 1, "{place}");
    }
}
