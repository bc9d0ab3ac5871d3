//! The context of commands on sessions and the server.

use engine::{Error, LockedShards, ScriptError, Visited};
use resp::{Args, Reply};

use crate::clients::session::Session;
use crate::command_table::entry::Entry;
use crate::execution::after_grace::AfterGrace;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, GateAccess, GatedHost, Host};

/// The handler of a command on sessions or the server.
pub type NodeHandler = fn(&mut NodeCx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// The context of one command.
pub struct NodeCx<'a> {
    /// The thread's worker, with the shared state.
    pub worker: &'a mut Worker,
    /// The client that sent the request.
    pub session: &'a mut Session,
    /// The command.
    pub entry: &'static Entry,
    /// All shards, one at a time, for a command whose row says that it visits them.
    pub shards: LockedShards<'a>,
    pub(crate) gate: &'a dyn GateAccess,
    /// Reads the TSC.
    pub(crate) tsc: &'a dyn Fn() -> u64,
    pub(crate) host: GatedHost<'a>,
    /// What happens after the reply, unless the command fails.
    pub outcome: Outcome,
    /// It runs in a transaction or a script.
    pub is_nested: bool,
}

impl NodeCx<'_> {
    /// Leaves the gate, uses services of the process and enters again. Other commands may run
    /// meanwhile, and no shard may be visited.
    pub(crate) fn outside<R>(&self, work: impl FnOnce(&dyn Host) -> R) -> R {
        self.host.outside(self.gate, work)
    }

    /// Makes what was prepared [outside](Self::outside) count, while still there: goes inside for
    /// `commit`, which waits for nothing. Returns false, and the client is closed without a reply,
    /// if it has been killed meanwhile: the killer has not waited for who was outside. It does for
    /// a transaction, which has not left the gate and is executed whole.
    pub(crate) fn commit(&self, commit: impl FnOnce()) -> bool {
        self.gate.enter();
        let has_left = matches!(self.shards, LockedShards::Each(_));
        let is_admitted = !(has_left && self.session.record.location.is_killed());
        if is_admitted {
            commit();
        }
        self.gate.leave();
        is_admitted
    }

    /// What the same request has kept, when it was executed before and had to wait for a shard.
    pub(crate) fn take_visited(&self) -> Visited {
        match self.shards {
            LockedShards::Each(_) => self.session.record.take_visited().unwrap_or_default(),
            _ => Visited::default(),
        }
    }

    /// Keeps what a request has come to that has to wait for a shard, until it is executed again.
    ///
    /// # Errors
    /// It waits.
    pub(crate) fn keep_visited(&self, visited: Visited) -> Result<(), Error> {
        self.session.record.keep_visited(visited);
        Err(ScriptError::ShardInUse.into())
    }

    /// Leaves `rest`, and the reply, to be done when every command that others have begun is over.
    /// Commands that begin later see what was written before, and none of them is delayed. `rest`
    /// returns what happens after the reply.
    pub(crate) fn after_grace(
        &mut self,
        rest: impl FnOnce(&mut Worker, &dyn Host) -> Outcome + Send + 'static,
    ) {
        self.outcome = AfterGrace::outcome(rest);
    }

    /// What may be used inside the gate.
    pub(crate) fn waker(&self) -> &dyn ClientWaker {
        self.host.waker()
    }
}
