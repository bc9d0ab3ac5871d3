//! Files written whole or not at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::{Builder, PersistError};

/// The permissions of a new file, before the umask.
const NEW_FILE_MODE: u32 = 0o666;
/// The permissions of a file that replaces another, until it gets the other's.
const PRIVATE_MODE: u32 = 0o600;

/// The device and the number there: the identity of a file while it exists.
pub type FileNumber = (u64, u64);

/// The identity of a file.
pub fn number_of(file: &Metadata) -> FileNumber {
    (file.dev(), file.ino())
}

/// The system's words for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Replaces a file's content: readers see the old or the new text, also after a crash. The text is
/// written to a new file in the same folder, under an unpredictable name.
///
/// # Errors
/// The error of the file system; the old file is then untouched.
pub fn replace(path: &str, text: &[u8]) -> io::Result<()> {
    let target = Path::new(path);
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let old = fs::metadata(target).ok();
    let mode = if old.is_some() { PRIVATE_MODE } else { NEW_FILE_MODE };
    let mut new = Builder::new()
        .prefix(".weft-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    if let Some(old) = old {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.write_all(text)?;
    new.as_file().sync_all()?;
    new.persist(target).map_err(|PersistError { error, .. }| error)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.acl");
        let text = path.to_string_lossy();
        replace(&text, b"one").unwrap();
        // After the umask, the owner can read and write it, and it is never executable.
        assert_eq!(mode(&path) & 0o711, 0o600);
        for wanted in [0o640, 0o444] {
            fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
            replace(&text, b"two").unwrap();
            assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), wanted));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        let missing = folder.path().join("nosuch/users.acl");
        let error = replace(&missing.to_string_lossy(), b"x").unwrap_err();
        assert_eq!(reason(&error), "No such file or directory");
    }

    #[test]
    fn a_link_in_the_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let guess = folder.path().join(format!(".weft-{}.tmp", std::process::id()));
        symlink(&victim, guess).unwrap();
        let path = folder.path().join("users.acl");
        replace(&path.to_string_lossy(), b"text").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"text");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }
}
