//! The parameters of the append-only file.

use super::choices::Fsync;

/// The parameters of the append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table's row of the same name says what it means")]
pub struct AppendOnly {
    pub appendonly: bool,
    pub appendfilename: String,
    pub appenddirname: String,
    pub appendfsync: Fsync,
    pub no_appendfsync_on_rewrite: bool,
    /// Per cent; 0 for never.
    pub auto_aof_rewrite_percentage: u64,
    /// Bytes.
    pub auto_aof_rewrite_min_size: u64,
    pub aof_load_truncated: bool,
    pub aof_use_rdb_preamble: bool,
    pub aof_timestamp_enabled: bool,
    pub aof_rewrite_incremental_fsync: bool,
    pub aof_rewrite_cpulist: String,
    pub aof_disable_auto_gc: bool,
}

impl Default for AppendOnly {
    fn default() -> Self {
        Self {
            appendonly: false,
            appendfilename: "appendonly.aof".to_owned(),
            appenddirname: "appendonlydir".to_owned(),
            appendfsync: Fsync::EverySecond,
            no_appendfsync_on_rewrite: false,
            auto_aof_rewrite_percentage: 100,
            auto_aof_rewrite_min_size: 64 << 20,
            aof_load_truncated: true,
            aof_use_rdb_preamble: true,
            aof_timestamp_enabled: false,
            aof_rewrite_incremental_fsync: true,
            aof_rewrite_cpulist: String::new(),
            aof_disable_auto_gc: false,
        }
    }
}
