//! The files by which a host tells its settings and takes new ones, below a root folder.
//!
//! The root is `/`, or a folder in which a test has laid out files of the same names. Nothing else
//! of the host is looked at, so what the checks say depends on these files alone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A host as its files describe it.
#[derive(Debug)]
pub struct HostFiles {
    root: PathBuf,
    /// The folder of the process in `/proc`, such as `self`.
    process: String,
}

impl HostFiles {
    /// The host below `root`. Limits are those of the process `pid`, or else of this one.
    pub fn new(root: &Path, pid: Option<u32>) -> Self {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        Self { root: root.to_owned(), process }
    }

    /// Where the file of an absolute path is.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The contents of a file without blanks at the end; None when it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.place(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// The number that a file holds.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    /// The contents of a file of the process, such as `status`.
    pub fn of_process(&self, name: &str) -> Option<String> {
        self.read(&format!("/proc/{}/{name}", self.process))
    }

    /// The names in a folder, in order; none when there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether there is a file or folder of that path.
    pub fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Writes into a file of the kernel, which must be there.
    ///
    /// # Errors
    /// What the system says.
    pub fn set(&self, path: &str, value: &str) -> io::Result<()> {
        use std::io::Write;
        // One call: the kernel takes each write for a whole value.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.place(path))?
            .write_all(value.as_bytes())
    }

    /// Replaces a file of the configuration as a whole.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(&self, path: &str, text: &str) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.place(path);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// The word of a list such as `always [madvise] never` that is chosen, or the only word.
pub fn chosen(list: &str) -> &str {
    let in_brackets = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    in_brackets.map_or(list.trim(), |(word, _)| word)
}

/// Processors of a list such as `0-3,8`.
pub fn processors(list: &str) -> Vec<usize> {
    let mut all = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
        else {
            continue;
        };
        // No machine has more, and a damaged list must not fill the memory.
        all.extend((first..=last).take(PROCESSORS_MAX));
    }
    all
}

/// The most processors of one range.
const PROCESSORS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use crate::tune::host::{chosen, processors};

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(processors("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(processors("5"), [5]);
        assert!(processors("").is_empty());
        assert_eq!(processors("x,2,3-y"), [2]);
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("never\n"), "never");
    }
}
