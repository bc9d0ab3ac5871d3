//! A new base of the append-only file, written on a thread of its own from a snapshot.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use node::Node;
use node::config::Config;
use node::state::snapshots::SaveProgress;
use persist::aof::{BaseFormat, NewBase, WholeBase};

use super::rdb_sink::{RdbOptions, SyncedSink, rdb_options};
use super::snapshot_job::{Pacing, SnapshotJob, WalkError};
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::RealFile;

/// Bytes of a base between two syncs.
const SYNC_BYTES: u64 = 4 << 20;

/// A base that will be written.
pub struct Rewrite {
    node: Arc<Node>,
    /// The snapshot that it is written from.
    pub job: SnapshotJob,
    pub base: NewBase<RealFile>,
    pub format: BaseFormat,
    /// How a base in the RDB format is written.
    pub rdb: RdbOptions,
    /// The time in seconds since 1970, if the commands contain it: `aof-timestamp-enabled`.
    pub unix_seconds: Option<i64>,
    /// `aof-rewrite-incremental-fsync`.
    pub syncs: bool,
    /// `aof-rewrite-cpulist`.
    pub cpus: String,
}

/// Cancels a rewrite, and shows its progress.
#[derive(Clone, Debug, Default)]
pub struct RewriteWatch {
    /// Set when the base is no longer wanted.
    pub cancel: Arc<AtomicBool>,
    pub progress: Arc<SaveProgress>,
}

impl Rewrite {
    /// A base as a configuration asks for it.
    pub fn new(
        job: SnapshotJob,
        base: NewBase<RealFile>,
        node: &Arc<Node>,
        config: &Config,
    ) -> Self {
        let rdb = rdb_options(node, config, true);
        let config = &config.append_only;
        let unix_seconds = sys::clock::unix_micros().div_euclid(1_000_000);
        Self {
            node: Arc::clone(node),
            job,
            base,
            format: format_of(config.aof_use_rdb_preamble),
            rdb,
            unix_seconds: config.aof_timestamp_enabled.then_some(unix_seconds),
            syncs: config.aof_rewrite_incremental_fsync,
            cpus: config.aof_rewrite_cpulist.clone(),
        }
    }

    /// Writes it and makes it certain, which may take long.
    ///
    /// # Errors
    /// Why it is not whole.
    pub fn run(
        self,
        watch: &RewriteWatch,
        memory: &CountedThread<'_>,
    ) -> Result<WholeBase, String> {
        let Self { node, job, mut base, format, rdb, unix_seconds, syncs, .. } = self;
        let pacing = Pacing {
            cancel: &watch.cancel,
            progress: &watch.progress,
            key_delay_us: &|| node.config().saving.rdb_key_save_delay,
            publish: &|| memory.publish(),
        };
        let result = match format {
            BaseFormat::Rdb => {
                let every_bytes = syncs.then_some(SYNC_BYTES);
                let sink = SyncedSink { sink: base.sink(), every_bytes, synced: 0 };
                job.write_to(sink, &rdb, pacing).map(drop)
            }
            BaseFormat::Commands => job.write_commands(&mut base, unix_seconds, pacing),
        };
        result.map_err(|error| match error {
            WalkError::Sink(error) => error.to_string(),
            WalkError::Cancelled => "it is no longer wanted".to_owned(),
            WalkError::Lost => "a part of the data was not seen".to_owned(),
        })?;
        base.finish().map_err(|error| error.to_string())
    }
}

/// The form of bases for `aof-use-rdb-preamble`.
pub fn format_of(as_rdb: bool) -> BaseFormat {
    if as_rdb { BaseFormat::Rdb } else { BaseFormat::Commands }
}

/// Starts the thread that writes a base, and hands its result to `done`.
///
/// # Errors
/// When the system refuses a thread.
pub fn start(
    rewrite: Rewrite,
    watch: RewriteWatch,
    done: impl FnOnce(Result<WholeBase, String>) + Send + 'static,
) -> io::Result<()> {
    std::thread::Builder::new().name("weft-rewrite".to_owned()).spawn(move || {
        crate::system::processors::bind_to_processors("aof-rewrite-cpulist", &rewrite.cpus);
        let node = Arc::clone(&rewrite.node);
        CountedThread::run(&node, |memory| done(rewrite.run(&watch, memory)));
    })?;
    Ok(())
}
