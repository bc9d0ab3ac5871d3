//! The servers that commands test: a running one, or a program, which is then started; and the
//! faults that are planted between them and the test.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{Launch, Server};

use xtask::Failure;

/// Where a server comes from.
pub enum Where {
    /// `HOST:PORT`.
    Address(String),
    /// A program and its first arguments.
    Program(Vec<String>),
}

impl Where {
    /// The server that an option names: a path has a slash, an address has none. Without the
    /// option, Weft with these arguments, built from this source.
    ///
    /// # Errors
    /// When Weft does not build.
    pub fn named(
        option: Option<&str>,
        arguments: &[&str],
        build: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<Self, Failure> {
        Ok(match option {
            Some(text) if text.contains('/') => Self::Program(vec![text.to_owned()]),
            Some(text) => Self::Address(text.to_owned()),
            None => {
                let program = build()?;
                let words = [&[&*program, "server"], arguments].concat();
                Self::Program(words.into_iter().map(str::to_owned).collect())
            }
        })
    }

    /// Its address, and the server if it was started, which ends when it is dropped.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self) -> Result<(String, Option<Server>), Failure> {
        match self {
            Self::Address(address) => Ok((address.clone(), None)),
            Self::Program(words) => {
                let server = launch(words).try_start()?;
                Ok((server.address().to_string(), Some(server)))
            }
        }
    }
}

/// A server about to start with these words; it saves nothing.
pub fn launch(words: &[String]) -> Launch<'static> {
    Launch::program(words.iter().map(String::as_str)).options(&["--appendonly", "no"])
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

/// The planted fault that an option names.
///
/// # Errors
/// Lists the names if it is none of them.
pub fn fault<F: Copy>(all: &[(&str, F)], name: &str) -> Result<F, String> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, fault)| *fault).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("the faults are {}", known.join(", "))
    })
}

/// A run must end without failures, or with some if a fault was planted.
///
/// # Errors
/// `failure`, or that the fault was not found.
pub fn verdict<F: Debug>(is_clean: bool, fault: Option<F>, failure: &str) -> Result<(), Failure> {
    match (is_clean, fault) {
        (true, None) | (false, Some(_)) => Ok(()),
        (true, Some(fault)) => Err(format!("{fault:?} was not found")),
        (false, None) => Err(failure.to_owned()),
    }
}
