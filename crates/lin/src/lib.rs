//! Linearizability: every operation takes effect at one moment between its call and its return,
//! and transactions and scripts are operations like all others.
//!
//! ```text
//! generate.go, profiles.go     random operations on few keys, by 8 to 64 connections in groups
//!      |
//! session.go  <- faults.go     sends them, and records calls, returns and replies by one clock
//!      |                       (a planted fault stands between it and the server)
//! history.go                   the operations of a group of connections
//!      |
//! check.go    <- model.go      Porcupine looks for an order that a server without concurrency
//!                              allows, and shortens a violation
//! ```
//!
//! The program in `go/` does all of this, because the checker, [Porcupine], is a Go module. One
//! table there defines the effect of each command. This crate builds and starts the program.
//!
//! Two questions stay open, so that no correct server fails: whether an operation took effect whose
//! connection was cut, and whether a key is gone within 20 ms of its expiry. Durability and
//! commands about the server and its connections are not tested.
//!
//! [Porcupine]: https://github.com/anishathalye/porcupine
#![forbid(unsafe_code)]

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The sources of the program.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");

/// The oldest Go, 1.21: from then on, Go fetches the newer toolchain that a `go.mod` asks for.
const GO_MINOR_MIN: u32 = 21;

/// The built program.
#[derive(Debug)]
pub struct Checker {
    program: PathBuf,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An order explains every history, except histories that could not be decided in time.
    Linearizable,
    /// No order explains a history. The program printed it.
    Violation,
    /// The server did not answer, or the arguments are wrong. The program printed why.
    NotTested,
}

/// Why the program was not built.
#[derive(Debug)]
pub enum BuildError {
    /// Go is not installed, or too old.
    NoGo,
    /// `go` failed with this output.
    Failed(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGo => write!(f, "Go 1.{GO_MINOR_MIN} or newer is not installed"),
            Self::Failed(output) => f.write_str(output),
        }
    }
}

impl Checker {
    /// Builds the program into Cargo's target folder `target`, with caches of its own. Without
    /// changes, this takes a moment.
    ///
    /// # Errors
    /// When Go is missing, or the program does not build.
    pub fn build(target: &Path) -> Result<Self, BuildError> {
        let folder = target.join("lin");
        fs::create_dir_all(&folder).map_err(|e| BuildError::Failed(e.to_string()))?;
        let program = folder.join("lin");
        // Writable modules, so that `cargo clean` can remove them.
        let args = ["build", "-modcacherw", "-buildvcs=false", "-o"];
        go(target, |go| go.args(args).arg(&program).arg("."))?;
        Ok(Self { program })
    }

    /// The command that tests the server at `HOST:PORT`. It ends after `-operations N` or
    /// `-seconds S`; `-help` prints all arguments.
    pub fn command(&self, address: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-address", address]);
        command
    }

    /// One line for each kind of history, `profile NAME`, and for each fault,
    /// `fault NAME: DESCRIPTION`.
    ///
    /// # Errors
    /// When the program does not run.
    pub fn names(&self) -> std::io::Result<String> {
        let output = Command::new(&self.program).arg("-list").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Verdict {
    /// The verdict in the program's exit status.
    pub fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(0) => Self::Linearizable,
            Some(1) => Self::Violation,
            _ => Self::NotTested,
        }
    }
}

/// Runs the program's own tests, with the caches in Cargo's target folder `target`.
///
/// # Errors
/// When Go is missing, or a test fails.
pub fn test_program(target: &Path) -> Result<(), BuildError> {
    go(target, |go| go.args(["test", "-modcacherw", "."]))
}

/// Runs `go` on the sources. It shares its caches with the Go client in `clients-test`, since
/// most of their contents are Go's library.
fn go(target: &Path, args: impl FnOnce(&mut Command) -> &mut Command) -> Result<(), BuildError> {
    if go_minor().is_none_or(|minor| minor < GO_MINOR_MIN) {
        return Err(BuildError::NoGo);
    }
    let caches = target.join("clients").join("go");
    let mut command = Command::new("go");
    command.current_dir(SOURCES);
    command.env("GOPATH", caches.join("path"));
    command.env("GOMODCACHE", caches.join("modules"));
    command.env("GOCACHE", caches.join("cache"));
    let output = args(&mut command).output().map_err(|e| BuildError::Failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(BuildError::Failed(String::from_utf8_lossy(&said).into_owned()))
}

/// The installed version of Go, `26` for `go version go1.26.8 linux/amd64`.
fn go_minor() -> Option<u32> {
    let output = Command::new("go").arg("version").output().ok()?;
    minor_of(&String::from_utf8_lossy(&output.stdout))
}

fn minor_of(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once(" go1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minor_of;

    #[test]
    fn the_version_of_go_is_read() {
        assert_eq!(minor_of("go version go1.26.8 linux/amd64\n"), Some(26));
        assert_eq!(minor_of("go version go1.19 linux/amd64\n"), Some(19));
        assert_eq!(minor_of("go: not a version"), None);
    }
}
