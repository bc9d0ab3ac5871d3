//! The servers that `weft report` and `weft bench compare` start: none outlives its parent, and an
//! interrupt from a terminal reaches only the parent.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use tempfile::TempDir;
use test_support::{eventually, send_signal, weft};

/// The command line of this build's server.
fn started() -> String {
    let line = shlex::try_join([env!("CARGO_BIN_EXE_weft"), "server", "--save", ""]).unwrap();
    format!("weft={line} --port {{port}} --dir {{dir}}")
}

/// The options of a report whose first window takes longer than a test.
fn report(folder: &TempDir) -> Vec<String> {
    let page = folder.path().join("page.html").to_string_lossy().into_owned();
    let words = "report --only operations --keys 100 --threads 1 --duration 100 -o";
    let words = words.split(' ').map(str::to_owned);
    words.chain([page, "--server".into(), started()]).collect()
}

fn compare() -> Vec<String> {
    let words = "bench compare -t get --keys 100 --rounds 1000 --duration 0.3 --warm-up 0 --server";
    words.split(' ').map(str::to_owned).chain([started()]).collect()
}

/// The state and the parent of a process; `None` after its end.
fn state_of(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn has_ended(pid: u32) -> bool {
    // An ended process may stay as a zombie of the process that inherits it.
    state_of(pid).is_none_or(|(state, _)| state == 'Z')
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|pid| state_of(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// Starts it, and returns when one of its two servers is measured while the other one is paused.
fn begun(words: &[String]) -> (Child, Vec<u32>) {
    begun_with(words, &std::env::temp_dir())
}

/// The same with this folder for temporary files.
fn begun_with(words: &[String], temporary: &Path) -> (Child, Vec<u32>) {
    // The test runner may ignore SIGHUP.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_weft")]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("TMPDIR", temporary);
    let child = command.spawn().unwrap();
    let mut servers = Vec::new();
    eventually("a server is measured", || {
        servers = children_of(child.id());
        let is_paused = |pid: &&u32| state_of(**pid).is_some_and(|(state, _)| state == 'T');
        servers.len() == 2 && servers.iter().filter(is_paused).count() == 1
    });
    (child, servers)
}

#[track_caller]
fn all_end(mut child: Child, servers: &[u32]) -> Option<i32> {
    eventually("it ends", || child.try_wait().unwrap().is_some());
    eventually("its servers end", || servers.iter().all(|server| has_ended(*server)));
    child.wait().unwrap().code()
}

#[test]
fn a_signal_ends_a_comparison_and_its_servers() {
    for signal in ["TERM", "HUP", "INT"] {
        let (child, servers) = begun(&compare());
        send_signal(child.id(), signal);
        assert_eq!(all_end(child, &servers), Some(130), "{signal}");
    }
}

#[test]
fn a_second_signal_ends_a_report_and_its_servers_at_once() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut child, servers) = begun_with(&report(&folder), temporary.path());
        // Each of its servers has a folder.
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 2);
        // The first signal continues the window. Two signals may become one.
        eventually("it ends", || {
            send_signal(child.id(), signal);
            child.try_wait().unwrap().is_some()
        });
        assert_eq!(all_end(child, &servers), Some(status));
        assert!(!folder.path().join("page.html").exists());
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{signal}");
    }
}

#[test]
fn servers_end_with_a_report_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (child, servers) = begun(&report(&folder));
    send_signal(child.id(), "KILL");
    assert_eq!(all_end(child, &servers), None);
}

#[test]
fn ctrl_c_leaves_a_comparison_its_results() {
    let size = PtySize { rows: 10, cols: 200, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(weft().get_program());
    command.args(compare());
    command.cwd(Path::new("/"));
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let (mut shown, mut bytes, mut is_sent) = (String::new(), [0; 4096], false);
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        if shown.contains("get x1 3 ") && !is_sent {
            pair.master.take_writer().unwrap().write_all(b"\x03").unwrap();
            is_sent = true;
        }
    }
    assert_eq!(child.wait().unwrap().exit_code(), 130, "{shown}");
    assert!(shown.contains("requests/s") && shown.contains("interrupted"), "{shown}");
}
