//! Errors of DUMP and RESTORE. Those of other commands on keys are among the shared ones.

use std::fmt;

/// Why a value could not be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The key exists, and REPLACE was not given.
    BusyKey,
    /// A negative time to live.
    Ttl,
    /// A negative IDLETIME.
    IdleTime,
    /// A FREQ outside 0 to 255.
    Frequency,
    /// The payload is too short, of a version that is not supported, or damaged.
    Footer,
    /// The footer is valid, but the content before it is not a value.
    Format,
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BusyKey => "BUSYKEY Target key name already exists.",
            Self::Ttl => "ERR Invalid TTL value, must be >= 0",
            Self::IdleTime => "ERR Invalid IDLETIME value, must be >= 0",
            Self::Frequency => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            Self::Footer => "ERR DUMP payload version or checksum are wrong",
            Self::Format => "ERR Bad data format",
        })
    }
}

impl From<persist::payload::WrongFooter> for RestoreError {
    fn from(_: persist::payload::WrongFooter) -> Self {
        Self::Footer
    }
}

impl From<persist::Error> for RestoreError {
    fn from(_: persist::Error) -> Self {
        Self::Format
    }
}
