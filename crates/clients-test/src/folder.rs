//! A temporary folder that is removed on drop. Its path is short, because the path of a unix socket
//! has at most 107 bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder of this process, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes an empty folder under the system's temporary one.
    pub fn new() -> Folder {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weft-{}-{number}", process::id()));
        // A folder of this name was left by a dead process with the same process id.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of `name` in it, as text.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
