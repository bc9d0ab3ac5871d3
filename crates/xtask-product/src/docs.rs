//! `cargo xtask docs`: the documents that are derived from tables in the source.
//!
//! `docs/commands.md` comes from the rows of all commands, `weft.conf` from those of the
//! configuration. Nobody edits them: tidy refuses a committed one that is not what the tables give,
//! as `--check` does. Rustdoc's pages are another matter, and cargo's.

use std::path::Path;

use xtask::Failure;

mod commands;

/// One generated file.
pub struct Document {
    /// From the workspace root.
    pub path: &'static str,
    /// What makes the whole of it.
    pub text: fn() -> String,
}

/// Every generated file.
pub const DOCUMENTS: &[Document] = &[
    Document { path: "docs/commands.md", text: || commands::page(node::table()) },
    Document { path: "weft.conf", text: node::config::sample },
];

/// How to run docs.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing, and fail when a file is not what the tables give
    #[arg(long)]
    check: bool,
}

/// Writes the documents that changed, or says which would.
///
/// # Errors
/// Fails when a file cannot be written, and with `--check` when one is stale.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let mut stale = Vec::new();
    for Document { path, text } in DOCUMENTS {
        let (file, wanted) = (root.join(path), text());
        // One that cannot be read is written anew, and writing says what is wrong with it.
        if std::fs::read_to_string(&file).is_ok_and(|current| current == wanted) {
            continue;
        }
        stale.push(*path);
        if options.check {
            continue;
        }
        let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| std::fs::write(&file, wanted)).map_err(|e| format!("{path}: {e}"))?;
        println!("wrote {path}");
    }
    match (options.check, stale.is_empty()) {
        (true, false) => Err(format!("stale: {}; run `cargo xtask docs`", stale.join(", "))),
        _ => Ok(()),
    }
}
