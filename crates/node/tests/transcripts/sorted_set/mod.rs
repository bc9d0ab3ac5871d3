//! Sorted sets: one file for each kind of use. Transcripts whose replies must not depend on the
//! encoding run twice, with small sets and with big ones.

use crate::check::check;

mod add;
mod combine;
mod many;
mod pop;
mod range;
mod read;
mod remove;
mod wait;

/// Checks a transcript with small sets packed, and again with every set big.
#[track_caller]
fn check_both(transcript: &str) {
    check(transcript);
    check(&format!("> CONFIG SET zset-max-listpack-entries 0\nOK\n{transcript}"));
}
