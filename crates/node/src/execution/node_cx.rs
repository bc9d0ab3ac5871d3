//! What commands on sessions and the server work with.

use engine::Error;
use resp::{Args, Reply};

use crate::clients::session::Session;
use crate::execution::outcome::Outcome;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, GatedHost, Host, NodeShards};

/// What a command on sessions or the server does.
pub type NodeHandler = fn(&mut NodeCx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// The context of one command.
pub struct NodeCx<'a> {
    /// The thread's means, the shared state among them.
    pub worker: &'a mut Worker,
    /// The client that sent the request.
    pub session: &'a mut Session,
    /// The command.
    pub entry: &'static Entry,
    /// All shards, one at a time.
    pub shards: &'a dyn NodeShards,
    pub(crate) host: GatedHost<'a>,
    /// What happens after the reply, unless the command fails.
    pub outcome: Outcome,
}

impl NodeCx<'_> {
    /// Leaves the gate, uses services of the process and enters again. Other commands may run
    /// meanwhile, and no shard may be visited.
    pub(crate) fn outside<R>(&self, work: impl FnOnce(&dyn Host) -> R) -> R {
        self.host.outside(self.shards, work)
    }

    /// Waits until every command that another thread has begun is over.
    pub(crate) fn barrier(&self) {
        self.shards.barrier();
    }

    /// What may be used inside the gate.
    pub(crate) fn waker(&self) -> &dyn ClientWaker {
        self.host.waker()
    }
}
