//! Finds a toolchain, and installs packages of other projects in `target/clients/<name>` until a
//! source, a manifest or a tool changes.
//!
//! Without the toolchain the tests are skipped, with a line that says so. With `CI=true` they fail.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{printed, profile_folder};

/// A program that an installation needs.
pub struct Tool {
    /// The command that prints its version.
    pub version: &'static [&'static str],
    /// The oldest version, major and minor, that the client library supports.
    pub at_least: (u32, u32),
}

/// Runs `install` in `target/clients/<name>` unless the folder already has its result for the same
/// tools and the same contents of `inputs`, and returns the folder. Returns `None` if a tool is
/// missing and the tests must be skipped.
pub fn prepare(
    name: &str,
    tools: &[Tool],
    inputs: &[PathBuf],
    install: impl FnOnce(&Path),
) -> Option<PathBuf> {
    let install = |folder: &Path| {
        install(folder);
        Ok(())
    };
    try_prepare(name, tools, inputs, install)
}

/// As [`prepare`]; returns `None` too if the installation fails.
pub(crate) fn try_prepare(
    name: &str,
    tools: &[Tool],
    inputs: &[PathBuf],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Option<PathBuf> {
    let mut stamp = String::new();
    for tool in tools {
        match installed_version(tool) {
            Ok(version) => stamp.push_str(&version),
            Err(reason) => return skip(name, &reason),
        }
    }
    for input in inputs {
        let text = fs::read_to_string(input);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", input.display()));
        stamp.push_str(&format!("\n== {}\n{text}", input.display()));
    }
    let target = profile_folder();
    let folder = target.parent().unwrap_or(&target).join("clients").join(name);
    fs::create_dir_all(&folder).expect("the target folder is writable");
    let lock = File::create(folder.join("lock")).expect("the target folder is writable");
    lock.lock().expect("the target folder supports file locks");
    let stamp_file = folder.join("stamp");
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Some(folder);
    }
    // An installation that fails leaves no stamp, so the next test installs again.
    let _ = fs::remove_file(&stamp_file);
    if let Err(reason) = install(&folder) {
        return skip(name, &reason);
    }
    fs::write(&stamp_file, stamp).expect("the target folder is writable");
    Some(folder)
}

/// Runs one step of an installation, and shows its output only if it fails.
pub fn install_step(command: &mut Command) {
    try_step(command).unwrap_or_else(|reason| panic!("{reason}"));
}

/// Runs one step of an installation.
pub(crate) fn try_step(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, printed(&output)))
}

/// The text that the tool prints as its version, or the reason why it cannot be used.
fn installed_version(tool: &Tool) -> Result<String, String> {
    let probe = tool.version.join(" ");
    let (name, arguments) = tool.version.split_first().expect("a tool has a command");
    let text = match Command::new(name).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr)
        }
        _ => return Err(format!("`{probe}` does not run; is it installed?")),
    };
    match first_version(&text) {
        Some(found) if found >= tool.at_least => Ok(text),
        Some((major, minor)) => {
            let (least, part) = tool.at_least;
            Err(format!("`{probe}` prints {major}.{minor}, but the tests need {least}.{part}"))
        }
        None => Err(format!("`{probe}` prints no version")),
    }
}

/// The version in a text such as `go version go1.26.8 linux/amd64`: the first number with a dot,
/// or, as in `javac 21`, the first number.
fn first_version(text: &str) -> Option<(u32, u32)> {
    let words = || text.split(|c: char| !c.is_ascii_digit() && c != '.');
    let dotted = words().filter_map(|word| word.split_once('.')).find_map(|(major, rest)| {
        let minor = rest.split('.').next().unwrap_or(rest);
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    dotted.or_else(|| words().find_map(|word| Some((word.parse().ok()?, 0))))
}

pub(crate) fn skip<T>(name: &str, reason: &str) -> Option<T> {
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("{name} cannot be tested: {reason}");
    }
    // Directly to stderr, because the test runner hides what a passing test prints, and in one
    // write, because tests run concurrently.
    let line = format!("skipped {name}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    None
}

#[cfg(test)]
mod tests {
    use super::first_version;

    #[test]
    fn finds_the_version_in_a_tools_output() {
        assert_eq!(first_version("Python 3.11.7\n"), Some((3, 11)));
        assert_eq!(first_version("v20.20.2"), Some((20, 20)));
        assert_eq!(first_version("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(first_version("openjdk version \"17.0.15\" 2025-04-15"), Some((17, 0)));
        assert_eq!(first_version("openjdk version \"21\" 2023-09-19"), Some((21, 0)));
        assert_eq!(first_version("no number. here"), None);
    }
}
