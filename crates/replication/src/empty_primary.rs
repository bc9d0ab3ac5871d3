//! Whether a replica with data takes the empty dataset of its primary.
//!
//! A primary without persistence that restarts is empty, and a full synchronization would then wipe
//! the last copies of its data. With `replica-refuse-empty-sync yes` the replica keeps them. A
//! REPLICAOF that was typed since the last synchronization is the operator's consent.

use std::fmt;

/// The facts that decide.
#[derive(Clone, Copy, Debug)]
pub struct EmptySync<'a> {
    /// `replica-refuse-empty-sync`.
    pub is_refused: bool,
    /// Whether the replica has keys or functions.
    pub holds_data: bool,
    /// Whether the received RDB file has keys or functions.
    pub brings_data: bool,
    /// The run id of the primary at the last synchronization, if the replica had one.
    pub last_run_id: Option<&'a [u8]>,
    /// The run id of the primary now, if its INFO tells it.
    pub run_id: Option<&'a [u8]>,
    /// Whether REPLICAOF was typed since the last synchronization.
    pub replicaof_typed: bool,
}

/// The refusal of an empty dataset. It prints as the line for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyPrimaryRefused;

impl fmt::Display for EmptyPrimaryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "The master has restarted without data. This replica keeps its own \
             ('replica-refuse-empty-sync yes') and will try again. To take the empty dataset, run \
             REPLICAOF again; to serve the data of this replica, run REPLICAOF NO ONE.",
        )
    }
}

impl std::error::Error for EmptyPrimaryRefused {}

impl EmptySync<'_> {
    /// Decides about a complete RDB file whose checksum is right.
    ///
    /// # Errors
    /// If the replica keeps its data and tries again later. An unknown run id counts as a new one.
    pub fn check(&self) -> Result<(), EmptyPrimaryRefused> {
        let is_same_run = self.run_id.is_some() && self.run_id == self.last_run_id;
        let wipes = self.holds_data && !self.brings_data;
        match self.is_refused && wipes && !is_same_run && !self.replicaof_typed {
            true => Err(EmptyPrimaryRefused),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_restarted_primary_is_refused() {
        let refused = EmptySync {
            is_refused: true,
            holds_data: true,
            brings_data: false,
            last_run_id: Some(b"a"),
            run_id: Some(b"b"),
            replicaof_typed: false,
        };
        assert_eq!(refused.check(), Err(EmptyPrimaryRefused));
        for accepted in [
            EmptySync { is_refused: false, ..refused },
            EmptySync { holds_data: false, ..refused },
            EmptySync { brings_data: true, ..refused },
            EmptySync { run_id: Some(b"a"), ..refused },
            EmptySync { replicaof_typed: true, ..refused },
        ] {
            assert_eq!(accepted.check(), Ok(()), "{accepted:?}");
        }
        for (last_run_id, run_id) in
            [(None, None), (Some(&b"a"[..]), None), (None, Some(&b"a"[..]))]
        {
            let unknown = EmptySync { last_run_id, run_id, ..refused };
            assert_eq!(unknown.check(), Err(EmptyPrimaryRefused), "{unknown:?}");
        }
    }
}
