//! SIGTERM and SIGINT, on a thread of their own, so that they are received whatever the other
//! threads do.
//!
//! The first signal asks for the end of the server: it is noted, the log reports it immediately,
//! and the main thread takes it when it has time. SIGINT after another signal ends the process
//! immediately, as in Redis: an operator waits at a terminal. The data are then as after kill -9,
//! and the file that a save has begun is removed.
//!
//! Invariant: this thread waits for no other thread, neither for a lock nor for a log that is not
//! read. Work that may have to wait is done by a thread that ends soon, and is abandoned when it
//! does not.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sync::mailbox::Sender;
use sys::signal::{Signal, Signals};

use crate::system::server_log::warning;
use crate::threads::connection::Connection;
use crate::threads::message::Message;
use crate::threads::shared::SharedState;

/// How long a signal waits for its log line, and the end for the removal of files.
const WORDS_MAX: Duration = Duration::from_millis(300);

/// Starts the thread. The main thread can be reached.
///
/// # Errors
/// When the system refuses a thread.
pub fn start(signals: Signals, shared: &Arc<SharedState>) -> io::Result<()> {
    let main = shared.threads.handles.read().first().map(|main| main.mailbox.clone());
    let main = main.ok_or(io::ErrorKind::NotFound)?;
    let thread = SignalThread { shared: Arc::clone(shared), main, speaker: None };
    Builder::new().name("weft-signals".to_owned()).spawn(move || thread.run(&signals))?;
    Ok(())
}

struct SignalThread {
    shared: Arc<SharedState>,
    main: Sender<Message<Box<Connection>>>,
    /// The thread that writes the log line of the last signal.
    speaker: Option<JoinHandle<()>>,
}

impl SignalThread {
    fn run(mut self, signals: &Signals) {
        sys::crash::protect_thread();
        sys::crash::block_report_signals();
        loop {
            let signal = signals.wait();
            if self.shared.signalled.note(signal) && signal == Signal::Interrupt {
                self.end_process();
            }
            let node = &self.shared.node;
            if !node.is_shutting_down() {
                // The main thread may wait in SAVE, for slow commands.
                node.snapshots.give_up_pending();
            }
            // Before the main thread ends the process.
            self.tell(signal);
            self.main.send(Message::Signalled);
        }
    }

    fn tell(&mut self, signal: Signal) {
        // A log that is not read gets no more lines.
        if self.speaker.as_ref().is_some_and(|speaker| !speaker.is_finished()) {
            return;
        }
        let name = match signal {
            Signal::Terminate => "SIGTERM",
            Signal::Interrupt => "SIGINT",
        };
        self.speaker = within(WORDS_MAX, move || {
            warning!("Received {name} scheduling shutdown...");
        });
    }

    fn end_process(&self) -> ! {
        let shared = Arc::clone(&self.shared);
        within(WORDS_MAX, move || {
            shared.saves.unfinished.remove();
            warning!("Received SIGINT again, exiting at once without saving...");
        });
        sys::process::end_at_once(1)
    }
}

/// Has a thread do something, and waits for it, but not longer than so long.
fn within(limit: Duration, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let (done, over) = channel();
    let thread = Builder::new().name("weft-signalled".to_owned()).spawn(move || {
        work();
        // The waiting thread may have given up.
        let _ = done.send(());
    });
    let thread = thread.ok()?;
    let _ = over.recv_timeout(limit);
    Some(thread)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_not_read_is_not_waited_for() {
        let (sender, receiver) = channel::<()>();
        let work = move || while receiver.recv().is_ok() {};
        let speaker = within(Duration::from_millis(1), work).unwrap();
        assert!(!speaker.is_finished());
        drop(sender);
        speaker.join().unwrap();
    }
}
