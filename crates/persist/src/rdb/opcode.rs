//! The opcodes between the values of a file.

/// Slots that Valkey was importing: a name, ranges of slots.
pub(super) const SLOT_IMPORT: u8 = 243;
/// A slot of the cluster and the number of its keys.
pub(super) const SLOT_INFO: u8 = 244;
/// A library of functions.
pub(super) const FUNCTION: u8 = 245;
/// The same as the release candidates of Redis 7 wrote it.
pub(super) const FUNCTION_PREVIEW: u8 = 246;
/// Data of a module other than keys.
pub(super) const MODULE_AUX: u8 = 247;
/// Seconds since the last use of the next key.
pub(super) const IDLE: u8 = 248;
/// How often the next key is used.
pub(super) const FREQUENCY: u8 = 249;
/// Metadata of the file: a name and a value.
pub(super) const AUX: u8 = 250;
/// How many keys the database has.
pub(super) const RESIZE_DB: u8 = 251;
/// When the next key expires, in milliseconds.
pub(super) const EXPIRES_AT_MS: u8 = 252;
/// The same in seconds.
pub(super) const EXPIRES_AT_SECONDS: u8 = 253;
/// The database of the keys that follow.
pub(super) const SELECT_DB: u8 = 254;
/// The end. The checksum follows.
pub(crate) const END: u8 = 255;
