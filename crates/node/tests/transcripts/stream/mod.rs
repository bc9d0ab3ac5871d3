//! Streams: one file for each subject, as in the engine.

mod add;
mod claim;
mod delete;
mod group;
mod info;
mod lag;
mod newer;
mod pending;
mod range;
mod read;
mod read_group;
mod trim;
mod waiting;
