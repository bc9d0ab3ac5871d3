//! The exclusive slot among scripts: the script that has it is the only one that may wait for a
//! shard while it holds others.

use parking_lot::MutexGuard;

use super::executor::Executor;
use super::outcome::Outcome;
use crate::host::ShardLocks;
use crate::state::script_registry::Scripting;

/// Exclusive among scripts, until dropped.
pub(crate) struct ExclusiveScript<'a, L: ShardLocks> {
    // Released first.
    _slot: MutexGuard<'a, ()>,
    _after: AfterSlot<'a, L>,
}

struct AfterSlot<'a, L: ShardLocks>(&'a L);

impl<L: ShardLocks> Drop for AfterSlot<'_, L> {
    fn drop(&mut self) {
        self.0.left_exclusive_slot();
    }
}

impl<'e, L: ShardLocks> Executor<'e, L> {
    /// Makes a script the only one that may wait for shards.
    ///
    /// # Errors
    /// Another script has the slot. The client waits for that, or gets an error if the other script
    /// is busy.
    pub(crate) fn take_exclusive_slot<'a>(
        &mut self,
        scripting: &'a Scripting,
    ) -> Result<ExclusiveScript<'a, L>, Outcome>
    where
        'e: 'a,
    {
        if let Some(slot) = scripting.exclusive.try_lock() {
            let slot = ExclusiveScript { _slot: slot, _after: AfterSlot(self.locks) };
            if self.locks.keeps_exclusive_slot() {
                return Ok(slot);
            }
        }
        if let Some(refusal) = scripting.busy.waiting() {
            return Err(self.worker.refuse_for(refusal));
        }
        self.locks.wait_for_exclusive_slot();
        Err(Outcome::NotExclusive)
    }

    /// Writes the lines that scripts have logged.
    pub(crate) fn write_script_log(&mut self) {
        if self.worker.script_log.is_empty() {
            return;
        }
        let log = std::mem::take(&mut self.worker.script_log);
        self.host.outside(self.locks, |host| log.write(host));
    }
}
