//! The history of commands: the file that redis-cli keeps, one command a line.
//!
//! What holds a password is remembered until the client ends and never written.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Commands that a file keeps.
const LINES_MAX: usize = 1000;

/// Parameters whose values are secret, or tell whose they are.
const SECRET_PARAMETERS: [&str; 7] = [
    "masterauth",
    "masteruser",
    "primaryauth",
    "primaryuser",
    "requirepass",
    "tls-key-file-pass",
    "tls-client-key-file-pass",
];

/// Where the history is kept, unless it is kept nowhere.
#[derive(Debug)]
pub struct History {
    path: Option<PathBuf>,
}

impl History {
    /// The file that the environment names, or the one in the home folder.
    pub fn of_environment() -> Self {
        Self { path: dotfile("REDISCLI_HISTFILE", ".rediscli_history") }
    }

    /// The commands of the file, the oldest first. A file that has become long is shortened.
    pub fn load(&self) -> Vec<String> {
        let Some(path) = &self.path else { return Vec::new() };
        let bytes = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let kept = &lines[lines.len().saturating_sub(LINES_MAX)..];
        if kept.len() < lines.len() {
            let _ = fs::write(path, kept.join("\n") + "\n");
        }
        kept.iter().map(|line| (*line).to_owned()).collect()
    }

    /// Writes a command to the file. Where that is impossible there is no history.
    pub fn append(&self, line: &str) {
        let Some(path) = &self.path else { return };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// The file that a variable names, none if that is /dev/null, or else one in the home folder.
pub fn dotfile(variable: &str, name: &str) -> Option<PathBuf> {
    match std::env::var_os(variable).filter(|path| !path.is_empty()) {
        Some(path) if path == "/dev/null" => None,
        Some(path) => Some(path.into()),
        None => {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            Some(PathBuf::from(home).join(name))
        }
    }
}

/// Whether a command may hold a password or say whose it is.
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
mod tests {
    use super::*;

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
