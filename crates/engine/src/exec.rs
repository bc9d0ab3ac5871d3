//! The handler of a data command, and how its effect is sealed.
//!
//! `node::execution::scope` has locked the shards before a handler is called; its result goes back
//! to the `Executor`.

use resp::{Args, Reply};

use store::{CommandWriter, SentCommand};

use crate::blocking::BlockRequest;
use crate::cx::Cx;
use crate::error::Error;

/// A data command: reads the arguments after its name, reads and edits values, and replies once or
/// returns an error.
pub type Handler = fn(&mut Cx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// A data command that may wait for a key: instead of replying it may return its wait.
pub type BlockingHandler =
    fn(&mut Cx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<Option<BlockRequest>, Error>;

/// Seals the effect of the command that has just run: unless it named another command, it is
/// replayed as it was sent. The shards it changed are still locked.
#[inline]
pub fn seal(cx: &mut Cx<'_>, sent: &Args<'_>) {
    let (db, unix_ms) = (cx.db, cx.turn.unix_ms);
    cx.turn.effects.seal(db, unix_ms, SentRequest(sent));
}

/// The request of the command that runs.
struct SentRequest<'a>(&'a Args<'a>);

impl SentCommand for SentRequest<'_> {
    #[inline]
    fn encoded(&self) -> Option<&[u8]> {
        self.0.encoded()
    }

    fn write(self, replay: &mut CommandWriter<'_>) {
        (0..self.0.len()).for_each(|at| write_arg(replay, self.0, at));
    }
}

/// Writes an argument of a request into the command by which it is replayed.
#[inline]
pub fn write_arg(replay: &mut CommandWriter<'_>, args: &Args<'_>, at: usize) {
    match args.own(at) {
        Some(own) => replay.own(own),
        None => replay.arg(args.text(at)),
    }
}
