//! The thread that syncs the append-only file under everysec, while the log is written.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use node::Node;
use persist::aof::PendingSync;

use super::aof_requests::{Caller, Request};
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::RealFile;

/// Starts it. It ends when the sender is dropped.
///
/// # Errors
/// When the system refuses a thread.
pub fn start(node: &Arc<Node>, caller: Caller) -> io::Result<Sender<PendingSync<RealFile>>> {
    let (sender, receiver) = channel::<PendingSync<RealFile>>();
    let node = Arc::clone(node);
    std::thread::Builder::new().name("weft-fsync".to_owned()).spawn(move || {
        CountedThread::run(&node, |memory| {
            for pending in receiver {
                caller.call(Request::Synced(pending.sync()));
                memory.publish();
            }
        });
    })?;
    Ok(sender)
}
