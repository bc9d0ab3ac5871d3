//! The `weft` binary that belongs to the running test: the one in the folder of the same build
//! profile. `cargo test` of the workspace has just built it; when only another package is tested,
//! the binary may be missing or older than its sources, and is then built here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Set by Cargo for the tests of the package with the binary.
const OF_CARGO: &str = "CARGO_BIN_EXE_weft";

/// The folder of the running build profile, as in `target/debug`.
pub fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    // Test executables are in `target/<profile>/deps`.
    let folder = test.parent().and_then(Path::parent);
    folder.expect("a test executable is two folders below target").to_path_buf()
}

/// The path of the `weft` binary, which is built first when it is missing or stale.
///
/// # Panics
/// When it does not build.
pub fn weft_program() -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(find_or_build).display().to_string()
}

/// The `weft` binary as a command without arguments.
pub fn weft() -> Command {
    Command::new(weft_program())
}

fn find_or_build() -> PathBuf {
    if let Some(path) = std::env::var_os(OF_CARGO) {
        return path.into();
    }
    let folder = profile_folder();
    let binary = folder.join(format!("weft{}", std::env::consts::EXE_SUFFIX));
    // Two test executables that start at once must not both find the binary half written.
    let lock = File::create(folder.join("weft.test-lock")).expect("the target folder is writable");
    lock.lock().expect("the target folder supports file locks");
    if is_stale(&binary, &folder.join("weft.d")) {
        build(&folder);
    }
    assert!(binary.exists(), "cargo build -p weft leaves {}", binary.display());
    binary
}

/// Whether a source in Cargo's dep-info file is newer than the binary.
fn is_stale(binary: &Path, dep_info: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|facts| facts.modified());
    let (Ok(built), Ok(rule)) = (modified(binary), fs::read_to_string(dep_info)) else {
        return true;
    };
    let sources = rule.split_once(": ").map_or("", |(_, sources)| sources);
    // A source that is gone counts as changed. Spaces in paths are escaped and split here, which
    // costs such a checkout a needless `cargo build` that does nothing.
    sources.split_whitespace().any(|source| modified(Path::new(source)).map_or(true, |t| t > built))
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--package", "weft", "--profile", profile])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "cargo build -p weft failed");
}
