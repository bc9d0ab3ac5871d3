//! The thread that frees large values, so that no thread that serves clients does.
//!
//! INFO shows how many values of keys wait for it and how many it has freed. The bytes that wait
//! are counted, so that eviction treats them as free. When more than [`WAITING_BYTES_MAX`] wait,
//! which happens only if clients make and remove large values faster than one thread frees them,
//! the threads that remove values free those themselves that take at most a few milliseconds.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};

use node::Node;
use store::lazy_free::BigPiece;

/// Bytes that may wait before other threads help.
const WAITING_BYTES_MAX: i64 = 512 << 20;
/// The largest piece that they help with, in bytes: it takes about 2 ms.
const HELPED_BYTES_MAX: i64 = 2 << 20;

/// The way of dropped values to the thread that frees them.
pub struct Garbage {
    node: Arc<Node>,
    sender: Sender<Vec<BigPiece>>,
}

impl Garbage {
    /// Starts the thread, which calls `begin` first.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(node: &Arc<Node>, begin: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let counts = Arc::clone(node);
        std::thread::Builder::new().name("weft-free".to_owned()).spawn(move || {
            sys::crash::protect_thread();
            sys::crash::block_report_signals();
            begin();
            free(&receiver, &counts);
        })?;
        Ok(Self { node: Arc::clone(node), sender })
    }

    /// Passes these pieces to the thread.
    pub fn send(&self, mut pieces: Vec<BigPiece>) {
        if self.node.used_memory.backlog.bytes() > WAITING_BYTES_MAX {
            let is_helped_with = |piece: &mut BigPiece| piece.bytes() <= HELPED_BYTES_MAX;
            for BigPiece { piece, waiting } in pieces.extract_if(.., is_helped_with) {
                self.node.lazy_freed.fetch_add(piece.values() as u64, Ordering::Relaxed);
                drop(piece);
                drop(waiting);
            }
        }
        self.send_all(pieces);
    }

    /// The same for a thread that waits for nothing.
    pub fn send_all(&self, pieces: Vec<BigPiece>) {
        self.node.lazy_free_pending.fetch_add(values(&pieces), Ordering::Relaxed);
        // Without the thread, they are dropped here.
        let _ = self.sender.send(pieces);
    }
}

/// Frees pieces until all senders are gone.
fn free(receiver: &Receiver<Vec<BigPiece>>, node: &Node) {
    let used = &node.used_memory;
    for pieces in receiver {
        for BigPiece { piece, waiting } in pieces {
            let values = piece.values() as u64;
            drop(piece);
            // In this order, so that no keys are evicted for memory that is free.
            used.end_turn(&used.background, sys::allocator::thread_bytes(), 1);
            drop(waiting);
            node.lazy_free_pending.fetch_sub(values, Ordering::Relaxed);
            node.lazy_freed.fetch_add(values, Ordering::Relaxed);
        }
    }
}

fn values(pieces: &[BigPiece]) -> u64 {
    pieces.iter().map(|big| big.piece.values() as u64).sum()
}
