//! Starts the load threads on a server and measures one window; before that, makes its data.
//!
//! `conduct` leads the threads through the window.

use std::ops::ControlFlow;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use super::batch::Batches;
use super::conduct::{Conductor, WorkerEvent};
use super::dial::Dialer;
use super::fill::{fill_slots, prepare};
use super::keys::ThreadIndex;
use super::outcome::{Observer, WindowOutcome};
use super::schedule::SendSchedule;
use super::signals::{LoadPhase, ThreadSignals};
use super::spec::{LoadSpec, WindowExtent};
use super::subscribers::Listeners;
use super::template::Template;
use super::worker::{Counts, LoadThread, LoadThreadSetup};
use super::workload::Workload;
use crate::Error;
use crate::client::cluster::{ClusterNode, discover};
use crate::client::session::{ServerEndpoint, ServerSession};
use crate::servers::pin::allow_open_files;

/// Files that the process has open in addition to the clients' sockets.
const SPARE_FILES: u64 = 64;

/// The most connections that are subscribed while a workload runs.
const SUBSCRIBERS_MAX: u64 = 1000;

/// Whether a workload can be sent under a load: what can be known without a server.
///
/// # Errors
/// Why not.
pub fn check(row: &Workload, load: &LoadSpec) -> Result<(), Error> {
    if load.clients == 0 || load.threads == 0 || load.pipeline == 0 {
        return Err(Error::Usage("clients, threads and pipeline must be at least 1".into()));
    }
    if load.extent == WindowExtent::Requests(0) {
        return Err(Error::Usage("there must be at least 1 request".into()));
    }
    for text in [row.prepare, row.fill].into_iter().flatten() {
        Template::compile(text, &load.shape)?;
    }
    Batches::new(row, load, ThreadIndex::ONLY, None).map(drop)
}

/// Loads a server with one workload and measures one window. `pid` is the server's process, for its
/// CPU time.
///
/// # Errors
/// Options make no sense, a connection fails, or the server stalls. Error replies are not
/// errors here: see [`WindowOutcome::errors`].
pub fn drive(
    endpoint: &ServerEndpoint,
    row: &Workload,
    load: &LoadSpec,
    pid: Option<u32>,
    observe: Observer<'_>,
) -> Result<WindowOutcome, Error> {
    check(row, load)?;
    let mut nodes = nodes(endpoint, load)?;
    nodes.iter_mut().for_each(|node| node.endpoint = loaded_endpoint(&node.endpoint, row));
    if load.clients < nodes.len() {
        let text = format!("the cluster has {} nodes: use as many clients", nodes.len());
        return Err(Error::Usage(text));
    }
    let files = SUBSCRIBERS_MAX + SPARE_FILES;
    allow_open_files((load.clients as u64).saturating_add(files))?;
    let _listeners = row.subscribers.map(|who| Listeners::open(endpoint, who)).transpose()?;
    let threads = load.threads.min(load.clients);
    let signals: Vec<ThreadSignals> =
        (0..threads).map(|_| ThreadSignals::new()).collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let (sender, events) = channel();
        let mut conductor = Conductor::new(&signals, events, pid);
        for index in 0..threads {
            let (sender, signals, nodes) = (sender.clone(), &signals[index], &nodes);
            let spawned = std::thread::Builder::new().name(format!("load-{index}")).spawn_scoped(
                scope,
                move || {
                    let result =
                        work(nodes, row, load, ThreadIndex { index, threads }, signals, &sender);
                    let _ = sender.send(WorkerEvent::Finished(result.map(Box::new)));
                },
            );
            if let Err(source) = spawned {
                conductor.enter(LoadPhase::Stop, Instant::now());
                return Err(Error::io("start a load thread")(source));
            }
        }
        let outcome = conductor.conduct(load, observe);
        conductor.enter(LoadPhase::Stop, Instant::now());
        outcome
    })
}

/// Prepares a server for a workload and, if `fill` is set, makes the data that it expects.
///
/// # Errors
/// The connection fails, or the server refuses.
pub fn make_ready(
    endpoint: &ServerEndpoint,
    row: &Workload,
    load: &LoadSpec,
    fill: bool,
) -> Result<(), Error> {
    make_ready_observed(endpoint, row, load, fill, &mut |_| ControlFlow::Continue(()))
}

/// The same; `observe` sees which share of the data is made, and may end it.
///
/// # Errors
/// As of [`make_ready`], or `observe` ended it.
pub fn make_ready_observed(
    endpoint: &ServerEndpoint,
    row: &Workload,
    load: &LoadSpec,
    fill: bool,
    observe: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let nodes = nodes(endpoint, load)?;
    let count = nodes.len() as f64;
    for (index, ClusterNode { endpoint, slots }) in nodes.into_iter().enumerate() {
        let mut observe = |share| observe((index as f64 + share) / count);
        if let Some(text) = row.prepare {
            prepare(&mut ServerSession::open(&endpoint)?, text, &load.shape, load.seed)?;
        }
        if let Some(text) = row.fill.filter(|_| fill) {
            let mut session = ServerSession::open(&endpoint)?;
            let (shape, seed, slots) = (&load.shape, load.seed, slots.as_ref());
            fill_slots(&mut session, text, shape, seed, slots, &mut observe)?;
        }
    }
    Ok(())
}

/// The servers under load.
fn nodes(endpoint: &ServerEndpoint, load: &LoadSpec) -> Result<Vec<ClusterNode>, Error> {
    match load.cluster {
        true => discover(endpoint),
        false => Ok(vec![ClusterNode::single(endpoint)]),
    }
}

/// The endpoint of the connections under load, with the user of the workload.
fn loaded_endpoint(endpoint: &ServerEndpoint, row: &Workload) -> ServerEndpoint {
    let mut endpoint = endpoint.clone();
    if let Some(user) = row.user {
        endpoint.user = Some(user.name.into());
        endpoint.password = Some(user.password.into());
    }
    endpoint
}

/// The whole work of a load thread.
fn work(
    nodes: &[ClusterNode],
    row: &Workload,
    load: &LoadSpec,
    thread: ThreadIndex,
    signals: &ThreadSignals,
    sender: &Sender<WorkerEvent>,
) -> Result<Counts, Error> {
    load.cpus.one(thread.index).pin_thread()?;
    let worker = LoadThread::new(signals, set_up(nodes, row, load, thread)?)?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let _ = sender.send(WorkerEvent::Ready(tid));
    worker.run(|| {
        let _ = sender.send(WorkerEvent::Spent);
    })
}

/// Prepares the requests and connections of one load thread.
fn set_up(
    nodes: &[ClusterNode],
    row: &Workload,
    load: &LoadSpec,
    thread: ThreadIndex,
) -> Result<LoadThreadSetup, Error> {
    let ThreadIndex { index, threads } = thread;
    let links = thread.share(load.clients as u64) as usize;
    // The nodes take turns over the connections of all threads.
    let before = load.clients / threads * index + (load.clients % threads).min(index);
    let greetings = || [row.greeting, load.greeting].into_iter().flatten();
    let open = |link: usize| {
        let node = (before + link) % nodes.len();
        let mut session = ServerSession::open(&nodes[node].endpoint)?;
        for text in greetings() {
            prepare(&mut session, text, &load.shape, load.seed)?;
        }
        Ok((session.into_stream(), node))
    };
    let streams = (0..links).map(open).collect::<Result<Vec<_>, Error>>()?;
    let batches = nodes.iter().map(|node| Batches::new(row, load, thread, node.slots.as_ref()));
    let greeting = greetings().collect::<Vec<_>>().join(" ; ");
    let greeting = (!greeting.is_empty()).then_some(greeting.as_str());
    let dialers = nodes.iter().filter(|_| load.reconnects);
    let dialers = dialers.map(|node| Dialer::new(&node.endpoint, greeting, &load.shape));
    let schedule = load.rate.map(|rate| {
        let batches = rate / load.pipeline as f64 * links as f64 / load.clients as f64;
        SendSchedule::new(links, batches, index as f64 / threads as f64)
    });
    Ok(LoadThreadSetup {
        streams,
        batches: batches.collect::<Result<_, _>>()?,
        dialers: dialers.collect::<Result<_, _>>()?,
        schedule,
        pipeline: load.pipeline,
        quota: match load.extent {
            WindowExtent::Time(_) => None,
            WindowExtent::Requests(count) => Some(thread.share(count)),
        },
    })
}
