//! The versions of this build, and the commit of its source.
//!
//! The builder names the commit in the environment: `WEFT_GIT_SHA1` is its hash, 8 digits or more,
//! and `WEFT_GIT_DIRTY` the number of lines that were changed since. Without them the commit is
//! unknown, which Redis writes as zeros.

/// The version of Redis whose behaviour clients find here: they choose commands by it.
pub const COMPAT_VERSION: &str = "8.0.6";
/// The version of Weft.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The hash of the commit.
pub const GIT_SHA1: &str = match option_env!("WEFT_GIT_SHA1") {
    Some(hash) => hash,
    None => "00000000",
};
/// How many lines were changed since the commit.
pub const GIT_DIRTY: &str = match option_env!("WEFT_GIT_DIRTY") {
    Some(lines) => lines,
    None => "0",
};

/// A number that builds of the same version, commit and kind have in common, in hexadecimal digits.
pub fn build_id() -> String {
    let kind = if cfg!(debug_assertions) { "debug" } else { "release" };
    let build = format!("{VERSION} {GIT_SHA1} {GIT_DIRTY} {kind}");
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(build.as_bytes()))
}
