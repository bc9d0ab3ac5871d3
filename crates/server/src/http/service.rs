//! The thread of the metrics: its start, its end, and what it tells.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use node::config::Config;
use node::stats::metrics::Unwell;
use parking_lot::Mutex;
use sys::eventfd::EventFd;

use super::connections::Connections;
use crate::disk::background::CountedThread;
use crate::net::listener::{ListenAddress, Listener};
use crate::notice;
use crate::process::host;
use crate::threads::clock::time_at;
use crate::threads::shared::Shared;

/// For so long the same text is sent: however many ask, little time is spent on writing it.
const METRICS_KEPT: Duration = Duration::from_millis(100);

/// The thread, if there is one.
#[derive(Debug, Default)]
pub(crate) struct MetricsService(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// Ends the thread.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) event: EventFd,
    is_set: AtomicBool,
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
}

impl MetricsService {
    /// Listens where a configuration says, and no more where an earlier one said.
    ///
    /// # Errors
    /// A sentence. Nothing listens then.
    pub(crate) fn follow(&self, shared: &Shared, config: &Config) -> Result<(), String> {
        let mut running = self.0.lock();
        // A new socket may have the port of an old one.
        drop(running.take());
        if config.metrics.is_on() {
            *running = Some(Running::start(shared, config)?);
        }
        Ok(())
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        drop(self.0.lock().take());
    }
}

impl Running {
    fn start(shared: &Shared, config: &Config) -> Result<Self, String> {
        let port = config.metrics.port;
        let failed = |error: io::Error| format!("Could not serve metrics on port {port}: {error}");
        let mut listeners = Vec::new();
        for address in ListenAddress::of_metrics(config) {
            listeners.extend(Listener::open(&address, config)?);
        }
        if listeners.is_empty() {
            return Err(format!(
                "Could not serve metrics on port {port}: none of the addresses in 'metrics-bind' \
                 exists on this machine"
            ));
        }
        let event = EventFd::new().map_err(failed)?;
        let stop = Arc::new(Stop { event, is_set: AtomicBool::new(false) });
        let mut connections = Connections::new(listeners, &stop).map_err(failed)?;
        let shared = shared.me.upgrade().ok_or_else(|| "the server ends".to_owned())?;
        let thread = std::thread::Builder::new().name("weft-metrics".to_owned());
        let serve = move || {
            CountedThread::run(&shared.node, |memory| {
                connections.serve(&mut Source { shared: &shared, memory, kept: None });
            });
        };
        let thread = thread.spawn(serve).map_err(failed)?;
        notice!("Serving metrics over HTTP on port {port}");
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.is_set.store(true, Ordering::Release);
        self.stop.event.signal();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where answers come from.
pub(super) struct Source<'a> {
    shared: &'a Shared,
    memory: &'a CountedThread<'a>,
    /// The text that was written last, and when.
    kept: Option<(Instant, Arc<[u8]>)>,
}

impl Source<'_> {
    /// All metrics, as they are or were a moment ago.
    pub(super) fn metrics(&mut self) -> Arc<[u8]> {
        if let Some((since, text)) = &self.kept
            && since.elapsed() < METRICS_KEPT
        {
            return Arc::clone(text);
        }
        let shared = self.shared;
        let used = &shared.node.used_memory;
        used.add_rest(sys::thread_end::take_rest());
        let used_bytes = used.sum(self.memory.own(), sys::allocator::thread_bytes());
        let process = host::figures(shared, used_bytes);
        let text = shared.node.metrics(&process, time_at(sys::clock::tsc()));
        let text: Arc<[u8]> = text.into_bytes().into();
        self.kept = Some((Instant::now(), Arc::clone(&text)));
        text
    }

    /// Whether the server serves.
    pub(super) fn health(&self) -> Result<(), Unwell> {
        self.shared.node.health()
    }

    /// What CLIENT PAUSE holds back at the moment, if anything.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let (node, steady_ms) = (&self.shared.node, time_at(sys::clock::tsc()).steady_ms);
        match () {
            () if node.is_paused(false, steady_ms) => Some("all commands"),
            () if node.is_paused(true, steady_ms) => Some("writes"),
            () => None,
        }
    }

    /// Lets others see the memory that this thread has taken.
    pub(super) fn publish(&self) {
        self.memory.publish();
    }
}
