//! The parameters of saving: `save` and those of RDB files.

use super::choices::UnknownData;

/// A condition of `save`: enough time has passed and enough keys have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last save.
    pub seconds: u32,
    /// Changes since then.
    pub changes: u32,
}

/// The parameters of RDB files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Saving {
    /// When the keyspace is saved automatically; empty means never.
    pub save: Vec<SavePoint>,
    /// Whether a line or option has set save points, so that the next line adds to them.
    pub(super) points_given: PointsGiven,
    pub dbfilename: String,
    pub rdbcompression: bool,
    pub rdbchecksum: bool,
    pub rdb_load_unknown: UnknownData,
    pub rdb_save_incremental_fsync: bool,
    pub stop_writes_on_bgsave_error: bool,
    pub bgsave_cpulist: String,
    pub rdb_del_sync_files: bool,
    /// Microseconds for each key; -N means one microsecond after N keys.
    pub rdb_key_save_delay: i64,
    pub key_load_delay: i64,
    /// RESTORE does not verify checksums, after DEBUG SET-SKIP-CHECKSUM-VALIDATION. No parameter
    /// sets this.
    pub restores_unchecked: bool,
}

impl Default for Saving {
    fn default() -> Self {
        let points = [(3600, 1), (300, 100), (60, 10_000)];
        let points = points.map(|(seconds, changes)| SavePoint { seconds, changes });
        Self {
            save: points.to_vec(),
            points_given: PointsGiven(false),
            dbfilename: "dump.rdb".to_owned(),
            rdbcompression: true,
            rdbchecksum: true,
            rdb_load_unknown: UnknownData::Refuse,
            rdb_save_incremental_fsync: true,
            stop_writes_on_bgsave_error: true,
            bgsave_cpulist: String::new(),
            rdb_del_sync_files: false,
            rdb_key_save_delay: 0,
            key_load_delay: 0,
            restores_unchecked: false,
        }
    }
}

/// A state of the loader, which does not distinguish configurations.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointsGiven(pub(super) bool);

impl PartialEq for PointsGiven {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PointsGiven {}

impl Saving {
    /// Makes the next save points replace the present ones.
    pub(super) fn begin_points(&mut self) {
        self.points_given = PointsGiven(false);
    }
}
