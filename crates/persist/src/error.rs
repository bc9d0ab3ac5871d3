//! The errors of reading.

use std::fmt;
use std::io;

use crate::ModuleId;

/// Why bytes could not be read. The position of the fault is `ByteInput::offset`.
#[derive(Debug)]
pub enum Error {
    /// The source failed.
    Source(io::Error),
    /// The bytes end before the value does.
    End,
    /// The format does not allow these bytes: the wrong part.
    Corrupt(&'static str),
    /// Compressed bytes cannot be decompressed: the wrong part. The input is after them.
    Compressed(&'static str),
    /// A collection without elements. Old servers wrote such keys, and loaders skip them.
    EmptyValue,
    /// A value of the type with this number, which is unknown or was never released.
    UnknownType(u8),
    /// Data of a module.
    Module(ModuleId),
    /// A file of this version, or `None` for a file without the magic of an RDB file.
    Version(Option<u32>),
    /// The checksum is wrong.
    Checksum {
        /// The checksum in the file.
        stored: u64,
        /// The checksum of the bytes.
        computed: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "reading failed: {error}"),
            Self::End => f.write_str("the data ends too early"),
            Self::Corrupt(what) | Self::Compressed(what) => {
                write!(f, "the data is damaged: {what}")
            }
            Self::EmptyValue => f.write_str("a collection without elements"),
            Self::UnknownType(number) => write!(f, "a value of the unknown type {number}"),
            Self::Module(module) => write!(f, "data of the module {module}"),
            Self::Version(Some(version)) => write!(f, "RDB version {version} is not supported"),
            Self::Version(None) => f.write_str("this is no RDB file"),
            Self::Checksum { stored, computed } => {
                write!(f, "CRC error: it is {stored:016x} and should be {computed:016x}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Source(error)
    }
}
