//! The names of the files, which are those of Redis.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest
//!               appendonly.aof.2.base.rdb          or .aof
//!               appendonly.aof.5.incr.aof
//!               temp-appendonly.aof.manifest       until they are complete
//!               temp-appendonly.aof.base
//!               temp-appendonly.aof.incr
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The format of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// An RDB file: `aof-use-rdb-preamble yes`.
    Rdb,
    /// Commands.
    Commands,
}

/// Where an append-only file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AofNames {
    /// The directory of its files: `appenddirname`.
    pub directory: PathBuf,
    /// The beginning of their names: `appendfilename`.
    pub file: Vec<u8>,
}

impl AofNames {
    /// The path of a file.
    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.directory.join(OsStr::from_bytes(name))
    }

    /// The path of the single file that Redis wrote before version 7.
    pub fn single_file(&self) -> PathBuf {
        Path::new(OsStr::from_bytes(&self.file)).to_owned()
    }

    /// The name of the manifest.
    pub fn manifest(&self) -> Vec<u8> {
        [&self.file[..], b".manifest"].concat()
    }

    pub(super) fn base(&self, sequence: u64, format: BaseFormat) -> Vec<u8> {
        let suffix = match format {
            BaseFormat::Rdb => "rdb",
            BaseFormat::Commands => "aof",
        };
        [&self.file[..], format!(".{sequence}.base.{suffix}").as_bytes()].concat()
    }

    pub(super) fn incremental(&self, sequence: u64) -> Vec<u8> {
        [&self.file[..], format!(".{sequence}.incr.aof").as_bytes()].concat()
    }

    pub(super) fn temporary_manifest(&self) -> Vec<u8> {
        [b"temp-", &self.manifest()[..]].concat()
    }

    pub(super) fn temporary_base(&self) -> Vec<u8> {
        [b"temp-", &self.file[..], b".base"].concat()
    }

    pub(super) fn temporary_incremental(&self) -> Vec<u8> {
        [b"temp-", &self.file[..], b".incr"].concat()
    }
}
