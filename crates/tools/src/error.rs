//! The errors of the tools, in sentences that say what to do. None has a backtrace.

use std::fmt;
use std::io;

use crate::printable::printable;

/// The status of a process that SIGINT ended, as shells write it.
const INTERRUPTED_STATUS: u8 = 130;

/// Why a tool failed; `Display` is one sentence for the terminal.
#[derive(Debug)]
pub enum Error {
    /// No connection to the server could be opened.
    Connect {
        /// The address as the user would write it.
        address: String,
        /// The error of the operating system or of TLS.
        source: io::Error,
    },
    /// A call to the operating system failed.
    Io {
        /// The attempted step, as in "read certificate.pem".
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// TLS could not be set up: an unusable certificate, key or name.
    Tls(String),
    /// The server's bytes are not RESP, or it closed the connection.
    Protocol(String),
    /// The server refused a step that the others depend on (AUTH, HELLO, PING, a fill).
    Refused {
        /// The refused step.
        step: String,
        /// The error text of the server.
        reply: String,
    },
    /// Replies to a measured workload were errors, so its figures mean nothing.
    ErrorReplies {
        /// The workload's name.
        workload: String,
        /// How many replies were errors.
        count: u64,
        /// The text of the first.
        first: String,
    },
    /// Some of the measurements failed; the others are printed, with the reasons.
    NotMeasured {
        /// How many failed.
        count: usize,
    },
    /// A signal ended the measurement; the results until then are printed.
    Interrupted,
    /// Options that contradict each other or are out of range.
    Usage(String),
    /// A server that a comparison started did not come up.
    Start {
        /// The target's name.
        name: String,
        /// Why, with the end of the server's output.
        reason: String,
    },
}

/// A failed measurement, which is shown with the results of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedMeasurement {
    /// The measurement that got the error.
    pub what: String,
    /// The text of the error.
    pub reason: String,
}

impl fmt::Display for FailedMeasurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FailedMeasurement { what, reason } = self;
        write!(f, "{what}: FAILED: {reason}")
    }
}

impl Error {
    /// The exit code: that of shells for a signal, or 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Interrupted => INTERRUPTED_STATUS,
            _ => 1,
        }
    }

    /// For `map_err`: an input/output error while doing `what`.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    /// The same for the errors of direct system calls.
    pub(crate) fn sys(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Error {
        move |errno| Error::Io { what: what.to_string(), source: errno.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parts of it may be a server's text.
        f.write_str(&printable(&Sentence(self).to_string()))
    }
}

/// The sentence for an error, with texts of servers as they are.
struct Sentence<'a>(&'a Error);

impl fmt::Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // A TLS failure means that the server listens.
            Error::Connect { address, source } if source.kind() == io::ErrorKind::InvalidData => {
                write!(f, "TLS with {address} failed: {source}{}", plain(source))
            }
            Error::Connect { address, source } => {
                write!(f, "cannot connect to {address}: {source}; does the server listen there?")
            }
            Error::Io { what, source } => write!(f, "cannot {what}: {source}"),
            Error::Tls(reason) => write!(f, "TLS: {reason}"),
            Error::Protocol(reason) => write!(f, "the server does not speak RESP here: {reason}"),
            Error::Refused { step, reply } => write!(f, "the server refused {step}: {reply}"),
            Error::ErrorReplies { workload, count, first } => write!(
                f,
                "workload {workload}: {count} replies were errors, so its figures mean nothing; \
                 the first: {first}"
            ),
            Error::NotMeasured { count: 1 } => f.write_str("1 measurement failed"),
            Error::NotMeasured { count } => write!(f, "{count} measurements failed"),
            Error::Interrupted => f.write_str("interrupted"),
            Error::Usage(reason) => f.write_str(reason),
            Error::Start { name, reason } => write!(f, "{name} did not start: {reason}"),
        }
    }
}

/// A hint if the first bytes of the server are not TLS.
fn plain(error: &io::Error) -> &'static str {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidMessage(_)) => "; does the server speak TLS on that port?",
        _ => "",
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Connect { source, .. } | Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
