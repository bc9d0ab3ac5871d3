//! Strings. `engine` tests encodings, sharing, hits and misses, which replies do not show.

mod compare;
mod count;
mod get;
mod lcs;
mod range;
mod set;
