//! The errors of commands on connections and clients, whose handlers are on layer 5.

use std::fmt;

/// Why a command on connections or clients failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionError {
    /// AUTH with one argument while the default user has no password.
    NoPasswordSet,
    /// The user does not exist, or the password is wrong.
    WrongPassword,
    /// HELLO without AUTH from a client that must authenticate first.
    HelloNeedsAuth,
    /// HELLO with a version that is not an integer.
    ProtocolNotInteger,
    /// HELLO with a version other than 2 and 3.
    Protocol,
    /// HELLO with an unknown option, or one without its arguments.
    HelloOption(String),
    /// A client name that would break the lines of CLIENT LIST.
    Name,
    /// CLIENT SETINFO with an unknown attribute.
    Attribute(String),
    /// A value for this attribute that would break the lines of CLIENT LIST.
    AttributeValue(String),
    /// No client type has this name.
    Type(String),
    /// CLIENT LIST with an ID that is not an integer.
    Id,
    /// CLIENT KILL with an ID that is not positive.
    KillId,
    /// CLIENT KILL with an age that is not an integer.
    AgeNotInteger,
    /// CLIENT KILL with an age that is not positive.
    Age,
    /// No user has this name.
    NoSuchUser(String),
    /// No client has this address.
    NoSuchClient,
    /// CLIENT PAUSE with a mode other than WRITE and ALL.
    PauseMode,
    /// CLIENT UNBLOCK with a reason other than TIMEOUT and ERROR.
    UnblockReason,
    /// CLIENT PAUSE with a timeout that is not an integer.
    TimeoutNotInteger,
    /// CLIENT PAUSE with a negative timeout.
    TimeoutNegative,
    /// CLIENT PAUSE with a timeout that ends beyond the range of i64.
    TimeoutRange,
    /// A command, by its full name, that is not allowed while the client is subscribed.
    Subscribed(String),
    /// SSUBSCRIBE in a transaction.
    NoSubscription(&'static str),
    /// A command other than administration from a client beyond `maxclients`.
    TooManyClients,
    /// A command on keys from a MONITOR client: Redis replies the same to replicas.
    Watches,
    /// MONITOR in a transaction.
    NestedMonitor,
    /// More subscriptions than one client may have.
    TooManySubscriptions,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNCLEAN: &str = "cannot contain spaces, newlines or special characters.";
        f.write_str(match self {
            Self::NoPasswordSet => {
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?"
            }
            Self::WrongPassword => "WRONGPASS invalid username-password pair or user is disabled.",
            Self::HelloNeedsAuth => {
                "NOAUTH HELLO must be called with the client already authenticated, otherwise \
                 the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the \
                 client and select the RESP protocol version at the same time"
            }
            Self::ProtocolNotInteger => "ERR Protocol version is not an integer or out of range",
            Self::Protocol => "NOPROTO unsupported protocol version",
            Self::HelloOption(option) => {
                return write!(f, "ERR Syntax error in HELLO option '{option}'");
            }
            Self::Name => return write!(f, "ERR Client names {UNCLEAN}"),
            Self::Attribute(name) => return write!(f, "ERR Unrecognized option '{name}'"),
            Self::AttributeValue(name) => return write!(f, "ERR {name} {UNCLEAN}"),
            Self::Type(name) => return write!(f, "ERR Unknown client type '{name}'"),
            Self::Id => "ERR Invalid client ID",
            Self::KillId => "ERR client-id should be greater than 0",
            Self::AgeNotInteger => "ERR maxage is not an integer or out of range",
            Self::Age => "ERR maxage should be greater than 0",
            Self::Subscribed(name) => {
                return write!(
                    f,
                    "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / \
                     QUIT / RESET are allowed in this context"
                );
            }
            Self::NoSubscription(command) => {
                return write!(f, "ERR {command} isn't allowed for a DENY BLOCKING client");
            }
            Self::TooManyClients => "ERR max number of clients reached",
            Self::Watches => "ERR Replica can't interact with the keyspace",
            Self::NestedMonitor => "ERR MONITOR isn't allowed for DENY BLOCKING client",
            Self::TooManySubscriptions => "ERR the client has too many subscriptions",
            Self::NoSuchUser(name) => return write!(f, "ERR No such user '{name}'"),
            Self::NoSuchClient => "ERR No such client",
            Self::PauseMode => "ERR CLIENT PAUSE mode must be WRITE or ALL",
            Self::UnblockReason => "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            Self::TimeoutNotInteger => "ERR timeout is not an integer or out of range",
            Self::TimeoutNegative => "ERR timeout is negative",
            Self::TimeoutRange => "ERR timeout is out of range",
        })
    }
}
