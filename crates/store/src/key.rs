//! A key as a request names it.

/// A key and its hash, computed once for a request.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key as the client wrote it.
    pub bytes: &'a [u8],
    /// Decides shard, place and tag.
    pub hash: u64,
}
