//! Why bytes could not be read.

use std::fmt;
use std::io;

/// Why bytes could not be read. Of the bytes' faults only what they are is told here; where they
/// stand, [`Input::offset`](crate::Input::offset) tells.
#[derive(Debug)]
pub enum Error {
    /// The source failed.
    Source(io::Error),
    /// The bytes end before the value does.
    End,
    /// The bytes are not what the format allows; says what is wrong with them.
    Corrupt(&'static str),
    /// Compressed bytes that do not stand for what they are said to; says what is wrong with them.
    /// The input is behind them.
    Compressed(&'static str),
    /// A collection without elements, which no key may hold. Old servers wrote such keys, and
    /// loaders skip them.
    EmptyValue,
    /// A value of this type, by its number in the format, which is unknown or was never released.
    UnknownType(u8),
    /// Data of a module, by its name.
    Module([u8; MODULE_NAME_BYTES]),
    /// A file of this version, or without the mark of an RDB file.
    Version(Option<u32>),
    /// The checksum that is stored is not that of the bytes.
    Checksum {
        /// As it is stored.
        stored: u64,
        /// That of the bytes.
        computed: u64,
    },
}

/// Letters of a module's name.
pub const MODULE_NAME_BYTES: usize = 9;

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
            Self::Module(name) => {
                write!(f, "data of the module '{}'", String::from_utf8_lossy(name))
            }
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
