//! The errors that clients see: [`Error`] collects those of all families and adds those that
//! several families return.
//!
//! Each family has its own enum in a file of this folder; some belong to commands on layer 5. The
//! texts are those of Redis 8.0: client programs compare them, so they must not change.
//! [`echo`](echo::echo) prepares parts of requests that they repeat.

use std::fmt;

use store::WrongType;

use acl::AclError;
use bitmap::BitmapError;
use connection::ConnectionError;
use geo::GeoError;
use hash::HashError;
use hotkeys::HotkeysError;
use hyperloglog::HyperLogLogError;
use list::ListError;
use restore::RestoreError;
use script::ScriptError;
use server::ServerError;
use sorted_set::SortedSetError;
use stream::StreamError;
use string::StringError;
use tracking::TrackingError;
use transaction::TransactionError;
use wait::WaitError;

pub mod acl;
pub mod bitmap;
pub mod connection;
pub mod echo;
pub mod geo;
pub mod hash;
pub mod hotkeys;
pub mod hyperloglog;
pub mod list;
pub mod restore;
pub mod script;
pub mod server;
pub mod sorted_set;
pub mod stream;
pub mod string;
pub mod tracking;
pub mod transaction;
pub mod wait;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds a value of another type.
    WrongType,
    /// An unknown option, a missing argument, or options that contradict each other.
    Syntax,
    /// An argument or a value that is not an integer.
    NotInteger,
    /// An argument or a value that is not a float.
    NotFloat,
    /// The result of an increment is outside the range of i64.
    Overflow,
    /// DECRBY with i64::MIN.
    DecrementOverflow,
    /// The result of an increment is NaN or infinite.
    NanOrInfinity,
    /// No database has this index.
    DatabaseOutOfRange,
    /// An integer outside these inclusive bounds.
    NotBetween(i64, i64),
    /// COPY or MOVE of a key onto itself.
    SameObject,
    /// The first database index of SWAPDB is invalid.
    InvalidFirstDatabase,
    /// The second database index of SWAPDB is invalid.
    InvalidSecondDatabase,
    /// The cursor of SCAN or one of its variants is not a number.
    InvalidCursor,
    /// NOVALUES for a command other than HSCAN.
    NoValuesOutsideHash,
    /// A `numkeys` greater than the number of arguments that follow.
    MoreKeysThanArguments,
    /// EXPIRE with an unknown condition.
    UnsupportedOption(String),
    /// EXPIRE with NX and another condition.
    NxWithOthers,
    /// EXPIRE with both GT and LT.
    GtWithLt,
    /// OBJECT FREQ without an LFU `maxmemory-policy`.
    NoLfuPolicy,
    /// OBJECT IDLETIME with an LFU `maxmemory-policy`.
    LfuPolicy,
    /// Memory is over `maxmemory`, and the command may take more.
    OutOfMemory,
    /// The wrong number of arguments for a command, by its full name.
    Arity(String),
    /// An expiry that is not positive or out of range, for a command by its name.
    InvalidExpire(&'static str),
    /// SORT without ALPHA by weights that are not numbers.
    SortNotDouble,
    /// A count that is out of range.
    OutOfRange,
    /// The key does not exist.
    NoSuchKey,
    /// A count that is negative or not an integer.
    NotPositive,
    /// A number, by the name of its argument, that is not greater than 0.
    NotAboveZero(&'static str),
    /// A number, by the name of its argument, that is negative.
    Negative(&'static str),
    /// No command has this name; the text says which.
    UnknownCommand(String),
    /// The command has no such subcommand: the subcommand's name, then the command's.
    UnknownSubcommand(String, String),
    /// A subcommand is unknown or has the wrong number of arguments: the subcommand's name, then
    /// the command's.
    SubcommandForm(String, &'static str),
    /// The client must authenticate first.
    NoAuth,
    /// A denial by access control, or an error of a command on users.
    Acl(AclError),
    /// An error of a bitmap command.
    Bitmap(BitmapError),
    /// An error of a command on connections or clients.
    Connection(ConnectionError),
    /// An error of a geo command.
    Geo(GeoError),
    /// An error of a hash command.
    Hash(HashError),
    /// An error of HOTKEYS.
    Hotkeys(HotkeysError),
    /// An error of a HyperLogLog command.
    HyperLogLog(HyperLogLogError),
    /// An error of a list command.
    List(ListError),
    /// An error of RESTORE.
    Restore(RestoreError),
    /// An error of a script.
    Script(ScriptError),
    /// An error of a script or its code, with the interpreter's text.
    ScriptFailure(Vec<u8>),
    /// An error of a command on the server as a whole.
    Server(ServerError),
    /// An error of a sorted set command.
    SortedSet(SortedSetError),
    /// An error of a stream command.
    Stream(StreamError),
    /// An error of a string command.
    String(StringError),
    /// An error of tracking.
    Tracking(TrackingError),
    /// An error of a transaction.
    Transaction(TransactionError),
    /// An error of a blocking command's timeout, or the end of its wait.
    Wait(WaitError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::Syntax => "ERR syntax error",
            Self::NotInteger => "ERR value is not an integer or out of range",
            Self::NotFloat => "ERR value is not a valid float",
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::DecrementOverflow => "ERR decrement would overflow",
            Self::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Self::DatabaseOutOfRange => "ERR DB index is out of range",
            Self::NotBetween(min, max) => {
                return write!(f, "ERR value is out of range, value must between {min} and {max}");
            }
            Self::SameObject => "ERR source and destination objects are the same",
            Self::InvalidFirstDatabase => "ERR invalid first DB index",
            Self::InvalidSecondDatabase => "ERR invalid second DB index",
            Self::InvalidCursor => "ERR invalid cursor",
            Self::NoValuesOutsideHash => "ERR NOVALUES option can only be used in HSCAN",
            Self::MoreKeysThanArguments => {
                "ERR Number of keys can't be greater than number of args"
            }
            Self::UnsupportedOption(option) => {
                return write!(f, "ERR Unsupported option {option}");
            }
            Self::NxWithOthers => {
                "ERR NX and XX, GT or LT options at the same time are not compatible"
            }
            Self::GtWithLt => "ERR GT and LT options at the same time are not compatible",
            Self::NoLfuPolicy => {
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
                 note that when switching between policies at runtime LRU and LFU data will take \
                 some time to adjust."
            }
            Self::LfuPolicy => {
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time \
                 to adjust."
            }
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::Arity(name) => {
                return write!(f, "ERR wrong number of arguments for '{name}' command");
            }
            Self::InvalidExpire(name) => {
                return write!(f, "ERR invalid expire time in '{name}' command");
            }
            Self::SortNotDouble => "ERR One or more scores can't be converted into double",
            Self::NotAboveZero(what) => return write!(f, "ERR {what} should be greater than 0"),
            Self::Negative(what) => return write!(f, "ERR {what} can't be negative"),
            Self::OutOfRange => "ERR value is out of range",
            Self::NoSuchKey => "ERR no such key",
            Self::NotPositive => "ERR value is out of range, must be positive",
            Self::UnknownCommand(text) => return write!(f, "ERR {text}"),
            Self::UnknownSubcommand(name, command) => {
                return write!(f, "ERR unknown subcommand '{name}'. Try {command} HELP.");
            }
            Self::SubcommandForm(name, command) => {
                let wrong = "unknown subcommand or wrong number of arguments for";
                return write!(f, "ERR {wrong} '{name}'. Try {command} HELP.");
            }
            Self::NoAuth => "NOAUTH Authentication required.",
            Self::ScriptFailure(text) => return f.write_str(&String::from_utf8_lossy(text)),
            of_family => return of_family.family().map_or(Ok(()), |error| error.fmt(f)),
        })
    }
}

impl Error {
    /// The text as it is sent, with the bytes of arguments. Line ends at its end are removed; a
    /// reply turns those within it into blanks.
    pub fn text(&self) -> Vec<u8> {
        let mut text = match self {
            Self::ScriptFailure(text) => text.clone(),
            error => echo::to_bytes(&error.to_string()),
        };
        while text.pop_if(|byte| matches!(byte, b'\r' | b'\n')).is_some() {}
        text
    }
}

impl std::error::Error for Error {}

impl From<WrongType> for Error {
    fn from(_: WrongType) -> Self {
        Self::WrongType
    }
}

/// Converts the errors of families into [`Error`], and back.
macro_rules! from_families {
    ($($variant:ident($error:ty),)*) => {
        impl Error {
            /// The family's error inside this one.
            fn family(&self) -> Option<&dyn fmt::Display> {
                match self {
                    $(Self::$variant(error) => Some(error),)*
                    _ => None,
                }
            }
        }

        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

from_families! {
    Acl(AclError),
    Bitmap(BitmapError),
    Connection(ConnectionError),
    Geo(GeoError),
    Hash(HashError),
    Hotkeys(HotkeysError),
    HyperLogLog(HyperLogLogError),
    List(ListError),
    Script(ScriptError),
    Restore(RestoreError),
    Server(ServerError),
    SortedSet(SortedSetError),
    Stream(StreamError),
    String(StringError),
    Tracking(TrackingError),
    Transaction(TransactionError),
    Wait(WaitError),
}
