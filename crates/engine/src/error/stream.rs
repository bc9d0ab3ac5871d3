//! The errors of stream commands.

use std::fmt;

/// Why a stream command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// An invalid entry ID.
    Id,
    /// XADD with the ID 0-0.
    IdZero,
    /// XADD with an ID that is not greater than the last one.
    IdSmall,
    /// XADD to a stream whose last ID is the highest.
    Exhausted,
    /// XADD of an entry that is too long.
    TooLarge,
    /// More than one trimming strategy.
    TwoStrategies,
    /// XTRIM without a strategy.
    NoStrategy,
    /// A negative MAXLEN.
    MaxLen,
    /// A negative LIMIT.
    Limit,
    /// LIMIT without a trimming strategy.
    LimitAlone,
    /// LIMIT without `~`.
    LimitExact,
    /// An exclusive start at the highest ID.
    IntervalStart,
    /// An exclusive end at the lowest ID.
    IntervalEnd,
    /// The numbers of keys and IDs differ, for a command by its name.
    Unbalanced(&'static str),
    /// An option of XREADGROUP in XREAD.
    GroupOption(&'static str),
    /// XREADGROUP without a group.
    NoGroupOption,
    /// `$` or `+` in XREADGROUP.
    Meaningless(char),
    /// `>` in XREAD.
    NewOnly,
    /// XREADGROUP: the key or its consumer group does not exist.
    NoGroupToRead(String, String),
    /// The key or its consumer group does not exist.
    NoKeyOrGroup(String, String),
    /// No such consumer group of the key: the group's name, then the key.
    NoGroup(String, String),
    /// XGROUP on a missing key.
    NoKey,
    /// A consumer group of this name exists.
    Busy,
    /// ENTRIESREAD below -1.
    EntriesRead,
    /// A negative ENTRIESADDED.
    EntriesAdded,
    /// XSETID with an ID below its own MAXDELETEDID.
    BelowGivenDeleted,
    /// XSETID with an ID below that of a deleted entry.
    BelowDeleted,
    /// XSETID with an ID below that of the last entry.
    BelowTop,
    /// XSETID with ENTRIESADDED below the length.
    FewAdded,
    /// An argument that is not an integer: its name, then the command's.
    Argument(&'static str, &'static str),
    /// XCLAIM with an unknown option.
    ClaimOption(String),
    /// XAUTOCLAIM with a COUNT that is not positive or too large.
    ClaimCount,
    /// A number of IDs that is not positive.
    IdsCount,
    /// The number of IDs does not match the arguments.
    IdsMismatch,
    /// CLAIM with an idle time that is not an integer.
    ClaimIdle,
    /// CLAIM with a negative idle time.
    ClaimIdleNegative,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "ERR Invalid stream ID specified as stream command argument",
            Self::IdZero => "ERR The ID specified in XADD must be greater than 0-0",
            Self::IdSmall => {
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            }
            Self::Exhausted => {
                "ERR The stream has exhausted the last possible ID, unable to add more items"
            }
            Self::TooLarge => "ERR Elements are too large to be stored",
            Self::TwoStrategies => {
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            }
            Self::NoStrategy => "ERR syntax error, XTRIM must be called with a trimming strategy",
            Self::MaxLen => "ERR The MAXLEN argument must be >= 0.",
            Self::Limit => "ERR The LIMIT argument must be >= 0.",
            Self::LimitAlone => {
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            Self::LimitExact => {
                "ERR syntax error, LIMIT cannot be used without the special ~ option"
            }
            Self::IntervalStart => "ERR invalid start ID for the interval",
            Self::IntervalEnd => "ERR invalid end ID for the interval",
            Self::NoGroupOption => "ERR Missing GROUP option for XREADGROUP",
            Self::NewOnly => {
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                 <group> <consumer> option."
            }
            Self::NoKey => {
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
                 want to use the MKSTREAM option to create an empty stream automatically."
            }
            Self::Busy => "BUSYGROUP Consumer Group name already exists",
            Self::EntriesRead => "ERR value for ENTRIESREAD must be positive or -1",
            Self::EntriesAdded => "ERR entries_added must be positive",
            Self::BelowGivenDeleted => {
                "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            }
            Self::BelowDeleted => {
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
            }
            Self::BelowTop => {
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            }
            Self::FewAdded => {
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            }
            Self::ClaimCount => "ERR COUNT must be > 0",
            Self::IdsCount => "ERR Number of IDs must be a positive integer",
            Self::IdsMismatch => "ERR The `numids` parameter must match the number of arguments",
            Self::ClaimIdle => "ERR min-idle-time is not an integer",
            Self::ClaimIdleNegative => "ERR min-idle-time must be a positive integer",
            _ => return self.fmt_named(f),
        })
    }
}

impl StreamError {
    /// Writes the texts that contain names.
    fn fmt_named(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbalanced(name) => {
                let id = if *name == "xreadgroup" { "ID or '>'" } else { "ID, '+', or '$'" };
                write!(
                    f,
                    "ERR Unbalanced '{name}' list of streams: for each stream key an {id} must be \
                     specified."
                )
            }
            Self::GroupOption(option) => write!(
                f,
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ),
            Self::Meaningless(id) => write!(
                f,
                "ERR The {id} ID is meaningless in the context of XREADGROUP: you want to read the \
                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                 messages. The {id} ID would just return an empty result set."
            ),
            Self::NoGroupToRead(key, group) => write!(
                f,
                "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP \
                 option"
            ),
            Self::NoKeyOrGroup(key, group) => {
                write!(f, "NOGROUP No such key '{key}' or consumer group '{group}'")
            }
            Self::NoGroup(group, key) => {
                write!(f, "NOGROUP No such consumer group '{group}' for key name '{key}'")
            }
            Self::Argument(argument, command) => {
                write!(f, "ERR Invalid {argument} argument for {command}")
            }
            Self::ClaimOption(option) => write!(f, "ERR Unrecognized XCLAIM option '{option}'"),
            _ => Ok(()),
        }
    }
}
