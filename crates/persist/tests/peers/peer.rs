//! Runs the server of a peer in a folder of its own, and sends requests to it.

use std::path::Path;

use test_support::{Client, Launch, Server, Value};

pub struct Peer {
    server: Server,
    client: Client,
}

impl Peer {
    /// Starts a server that loads the file of a folder, and waits until it is ready.
    pub fn start(program: &Path, folder: &Path) -> Self {
        Self::start_with(program, folder, &[])
    }

    /// The same with more arguments.
    pub fn start_with(program: &Path, folder: &Path, args: &[&str]) -> Self {
        let launch = Launch::program([program.to_str().unwrap()]).at(folder);
        let launch = launch.options(&["--enable-debug-command", "yes"]).options(args);
        let server = launch.start();
        Self { client: server.client(), server }
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.server.kill();
    }

    /// Sends a request and reads the reply.
    pub fn ask(&mut self, request: &[&[u8]]) -> Value {
        self.client.ask_args(request)
    }
}
