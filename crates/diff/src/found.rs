//! The differences that a comparison of two servers finds.

use std::io;

use test_support::Value;

use crate::peer::Unanswered;
use crate::{Request, Step, rules, scripts};

/// A difference between two servers.
#[derive(Clone, Debug)]
pub enum Found {
    /// Different replies: the position in the list, the request and both replies; of a transaction,
    /// the queued request and the elements of EXEC's reply.
    Reply(usize, Request, Value, Value),
    /// Different data after the list.
    State(Unlike),
    /// A server ended or fell silent: its name, the position, the request and the reason.
    Lost(String, usize, Request, String),
    /// An intended difference: its position and the reason.
    Explained(usize, &'static str),
}

impl Found {
    /// Differences with the same kind count as one.
    pub fn kind(&self) -> String {
        match self {
            Self::Reply(_, request, subject, reference) => {
                // A denial has one cause, whatever a script would have sent.
                let is_denial = |reply: &Value| {
                    reply.is_error()
                        && reply.bytes().is_some_and(|text| text.starts_with(b"NOPERM"))
                };
                if is_denial(subject) || is_denial(reference) {
                    return format!("reply {} denied", rules::name(request));
                }
                let error = if subject.is_error() || reference.is_error() { " error" } else { "" };
                format!("reply {}{error}", scripts::title(request))
            }
            Self::State(unlike) => format!("state {}", scripts::title(&unlike.request)),
            Self::Lost(name, _, request, _) => format!("lost {name} {}", scripts::title(request)),
            Self::Explained(_, reason) => format!("explained {reason}"),
        }
    }

    /// How many requests of the list led to the difference.
    pub fn steps(&self, all: usize) -> usize {
        match self {
            Self::State(_) => all,
            Self::Reply(at, ..) | Self::Lost(_, at, ..) | Self::Explained(at, _) => at + 1,
        }
    }
}

/// A part of the state in which the servers differ.
#[derive(Clone, Debug)]
pub struct Unlike {
    /// The request that reads it; its command names the aspect.
    pub request: Request,
    /// The number of the database.
    pub database: &'static str,
    /// The reply of the subject.
    pub subject: Value,
    /// The reply of the reference.
    pub reference: Value,
}

/// A server that did not reply to a request.
#[derive(Debug)]
pub struct Lost {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) reason: String,
}

impl Lost {
    pub(crate) fn new(name: &str, lost: &Unanswered) -> Self {
        Self { name: name.to_owned(), at: lost.answered, reason: lost.source.to_string() }
    }

    pub(crate) fn error(self) -> io::Error {
        io::Error::other(format!("{}: {}", self.name, self.reason))
    }

    pub(crate) fn found(self, steps: &[Step]) -> Found {
        let request = steps.get(self.at).map_or_else(Vec::new, |step| step.request.clone());
        Found::Lost(self.name, self.at, request, self.reason)
    }
}
