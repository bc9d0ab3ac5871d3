//! Invariants of all servers together, checked at every moment.

use std::collections::HashMap;

use replication::replid::ReplicationId;

/// The state after a byte: of the stream, and of writes that left none.
pub fn digest_after(digest: u64, byte: u8) -> u64 {
    (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17) | 1
}

/// All states that servers were in.
#[derive(Default)]
pub struct Oracle {
    /// By id and offset; 0 where no server has been.
    states: HashMap<ReplicationId, Vec<u64>>,
    /// The greatest offset that each server reached with an id.
    reached: HashMap<(usize, ReplicationId), u64>,
    violation: Option<String>,
}

impl Oracle {
    /// A server is at an offset of a history. Every server that ever is there has the same state.
    pub fn state(&mut self, server: usize, id: ReplicationId, offset: u64, digest: u64) {
        let states = self.states.entry(id).or_default();
        let at = offset as usize;
        if states.len() <= at {
            states.resize(at + 1, 0);
        }
        if states[at] != 0 && states[at] != digest {
            self.violate(format!("server {server} has another byte at {id} {offset}"));
        } else {
            states[at] = digest;
        }
        let reached = self.reached.entry((server, id)).or_default();
        *reached = offset.max(*reached);
    }

    /// A primary says that so many replicas have everything up to an offset.
    pub fn acknowledged(&mut self, primary: usize, id: ReplicationId, offset: u64, count: u64) {
        let has = |server: &usize| self.has_reached(*server, id, offset);
        let others = (0..super::world::SERVERS).filter(|server| *server != primary);
        let actual = others.filter(has).count() as u64;
        if actual < count {
            self.violate(format!("{count} ACKs at {id} {offset}, but {actual} servers have it"));
        }
    }

    /// Whether a server has ever had everything up to an offset.
    pub fn has_reached(&self, server: usize, id: ReplicationId, offset: u64) -> bool {
        self.reached.get(&(server, id)).is_some_and(|reached| *reached >= offset)
    }

    /// Whether servers were in the same state at an offset of two histories.
    pub fn is_common(&self, ids: [ReplicationId; 2], offset: u64) -> bool {
        let [one, other] = ids.map(|id| self.states.get(&id)?.get(offset as usize));
        one.is_some_and(|state| *state != 0) && one == other
    }

    /// Keeps the first violation.
    pub fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The first violation.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }
}
