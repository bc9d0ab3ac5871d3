//! The thread of the metrics: its start and its end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use node::Node;
use node::config::Config;
use parking_lot::Mutex;
use sys::eventfd::EventFd;

use super::connections::Connections;
use super::source::{AnswerSource, StopEvent};
use crate::net::listener::{ListenAddress, Listener};
use crate::system::counted_thread::CountedThread;
use crate::system::process_figures::ProcessFigures;
use crate::system::server_log::notice;

/// The thread, if there is one.
#[derive(Debug, Default)]
pub(crate) struct MetricsService(Mutex<Option<MetricsThread>>);

#[derive(Debug)]
struct MetricsThread {
    stop: Arc<StopEvent>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsService {
    /// Listens where a configuration says, and stops listening where an earlier one said.
    ///
    /// # Errors
    /// A sentence. Nothing listens then.
    pub(crate) fn follow(
        &self,
        node: &Arc<Node>,
        process: &Arc<ProcessFigures>,
        config: &Config,
    ) -> Result<(), String> {
        let mut running = self.0.lock();
        // A new socket may have the port of an old one.
        drop(running.take());
        if config.metrics.is_on() {
            *running = Some(MetricsThread::start(node, process, config)?);
        }
        Ok(())
    }

    pub(crate) fn end(&self) {
        drop(self.0.lock().take());
    }
}

impl MetricsThread {
    fn start(
        node: &Arc<Node>,
        process: &Arc<ProcessFigures>,
        config: &Config,
    ) -> Result<Self, String> {
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
        let stop = Arc::new(StopEvent::new(event));
        let mut connections = Connections::new(listeners, &stop).map_err(failed)?;
        let (node, process) = (Arc::clone(node), Arc::clone(process));
        let thread = std::thread::Builder::new().name("weft-metrics".to_owned());
        let serve = move || {
            CountedThread::run(&node, |memory| {
                connections.serve(&mut AnswerSource::new(&node, &process, memory));
            });
        };
        let thread = thread.spawn(serve).map_err(failed)?;
        notice!("Serving metrics over HTTP on port {port}");
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for MetricsThread {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
