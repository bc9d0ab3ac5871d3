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
    pub(crate) tsc: &'a dyn Fn() -> u64,
    pub(crate) host: GatedHost<'a>,
    /// The outcome after the reply, unless the command fails.
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

    /// Applies a change that was prepared [outside](Self::outside): enters the gate for `commit`,
    /// which waits for nothing. Returns false if the client was killed meanwhile, and is closed
    /// without a reply: the thread that kills does not wait for commands outside the gate. It waits
    /// for a transaction, which has not left the gate and is executed whole.
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

    /// The progress that the same request has kept when it had to wait for a shard.
    pub(crate) fn take_visited(&self) -> Visited {
        match self.shards {
            LockedShards::Each(_) => self.session.record.take_visited().unwrap_or_default(),
            _ => Visited::default(),
        }
    }

    /// Keeps the progress of a request that has to wait for a shard, until it is executed again.
    ///
    /// # Errors
    /// It waits.
    pub(crate) fn keep_visited(&self, visited: Visited) -> Result<(), Error> {
        self.session.record.keep_visited(visited);
        Err(ScriptError::ShardInUse.into())
    }

    /// Defers `rest`, and the reply, until all commands that have begun on other threads are over.
    /// Commands that begin later see earlier writes, and are not delayed. `rest` returns the
    /// outcome after the reply.
    pub(crate) fn after_grace(
        &mut self,
        rest: impl FnOnce(&mut Worker, &dyn Host) -> Outcome + Send + 'static,
    ) {
        self.outcome = AfterGrace::outcome(rest);
    }

    /// The service that may be used inside the gate.
    pub(crate) fn waker(&self) -> &dyn ClientWaker {
        self.host.waker()
    }
}
