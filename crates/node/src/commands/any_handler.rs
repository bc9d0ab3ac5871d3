//! Handlers of families whose commands are executed in different ways.

use engine::Handler;

use crate::command_table::entry::Call;
use crate::command_table::script_call::ScriptCall;
use crate::execution::node_cx::NodeHandler;

/// The handler of a row in such a family.
#[derive(Clone, Copy)]
pub(super) enum AnyHandler {
    /// A command on data.
    Data(Handler),
    /// A command on sessions or the server.
    Node(NodeHandler),
    /// EXEC.
    Exec,
    /// A script or function.
    Script(ScriptCall),
}

impl AnyHandler {
    /// How the command is executed.
    pub(super) fn call(self) -> Call {
        match self {
            Self::Data(handler) => Call::Data(handler),
            Self::Node(_) => Call::Node,
            Self::Exec => Call::Exec,
            Self::Script(call) => Call::Script(call),
        }
    }

    /// The handler of a command on sessions or the server.
    pub(super) fn node(self) -> Option<NodeHandler> {
        if let Self::Node(handler) = self { Some(handler) } else { None }
    }
}
