//! Every text that tells a client what is wrong.
//!
//! The texts are part of what clients see: programs compare them. They are those of Redis 8.0.

use std::fmt;

use store::WrongType;

mod bits;
mod connection;
mod geo;
mod hash;
mod list;
mod server;
mod sorted_set;
mod stream;
mod string;
mod wait;

pub use bits::BitsError;
pub use connection::ConnectionError;
pub use geo::GeoError;
pub use hash::HashError;
pub use list::ListError;
pub use server::ServerError;
pub use sorted_set::SortedSetError;
pub use stream::StreamError;
pub use string::StringError;
pub use wait::WaitError;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds a value of another type.
    WrongType,
    /// Options that do not fit together or are unknown.
    Syntax,
    /// An argument that should be an integer.
    NotInteger,
    /// An argument or a value that should be a float.
    NotFloat,
    /// The sum leaves the range of i64.
    Overflow,
    /// The number to subtract has no negation in i64.
    DecrementOverflow,
    /// The sum is no number or infinite.
    NanOrInfinity,
    /// No database of this number.
    DatabaseOutOfRange,
    /// An integer outside these bounds.
    NotBetween(i64, i64),
    /// COPY or MOVE of a key onto itself.
    SameObject,
    /// The first database number of SWAPDB is none.
    InvalidFirstDatabase,
    /// The second database number of SWAPDB is none.
    InvalidSecondDatabase,
    /// The cursor of a SCAN is no number.
    InvalidCursor,
    /// NOVALUES for a scan of anything but a hash.
    NoValuesOutsideHash,
    /// A number of keys that is larger than what follows.
    MoreKeysThanArguments,
    /// A condition of EXPIRE that does not exist.
    UnsupportedOption(String),
    /// EXPIRE with NX and another condition.
    NxWithOthers,
    /// EXPIRE with GT and LT.
    GtWithLt,
    /// OBJECT FREQ while no LFU policy counts uses.
    NoLfuPolicy,
    /// Too few or too many arguments for a command, by its full name.
    Arity(String),
    /// An expiry that is not positive or beyond the range, for a command by its name.
    InvalidExpire(&'static str),
    /// SORT by weights that are no numbers.
    SortNotDouble,
    /// The key must be there.
    NoSuchKey,
    /// A count that is negative or no integer.
    NotPositive,
    /// A number, called so, that must be above zero.
    NotAboveZero(&'static str),
    /// A number, called so, that must not be negative.
    Negative(&'static str),
    /// No command of this name; the text says which.
    UnknownCommand(String),
    /// No subcommand of this name in the command of that name.
    UnknownSubcommand(String, String),
    /// A subcommand in a form that it does not have, of the command of that name.
    SubcommandForm(String, &'static str),
    /// The client must authenticate first.
    NoAuth,
    /// Something about bits or a HyperLogLog.
    Bits(BitsError),
    /// Something about places.
    Geo(GeoError),
    /// Something about a connection or a client.
    Connection(ConnectionError),
    /// Something about hashes.
    Hash(HashError),
    /// Something about lists.
    List(ListError),
    /// Something about the server as a whole.
    Server(ServerError),
    /// Something about sorted sets.
    SortedSet(SortedSetError),
    /// Something about a stream.
    Stream(StreamError),
    /// Something about strings.
    String(StringError),
    /// Something about a wait.
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
            Self::Arity(name) => {
                return write!(f, "ERR wrong number of arguments for '{name}' command");
            }
            Self::InvalidExpire(name) => {
                return write!(f, "ERR invalid expire time in '{name}' command");
            }
            Self::SortNotDouble => "ERR One or more scores can't be converted into double",
            Self::NotAboveZero(what) => {
                return write!(f, "ERR {what} should be greater than 0");
            }
            Self::Negative(what) => return write!(f, "ERR {what} can't be negative"),
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
            Self::Bits(error) => return error.fmt(f),
            Self::Geo(error) => return error.fmt(f),
            Self::Connection(error) => return error.fmt(f),
            Self::Hash(error) => return error.fmt(f),
            Self::List(error) => return error.fmt(f),
            Self::Server(error) => return error.fmt(f),
            Self::SortedSet(error) => return error.fmt(f),
            Self::Stream(error) => return error.fmt(f),
            Self::String(error) => return error.fmt(f),
            Self::Wait(error) => return error.fmt(f),
        })
    }
}

impl std::error::Error for Error {}

impl From<WrongType> for Error {
    fn from(_: WrongType) -> Self {
        Self::WrongType
    }
}
