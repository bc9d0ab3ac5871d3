//! The files with the settings of a host, below a root folder.
//!
//! The root is `/`, or a folder in which a test has made files of the same names. The results of
//! the checks depend only on these files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A host, described by its files.
#[derive(Debug)]
pub struct HostFiles {
    root: PathBuf,
    /// The folder of the process in `/proc`, such as `self`.
    process: String,
}

impl HostFiles {
    /// The host below `root`. Limits are those of the process `pid`, or of this one without it.
    pub fn new(root: &Path, pid: Option<u32>) -> Self {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        Self { root: root.to_owned(), process }
    }

    /// The path of a file below the root.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The contents of a file without blanks at the end; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.place(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// The number in a file.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    /// The contents of a file of the process, such as `status`.
    pub fn of_process(&self, name: &str) -> Option<String> {
        self.read(&format!("/proc/{}/{name}", self.process))
    }

    /// The sorted names in a folder; empty without the folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether a file or folder exists.
    pub fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Writes into an existing file of the kernel.
    pub fn set(&self, path: &str, value: &str) -> io::Result<()> {
        use std::io::Write;
        // In one call, because for the kernel each write is a whole value.
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.place(path))?
            .write_all(value.as_bytes())
    }

    /// Replaces a configuration file.
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

/// The chosen word of a list such as `always [madvise] never`, or the only word.
pub fn chosen(list: &str) -> &str {
    let in_brackets = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    in_brackets.map_or(list.trim(), |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use crate::tune::host::chosen;

    #[test]
    fn the_chosen_word_is_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("never\n"), "never");
    }
}
