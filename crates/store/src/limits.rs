//! The sizes up to which collections keep their small forms.

/// The longest string, key, member or element, whatever `proto-max-bulk-len` says: lengths in
/// records and packed lists have 32 bits, and include what surrounds a text. It leaves room for the
/// rest of its request, which is limited to 3 GB.
pub const STRING_BYTES_MAX: u64 = (3 << 30) - (1 << 20);

/// The limits of small forms. All but the last are named like their parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingLimits {
    /// Fields of a packed hash.
    pub hash_max_listpack_entries: u64,
    /// Bytes of each field and value of a packed hash.
    pub hash_max_listpack_value: u64,
    /// Bytes of a sparse HyperLogLog.
    pub hll_sparse_max_bytes: u64,
    /// Chunks at each end of a list that are not compressed; 0 compresses none.
    pub list_compress_depth: u32,
    /// Size of a packed list and of each chunk of a long one: elements when positive; -1 to -5 mean
    /// 4, 8, 16, 32 and 64 KB.
    pub list_max_listpack_size: i32,
    /// Members of a set of integers that is kept sorted.
    pub set_max_intset_entries: u64,
    /// Members of a packed set.
    pub set_max_listpack_entries: u64,
    /// Bytes of each member of a packed set.
    pub set_max_listpack_value: u64,
    /// Bytes of a chunk of a stream; 0 for no limit.
    pub stream_node_max_bytes: u64,
    /// Entries of a chunk of a stream; 0 for no limit.
    pub stream_node_max_entries: u64,
    /// Members of a packed sorted set.
    pub zset_max_listpack_entries: u64,
    /// Bytes of each member of a packed sorted set.
    pub zset_max_listpack_value: u64,
    /// Bytes of a packed set, sorted set or hash and of sorted integers, whatever the other limits
    /// say. It has no parameter: 1 GB, as for Redis's listpack, and less in tests.
    pub packed_bytes_max: usize,
}

impl Default for EncodingLimits {
    fn default() -> Self {
        Self {
            hash_max_listpack_entries: 512,
            hash_max_listpack_value: 64,
            hll_sparse_max_bytes: 3000,
            list_compress_depth: 0,
            list_max_listpack_size: -2,
            set_max_intset_entries: 512,
            set_max_listpack_entries: 128,
            set_max_listpack_value: 64,
            stream_node_max_bytes: 4096,
            stream_node_max_entries: 100,
            zset_max_listpack_entries: 128,
            zset_max_listpack_value: 64,
            packed_bytes_max: 1 << 30,
        }
    }
}
