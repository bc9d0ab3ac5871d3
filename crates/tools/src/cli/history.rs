//! The history of commands, in the file of redis-cli with one command a line.
//!
//! A command with a password is kept until the client ends and never written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most commands in the file.
const LINES_MAX: usize = 1000;

/// The most bytes that are read of the file.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Parameters with passwords or user names.
const SECRET_PARAMETERS: [&str; 7] = [
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "requirepass",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
];

/// The file of the history, if there is one.
#[derive(Debug)]
pub struct History {
    path: Option<PathBuf>,
}

impl History {
    /// The file that the environment names, or the one in the home folder.
    pub fn of_environment() -> Self {
        Self { path: dotfile("REDISCLI_HISTFILE", ".rediscli_history") }
    }

    /// The commands of the file, the oldest first. A file that is too long is shortened.
    pub fn load(&self) -> Vec<String> {
        let Some(path) = &self.path else { return Vec::new() };
        let bytes = tail(path, BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let kept = &lines[lines.len().saturating_sub(LINES_MAX)..];
        if kept.len() < lines.len() {
            let _ = fs::write(path, kept.join("\n") + "\n");
        }
        kept.iter().map(|line| (*line).to_owned()).collect()
    }

    /// Writes a command to the file. A failure is ignored.
    pub fn append(&self, line: &str) {
        let Some(path) = &self.path else { return };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// The file that a variable names, or else one in the home folder. `None` if it is /dev/null or
/// another file that is not regular, since it may have no end.
pub fn dotfile(variable: &str, name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty());
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty());
    regular(match named {
        Some(path) => path.into(),
        None => PathBuf::from(home()?).join(name),
    })
}

/// The path, unless a file there is not regular.
fn regular(path: PathBuf) -> Option<PathBuf> {
    fs::metadata(&path).map_or(true, |found| found.is_file()).then_some(path)
}

/// The end of a file, of this many bytes at most, from the beginning of a line.
fn tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(bytes_max);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    if skipped > 0 {
        let line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..line);
    }
    Ok(bytes)
}

/// Whether a command may contain a password or a user name.
pub fn is_secret(words: &[Vec<u8>]) -> bool {
    let words: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["auth", ..] => true,
        ["acl", "setuser" | "deluser" | "getuser", ..] => true,
        ["config", "set", pairs @ ..] => {
            pairs.iter().step_by(2).any(|name| SECRET_PARAMETERS.contains(name))
        }
        ["hello", rest @ ..] => rest.contains(&"auth"),
        ["migrate", rest @ ..] => {
            let options = rest.get(5..).unwrap_or_default();
            let end = options.iter().position(|word| *word == "keys").unwrap_or(options.len());
            options[..end].iter().any(|word| matches!(*word, "auth" | "auth2"))
        }
        ["sentinel", "config", "set", "sentinel-pass" | "sentinel-user", ..] => true,
        ["sentinel", "set", _, "auth-pass" | "auth-user", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        assert_eq!(regular(file.clone()), Some(file.clone()));
        fs::write(&file, "first\nsecond\nthird\n").unwrap();
        assert_eq!(regular(file.clone()), Some(file.clone()));
        assert_eq!(tail(&file, 100).unwrap(), b"first\nsecond\nthird\n");
        assert_eq!(tail(&file, 9).unwrap(), b"third\n");
        assert_eq!(tail(&file, 3).unwrap(), b"");
        for other in ["/dev/null", "/dev/full", "/"] {
            assert_eq!(regular(other.into()), None, "{other}");
        }
    }

    #[test]
    fn passwords_are_secret() {
        let cases = [
            ("AUTH x", true),
            ("acl setuser a on >p", true),
            ("acl list", false),
            ("config set maxmemory 1 requirepass x", true),
            ("config set PrimaryAuth x", true),
            ("config set save x primaryuser y", true),
            ("config set save requirepass", false),
            ("config get requirepass", false),
            ("hello 3 auth a b", true),
            ("hello 3", false),
            ("migrate h 1 k 0 9 auth p", true),
            ("migrate h 1 k 0 9 copy keys auth", false),
            ("sentinel set m auth-pass p", true),
            ("get auth", false),
        ];
        for (line, expected) in cases {
            let words: Vec<Vec<u8>> =
                line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(is_secret(&words), expected, "{line}");
        }
    }
}
