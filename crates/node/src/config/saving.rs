//! When and how the keyspace is saved: `save` and what belongs to it.

/// A point of `save`: after so many seconds, if so many keys have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last save.
    pub seconds: u32,
    /// Changes since then.
    pub changes: u32,
}

/// What parameters say of RDB files; each field is called as its parameter.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Saving {
    /// When the keyspace is saved by itself. None: never.
    pub save: Vec<SavePoint>,
    /// A line or option has named points, and further ones are added to them.
    pub(super) points_given: bool,
    pub dbfilename: String,
    pub rdbcompression: bool,
    pub rdbchecksum: bool,
    pub rdb_save_incremental_fsync: bool,
    pub stop_writes_on_bgsave_error: bool,
    pub bgsave_cpulist: String,
    pub rdb_del_sync_files: bool,
    /// Microseconds for each key, or one after so many keys when negative.
    pub rdb_key_save_delay: i64,
    pub key_load_delay: i64,
    /// RESTORE takes payloads whatever their checksum: DEBUG SET-SKIP-CHECKSUM-VALIDATION. No
    /// parameter sets it.
    pub restores_unchecked: bool,
}

impl Default for Saving {
    fn default() -> Self {
        let points = [(3600, 1), (300, 100), (60, 10_000)];
        let points = points.map(|(seconds, changes)| SavePoint { seconds, changes });
        Self {
            save: points.to_vec(),
            points_given: false,
            dbfilename: "dump.rdb".to_owned(),
            rdbcompression: true,
            rdbchecksum: true,
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

impl Eq for Saving {}

/// What is said counts, and not from where.
impl PartialEq for Saving {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |own: &Self| (own.rdb_key_save_delay, own.key_load_delay);
        let flags = |own: &Self| {
            (
                own.rdbcompression,
                own.rdbchecksum,
                own.rdb_save_incremental_fsync,
                own.stop_writes_on_bgsave_error,
                own.restores_unchecked,
            )
        };
        (&self.save, &self.dbfilename, &self.bgsave_cpulist, self.rdb_del_sync_files)
            == (&other.save, &other.dbfilename, &other.bgsave_cpulist, other.rdb_del_sync_files)
            && numbers(self) == numbers(other)
            && flags(self) == flags(other)
    }
}

impl Saving {
    /// The points that come next replace those that there are.
    pub(super) fn begin_points(&mut self) {
        self.points_given = false;
    }
}
