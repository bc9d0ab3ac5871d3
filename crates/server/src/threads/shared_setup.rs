//! Creates the state that all threads share, and the main thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use node::config::Config;
use node::{Node, Worker};
use parking_lot::Mutex;

use super::control::Control;
use super::garbage::Garbage;
use super::io_thread::IoThread;
use super::shared::SharedState;
use super::signalled::Signalled;
use super::thread_list::{ThreadList, ThreadMailbox};
use crate::disk::aof_handle::AppendOnlyFile;
use crate::disk::saves::Saves;
use crate::http::MetricsService;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::log_slot::LogSlot;
use crate::system::files;
use crate::system::process_figures::ProcessFigures;
use crate::system::processors::bind_to_processors;
use crate::system::server_log::notice;
use crate::system::thread_notifier::ThreadNotifier;

/// Shards of a standalone server.
const SHARDS: usize = 1024;

pub(crate) fn share(config: &Config, config_file: String) -> Result<Arc<SharedState>, String> {
    let seed = base::random::entropy_seed();
    let node = Arc::new(Node::new(config.clone(), seed, SHARDS));
    let read = |path: &str| std::fs::read(path).map_err(|error| files::reason(&error));
    node.load_users(read)?;
    warn_of_disabled_users(&node);
    let executable = std::env::current_exe().unwrap_or_default().to_string_lossy().into_owned();
    let cpus = config.bio_cpulist.clone();
    let garbage = Garbage::start(&node, move || bind_to_processors("bio-cpulist", &cpus))
        .map_err(|error| error.to_string())?;
    let threads = Arc::new(ThreadList::default());
    let notifier: Arc<dyn ThreadNotifier> = Arc::clone(&threads) as _;
    let keyspace = Arc::new(SharedKeyspace::new(Arc::clone(&node), SHARDS, Arc::clone(&notifier)));
    let log = Arc::new(LogSlot::new(Arc::clone(&node), notifier));
    Ok(Arc::new_cyclic(|me| SharedState {
        me: me.clone(),
        node,
        control: Mutex::new(Control::new(executable, config_file)),
        append_only: Arc::new(AppendOnlyFile::new(&keyspace, &log)),
        garbage,
        saves: Saves::new(&keyspace),
        signalled: Signalled::default(),
        log,
        metrics: MetricsService::default(),
        // No other thread has begun yet.
        process: Arc::new(ProcessFigures::new()),
        cron_is_shared: AtomicBool::new(false),
        keyspace,
        threads,
    }))
}

/// A disabled user may be intended, or its rules lack the word `on`.
fn warn_of_disabled_users(node: &Node) {
    for user in node.users.read().iter().filter(|user| !user.is_enabled()) {
        let name = String::from_utf8_lossy(user.name());
        notice!("The user '{name}' is disabled: its rules do not have the word 'on'.");
    }
}

pub(crate) fn main_thread(shared: &Arc<SharedState>) -> Result<IoThread, String> {
    let post = ThreadMailbox::new().map_err(|error| error.to_string())?;
    let seed = base::random::entropy_seed();
    let rate = sys::clock::tsc_per_micro();
    let table = shared.node.table;
    let worker = Worker::new(Arc::clone(&shared.node), 0, table, seed, rate);
    shared.threads.handles.write().push(post.handle.clone());
    IoThread::new(Arc::clone(shared), worker, post).map_err(|error| error.to_string())
}
