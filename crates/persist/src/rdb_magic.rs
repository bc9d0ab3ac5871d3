//! The words with which RDB files begin.

/// In files of Redis, before 4 digits of version.
pub(crate) const REDIS: &[u8] = b"REDIS";
/// In files of Valkey 9, before 3 digits of version.
pub(crate) const VALKEY: &[u8] = b"VALKEY";
/// The longest of them.
pub const RDB_MAGIC_BYTES_MAX: usize = VALKEY.len();

/// Whether a file that begins with these bytes is an RDB file.
pub fn has_rdb_magic(start: &[u8]) -> bool {
    start.starts_with(REDIS) || start.starts_with(VALKEY)
}
