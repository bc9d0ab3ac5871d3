//! The rules of style, and the parts that all commands of the project share.
//!
//! This crate does not depend on the product, so that `cargo xtask tidy` and the hook that runs it
//! build in seconds. Commands that read the product's tables are in `xtask-product`.
#![forbid(unsafe_code)]

use std::path::PathBuf;

pub mod tidy;

/// The reason for a failure, as a sentence for the user of the command.
pub type Failure = String;

/// The nearest folder upwards whose manifest opens a workspace, so that a command works from any
/// folder inside.
///
/// # Errors
/// When there is no such folder.
pub fn workspace_root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    here.ancestors()
        .find(|dir| {
            std::fs::read_to_string(dir.join("Cargo.toml"))
                .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[workspace]"))
        })
        .map(PathBuf::from)
        .ok_or_else(|| format!("{} is not inside the workspace", here.display()))
}
