//! The rest of a command's work, and its reply, that follow when all commands which had begun
//! before are over.
//!
//! A command that kills a client, pauses commands or changes users first marks what is no longer
//! allowed, and may reply only when the commands that had begun before are over. Its client waits
//! for that, like a client that waits for a key, and its thread goes on: the command ends with
//! [`Outcome::GracePeriod`], the event loop begins a grace period of the gate and comes back to
//! [`finish`](AfterGrace::finish) the command.
//!
//! In a transaction the next commands run at once, and the grace period begins when EXEC has run:
//! then the rest of all its commands is done, in their order, and EXEC is answered.

use std::fmt;

use resp::Out;
use resp::out::Mark;

use super::outcome::Outcome;
use super::worker::Worker;
use crate::host::Host;

/// The rest of a command's work. Returns [`Outcome::Done`] or [`Outcome::Close`].
type Rest = Box<dyn FnOnce(&mut Worker, &dyn Host) -> Outcome + Send>;

/// The rest of a command.
pub struct AfterGrace {
    rest: Rest,
    reply: Out,
    has_failed: bool,
}

impl AfterGrace {
    /// The outcome of a command with this rest.
    pub(crate) fn outcome(
        rest: impl FnOnce(&mut Worker, &dyn Host) -> Outcome + Send + 'static,
    ) -> Outcome {
        Self::of(false, rest)
    }

    fn of(
        has_failed: bool,
        rest: impl FnOnce(&mut Worker, &dyn Host) -> Outcome + Send + 'static,
    ) -> Outcome {
        let (rest, reply) = (Box::new(rest), Out::default());
        Outcome::GracePeriod(Box::new(Self { rest, reply, has_failed }))
    }

    /// The same for several commands. The client is [closed](Outcome::Close) if one of them asks
    /// for that, or if it `closes` anyway; the transaction may have `failed` nevertheless.
    pub(crate) fn outcome_of_all(all: Vec<Self>, mut closes: bool, failed: bool) -> Outcome {
        let end = |closes| if closes { Outcome::Close } else { Outcome::Done };
        if all.is_empty() {
            return if failed && !closes { Outcome::Failed } else { end(closes) };
        }
        Self::of(failed, move |worker, host| {
            for after in all {
                closes |= matches!(after.end(worker, host), Outcome::Close);
            }
            end(closes)
        })
    }

    /// Keeps back the reply, which follows `mark`.
    pub(crate) fn keep_reply(&mut self, out: &mut Out, mark: Mark) {
        for piece in out.pieces(mark, out.mark()) {
            self.reply.bytes.extend_from_slice(piece.as_slice());
        }
        out.truncate(mark);
    }

    /// Ends the command: does the rest, which must not happen inside the gate, and replies. Call it
    /// whether the client is still there or not.
    pub fn finish(self, worker: &mut Worker, host: &dyn Host, out: &mut Out) -> Outcome {
        out.append(self.reply);
        (self.rest)(worker, host)
    }

    /// The same for a command whose reply was not kept back.
    pub(crate) fn end(self, worker: &mut Worker, host: &dyn Host) -> Outcome {
        (self.rest)(worker, host)
    }
}

impl Outcome {
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Failed => true,
            Self::GracePeriod(after) => after.has_failed,
            _ => false,
        }
    }

    /// The outcome when the grace period is over, if the command has left something for its end.
    pub fn after_grace(self, worker: &mut Worker, host: &dyn Host, out: &mut Out) -> Self {
        match self {
            Self::GracePeriod(after) => after.finish(worker, host, out),
            outcome => outcome,
        }
    }
}

impl fmt::Debug for AfterGrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AfterGrace").finish_non_exhaustive()
    }
}
