//! `weft cli` and `weft top` from outside, for scripts and for people.
//!
//! `cases.txt` holds command lines with their output, which is compared with redis-cli if it is
//! there. Cases that take time, fail or draw on a terminal have their own tests.

mod cases;
mod failures;
mod first_word;
mod modes;
mod terminal;
mod tls;
mod top;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use test_support::weft;

use crate::Server;

/// Runs a program with some input to its end.
fn run(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program without need for input may end before it reads any.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// `weft cli` in a folder that is also its home.
fn cli(folder: &Path) -> Command {
    let mut command = weft();
    command.arg("cli").current_dir(folder).env("HOME", folder).env_remove("REDISCLI_AUTH");
    command
}

/// The output of `weft cli` with these arguments and this input, and its exit code.
fn ask(server: &Server, args: &[&str], input: &str) -> (String, String, Option<i32>) {
    let mut command = cli(server.folder());
    command.args(["-p", &server.port.to_string()]).args(args);
    texts(&run(&mut command, input.as_bytes()))
}

fn texts(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}
