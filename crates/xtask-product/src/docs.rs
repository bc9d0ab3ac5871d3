//! `cargo xtask docs`: the documents that are derived from tables in the source.
//!
//! `docs/commands.md` comes from the rows of all commands, `docs/configuration.md`, `weft.conf` and
//! `deploy/weft.conf` from those of the configuration. They are not edited by hand: `cargo xtask
//! rows` and `--check` refuse a file that differs from its tables. `cargo doc` makes the pages of
//! Rustdoc, and this command does not.

use std::path::Path;

use node::config::Machine;
use xtask::Failure;

mod commands;
mod compared;
mod configuration;

/// One generated file.
pub struct Document {
    /// From the workspace root.
    pub path: &'static str,
    /// Makes its whole text.
    pub text: fn() -> String,
}

/// Every generated file.
pub const DOCUMENTS: &[Document] = &[
    Document { path: "docs/commands.md", text: || commands::page(node::table()) },
    Document { path: "docs/configuration.md", text: configuration::page },
    Document { path: "weft.conf", text: node::config::sample },
    Document { path: "deploy/weft.conf", text: deployed },
];

/// The machine that `deploy/terraform` requests: c6i.4xlarge.
const DEPLOYED: Machine = Machine { processors: 16, memory_bytes: 32 << 30 };

fn deployed() -> String {
    let text = "# Made by `cargo xtask docs` for a machine of the size of c6i.4xlarge. `weft tune \
                --config`\n# prints such a file for the machine that it runs on.\n#\n";
    match DEPLOYED.config() {
        Ok(config) => format!("{text}{config}"),
        Err(error) => error.to_string(),
    }
}

/// The options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// Write nothing, and fail when a file differs from its tables
    #[arg(long)]
    check: bool,
}

/// Writes the documents that changed, or names those that would.
///
/// # Errors
/// Fails when a file cannot be written, and with `--check` when one is stale.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let mut stale = Vec::new();
    for Document { path, text } in DOCUMENTS {
        let (file, wanted) = (root.join(path), text());
        // A file that cannot be read counts as changed: writing it reports the cause.
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
