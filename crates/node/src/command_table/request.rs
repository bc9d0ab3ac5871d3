//! One parsed request.

use resp::Args;

use super::entry::Entry;

/// One parsed request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command it names, if there is one.
    pub entry: Option<&'static Entry>,
    /// Its arguments.
    pub args: Args<'a>,
    /// The hash of its key, when it has a single one.
    pub hash: Option<u64>,
}
