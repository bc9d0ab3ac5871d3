//! Connections that are subscribed while a workload runs, and a thread that reads their messages.
//!
//! The CPU time of the thread does not count as load. It ends when the listeners are dropped.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::workload::SubscriberPlan;
use crate::Error;
use crate::client::session::{ServerEndpoint, ServerSession};
use crate::client::stream::ServerStream;

/// Subscriptions whose confirmations are awaited together.
const NAMES_AT_ONCE: usize = 1000;
/// Bytes read from a connection in one call.
const READ_BYTES: usize = 256 * 1024;
/// The time between two checks of the end, in nanoseconds.
const LOOK_NANOS: i64 = 50_000_000;

/// The open connections.
pub(super) struct Listeners {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listeners {
    /// Subscribes, and starts to read.
    pub(super) fn open(endpoint: &ServerEndpoint, who: SubscriberPlan) -> Result<Self, Error> {
        let open = |command: &str, names: &[String]| {
            let mut session = ServerSession::open(endpoint)?;
            for names in names.chunks(NAMES_AT_ONCE) {
                session.ask_each(command, names)?;
            }
            let stream = session.into_stream();
            stream.set_nonblocking(true).map_err(Error::io("stop waiting on a socket"))?;
            Ok(stream)
        };
        let streams: Result<Vec<ServerStream>, Error> = match who {
            SubscriberPlan::Channel(channel, count) => {
                (0..count).map(|_| open("SUBSCRIBE", &[channel.to_owned()])).collect()
            }
            SubscriberPlan::Patterns(count) => {
                let names: Vec<String> = (0..count).map(|n| format!("other:{n}:*")).collect();
                Ok(vec![open("PSUBSCRIBE", &names)?])
            }
        };
        let (streams, over) = (streams?, Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&over);
        let builder = std::thread::Builder::new().name("listeners".to_owned());
        let thread = builder.spawn(move || {
            // After a failure here the load goes on without listeners, and shows it.
            let _ = listen(streams, &ends);
        });
        let thread = Some(thread.map_err(Error::io("start the thread of listeners"))?);
        Ok(Self { over, thread })
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(mut streams: Vec<ServerStream>, over: &AtomicBool) -> std::io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (index, stream) in streams.iter().enumerate() {
        epoll::add(&epoll, stream, EventData::new_u64(index as u64), EventFlags::IN)?;
    }
    let mut buffer = vec![0; READ_BYTES];
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let patience = Timespec { tv_sec: 0, tv_nsec: LOOK_NANOS };
    while !over.load(Ordering::Relaxed) {
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&epoll, spare, Some(&patience)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let index = event.data.u64() as usize;
            match streams[index].pull(&mut buffer, |_| Ok(())) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
