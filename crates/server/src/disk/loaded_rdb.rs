//! The result of loading an RDB file: keys that were loaded, data that were left out, or the reason
//! why loading failed.

use std::collections::BTreeMap;
use std::fmt;

use persist::{Error, ModuleId};

/// Bytes of the file's own metadata that are kept at most.
const AUX_MAX: usize = 64;
const AUX_BYTES_MAX: usize = 1024;
/// Bytes of a key's name that an error shows.
const KEY_BYTES_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct LoadedRdb {
    pub keys: u64,
    /// Keys that had expired, and hashes of which all fields had.
    pub expired: u64,
    /// Keys whose collections have no elements, as old servers wrote them.
    pub empty: u64,
    /// The sources of libraries of functions, which are for the caller to load.
    pub functions: Vec<Vec<u8>>,
    /// The metadata of the file.
    pub aux: Vec<(String, String)>,
    /// Modules whose data were left out, and how many keys of each.
    pub modules: BTreeMap<ModuleId, u64>,
    /// Bytes of the file: the rest of the source begins there.
    pub bytes: u64,
    /// The version of the format.
    pub version: u16,
    /// Keys that were added to each database, for the server's counts.
    pub db_keys: Vec<i64>,
}

impl LoadedRdb {
    /// The metadata under a name.
    pub fn aux(&self, name: &str) -> Option<&str> {
        self.aux.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn note_aux(&mut self, name: &[u8], value: &[u8]) {
        if self.aux.len() < AUX_MAX && name.len() + value.len() <= AUX_BYTES_MAX {
            let [name, value] = [name, value].map(|text| String::from_utf8_lossy(text).into());
            self.aux.push((name, value));
        }
    }

    /// Whether data were left out that a save of the keyspace lacks. Keys that had expired or have
    /// no elements are none.
    pub fn is_partial(&self) -> bool {
        !self.modules.is_empty()
    }
}

#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read or is damaged, about there.
    File(u64, Error),
    /// Data of a module at this offset, of a key or not.
    Module {
        module: ModuleId,
        key: Option<Vec<u8>>,
        offset: u64,
    },
    /// A key that is there twice, or was there before.
    Duplicate(Vec<u8>),
    /// A database that the server does not have.
    Database(u64),
    Cancelled,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(offset, error) => write!(f, "about byte {offset}: {error}"),
            // In the words of Redis, with the place.
            Self::Module { module, key: Some(key), offset } => write!(
                f,
                "the key '{}' at byte {offset} contains module data I can't load: no matching \
                 module type {module}",
                key[..key.len().min(KEY_BYTES_MAX)].escape_ascii()
            ),
            Self::Module { module, key: None, offset } => write!(
                f,
                "at byte {offset} it contains AUX module data I can't load: no matching module \
                 {module}"
            ),
            Self::Duplicate(key) => {
                write!(f, "the key '{}' is there twice", String::from_utf8_lossy(key))
            }
            Self::Database(number) => write!(
                f,
                "it has keys in database {number}, and the server has fewer databases (see \
                 'databases')"
            ),
            Self::Cancelled => f.write_str("loading was ended"),
        }
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    /// The error with what can be done about it. `check` is the command that checks the file.
    pub fn with_remedy(&self, check: &str) -> String {
        match self {
            Self::File(_, Error::Source(_)) | Self::Database(_) | Self::Cancelled => {
                self.to_string()
            }
            Self::File(..) | Self::Duplicate(_) => {
                format!("{self}. '{check}' shows the damage and what can be saved")
            }
            Self::Module { .. } => format!(
                "{self}. With 'rdb-load-unknown skip' the server leaves such data out, and keeps \
                 the file"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: &LoadError, wanted: &str) {
        assert_eq!(error.with_remedy("weft check rdb /data/dump.rdb"), wanted);
    }

    #[test]
    fn an_error_names_its_place_and_the_remedy() {
        let module = ModuleId(0xb5eb_2dfa_dca9_7803);
        check(
            &LoadError::Module { module, key: Some(b"doc:1\n".to_vec()), offset: 99 },
            "the key 'doc:1\\n' at byte 99 contains module data I can't load: no matching module \
             type 'test-type' (encoding version 3). With 'rdb-load-unknown skip' the server leaves \
             such data out, and keeps the file",
        );
        check(
            &LoadError::Module { module, key: None, offset: 9 },
            "at byte 9 it contains AUX module data I can't load: no matching module 'test-type' \
             (encoding version 3). With 'rdb-load-unknown skip' the server leaves such data out, \
             and keeps the file",
        );
        check(
            &LoadError::File(7, Error::End),
            "about byte 7: the data ends too early. 'weft check rdb /data/dump.rdb' shows the \
             damage and what can be saved",
        );
        check(&LoadError::Cancelled, "loading was ended");
    }
}
