//! Strings. What replies do not show (encodings, sharing, hits and misses) is checked in `engine`.

mod compare;
mod count;
mod get;
mod lcs;
mod range;
mod set;
