//! The servers that commands test: a running one, or a program, which is then started.

use std::path::{Path, PathBuf};
use std::process::Command;

use tools::servers::pin::Cpus;
use tools::servers::target::{Role, ServerTarget, TargetOrigin};

use xtask::Failure;

/// Where a server comes from.
pub enum Where {
    /// `HOST:PORT`.
    Address(String),
    /// A program with arguments, in which a target fills in the port and the folder.
    Command(Vec<String>),
}

/// The server that an option names: a path has a slash, an address has none.
pub fn origin(text: &str) -> Where {
    match text.contains('/') {
        true => Where::Command(server_words(&[text])),
        false => Where::Address(text.to_owned()),
    }
}

/// A server that saves nothing, on a port and in a folder that the starter fills in.
pub fn server_words(program: &[&str]) -> Vec<String> {
    let rest = ["--port", "{port}", "--dir", "{dir}", "--save", "", "--appendonly", "no"];
    program.iter().chain(&rest).map(|word| (*word).to_owned()).collect()
}

/// A server that starts with this command.
pub fn target(name: &str, words: Vec<String>) -> ServerTarget {
    ServerTarget {
        name: name.to_owned(),
        role: Role::Peer,
        origin: TargetOrigin::Command(words),
        cpus: Cpus::default(),
        tls: None,
    }
}

/// Builds `weft` for release or development, and returns the path of the binary.
///
/// # Errors
/// When it does not build.
pub fn build(root: &Path, release: bool) -> Result<String, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--package", "weft"]).current_dir(root);
    if release {
        command.arg("--release");
    }
    let status = command.status().map_err(|e| format!("cargo did not start: {e}"))?;
    if !status.success() {
        return Err(format!("weft does not build: {status}"));
    }
    let profile = if release { "release" } else { "debug" };
    Ok(target_folder()?.join(profile).join("weft").display().to_string())
}

/// Cargo's target folder, which holds this program.
///
/// # Errors
/// When this program was moved out of it.
pub fn target_folder() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|e| format!("this program is nowhere: {e}"))?;
    let folder = own.ancestors().nth(2).ok_or("this program is in no target folder")?;
    Ok(folder.to_path_buf())
}
