//! The load generator of the bench against servers inside the test.
#![forbid(unsafe_code)]
// A panic with a reason is how a test fails.
#![allow(clippy::unwrap_used)]

mod load;
mod paths;
