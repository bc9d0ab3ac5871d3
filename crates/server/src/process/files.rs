//! Files written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file's content: readers see the old or the new text, also after a crash.
///
/// # Errors
/// What the file system reports; the old file is then untouched.
pub fn replace(path: &str, text: &[u8]) -> io::Result<()> {
    let target = Path::new(path);
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = folder.join(format!(".weft-{}.tmp", std::process::id()));
    let written = (|| {
        let mut file = File::create(&new)?;
        if let Ok(old) = fs::metadata(target) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, target)?;
        File::open(folder)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
