//! The waits of other clients that a command has ended: counting them, and waking their owners.

use super::accounting::{Run, account};
use super::worker::Worker;
use crate::host::ClientWaker;
use crate::state::waiter::{Waiter, WakeEvent};

impl Worker {
    /// Notifies owners of the events of their waits. No shard is held.
    pub fn deliver_wakes(&mut self, waker: &dyn ClientWaker) {
        for event in std::mem::take(&mut self.wake_events) {
            let waiter = match &event {
                WakeEvent::Served { waiter, tsc, error } => {
                    self.account_wait(waiter, *tsc, error.as_deref());
                    waiter
                }
                WakeEvent::RetrySooner(waiter) => waiter,
            };
            waker.wake_client(&waiter.record);
        }
    }

    /// Counts a run as one of the waiter's command, and notices a slow one. `tsc` is the time that
    /// ending the wait took, in TSC cycles.
    pub(crate) fn account_wait(&mut self, waiter: &Waiter, tsc: u64, error: Option<&str>) {
        if let Some(error) = error {
            self.stats.note_error(error);
        }
        let entry = &self.table.entries()[usize::from(waiter.command())];
        let (record, tsc) = (&waiter.record, waiter.tsc + tsc);
        let args = &waiter.args();
        let run = || Run { record, entry, args, reply: None, end_tsc: None };
        account(self, entry, error.is_none(), tsc, run);
    }
}
