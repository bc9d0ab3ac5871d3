//! The contents of answers, and the event that ends the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use httparse::Request;
use node::Node;
use node::metrics::Unwell;
use sys::eventfd::EventFd;

use super::host::{RefusalNotice, foreign_host};
use crate::system::clock::time_at;
use crate::system::counted_thread::CountedThread;
use crate::system::process_figures::ProcessFigures;
use crate::system::server_log::notice;

/// How long the same text is sent, so that many requests cost little time.
const METRICS_KEPT: Duration = Duration::from_millis(100);

/// Ends the thread.
#[derive(Debug)]
pub(super) struct StopEvent {
    pub(super) event: EventFd,
    is_set: AtomicBool,
}

impl StopEvent {
    pub(super) fn new(event: EventFd) -> Self {
        Self { event, is_set: AtomicBool::new(false) }
    }

    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.event.signal();
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
}

/// Where answers come from.
pub(super) struct AnswerSource<'a> {
    node: &'a Node,
    process: &'a ProcessFigures,
    memory: &'a CountedThread<'a>,
    /// The text that was written last, and when.
    kept: Option<(Instant, Arc<[u8]>)>,
    refusals: RefusalNotice,
}

impl<'a> AnswerSource<'a> {
    pub(super) fn new(
        node: &'a Node,
        process: &'a ProcessFigures,
        memory: &'a CountedThread<'a>,
    ) -> Self {
        Self { node, process, memory, kept: None, refusals: RefusalNotice::default() }
    }

    /// All metrics, as they are or were a moment ago.
    pub(super) fn metrics(&mut self) -> Arc<[u8]> {
        if let Some((since, text)) = &self.kept
            && since.elapsed() < METRICS_KEPT
        {
            return Arc::clone(text);
        }
        let used = &self.node.used_memory;
        used.add_rest(sys::thread_end::take_rest());
        let used_bytes = used.sum(self.memory.own(), sys::allocator::thread_bytes());
        let process = self.process.info(self.node, used_bytes);
        let text = self.node.metrics(&process, time_at(sys::clock::tsc()));
        let text: Arc<[u8]> = text.into_bytes().into();
        self.kept = Some((Instant::now(), Arc::clone(&text)));
        text
    }

    /// Whether a request is for this server, by the hosts that it names. Logs some that are not.
    pub(super) fn is_for_here(&mut self, request: &Request<'_, '_>) -> bool {
        let Some(host) = foreign_host(request, &self.node.config().metrics) else { return true };
        if let Some(line) = self.refusals.line(&host, Instant::now()) {
            notice!("{line}");
        }
        false
    }

    /// Whether the server serves.
    pub(super) fn health(&self) -> Result<(), Unwell> {
        self.node.health()
    }

    /// The commands that CLIENT PAUSE stops at the moment, if any.
    pub(super) fn paused(&self) -> Option<&'static str> {
        let (node, steady_ms) = (self.node, time_at(sys::clock::tsc()).steady_ms);
        match () {
            () if node.is_paused(false, steady_ms) => Some("all commands"),
            () if node.is_paused(true, steady_ms) => Some("writes"),
            () => None,
        }
    }

    /// Publishes the memory that this thread has taken.
    pub(super) fn publish(&self) {
        self.memory.publish();
    }
}
