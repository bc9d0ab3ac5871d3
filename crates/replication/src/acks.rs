//! How many replicas have a write: WAIT, WAITAOF and `min-replicas-to-write`.
//!
//! A replica counts while it is online. An offset that it acknowledged on an earlier connection
//! does not count, since it may have lost the data.

use crate::replica_link::{ReplicaLink, ReplicaState};

/// The copies of a write that WAITAOF waits for, and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableCopies {
    /// 1 for the own append-only file.
    pub local: u64,
    /// Replicas whose append-only file has it.
    pub replicas: u64,
}

impl DurableCopies {
    /// The copies of everything up to an offset, when the own file has `local` (`None` without
    /// one).
    pub fn of<'a>(
        links: impl IntoIterator<Item = &'a ReplicaLink>,
        local: Option<u64>,
        offset: u64,
    ) -> Self {
        let local = u64::from(local.is_some_and(|durable| durable >= offset));
        Self { local, replicas: count_durable(links, offset) }
    }

    /// Whether these are enough.
    pub fn meet(self, wanted: Self) -> bool {
        self.local >= wanted.local && self.replicas >= wanted.replicas
    }
}

/// `min-replicas-to-write` and `min-replicas-max-lag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinReplicas {
    /// The least number of replicas; 0 turns the rule off.
    pub to_write: u64,
    /// The greatest lag of a replica that counts, in seconds; 0 turns the rule off.
    pub max_lag: u64,
}

impl MinReplicas {
    /// `min_slaves_good_slaves`: the replicas that count. `None` if the rule is off.
    pub fn good_replicas<'a>(
        self,
        links: impl IntoIterator<Item = &'a ReplicaLink>,
        now_ms: u64,
    ) -> Option<u64> {
        let is_good = |link: &ReplicaLink| link.lag_seconds(now_ms) <= self.max_lag;
        (self.to_write > 0 && self.max_lag > 0).then(|| count(links, is_good))
    }

    /// Whether writes are allowed; otherwise they get -NOREPLICAS.
    pub fn allow_writes<'a>(
        self,
        links: impl IntoIterator<Item = &'a ReplicaLink>,
        now_ms: u64,
    ) -> bool {
        self.good_replicas(links, now_ms).is_none_or(|good| good >= self.to_write)
    }
}

/// The replicas that have applied everything up to an offset. A client that waits for more of them
/// makes the primary append REPLCONF GETACK.
pub fn count_applied<'a>(links: impl IntoIterator<Item = &'a ReplicaLink>, offset: u64) -> u64 {
    count(links, |link| link.applied() >= offset)
}

/// The replicas whose append-only file has everything up to an offset.
pub fn count_durable<'a>(links: impl IntoIterator<Item = &'a ReplicaLink>, offset: u64) -> u64 {
    count(links, |link| link.durable() >= offset)
}

fn count<'a>(
    links: impl IntoIterator<Item = &'a ReplicaLink>,
    counts: impl Fn(&ReplicaLink) -> bool,
) -> u64 {
    let online = links.into_iter().filter(|link| link.state() == ReplicaState::Online);
    online.filter(|link| counts(link)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replconf::ReplicaOptions;

    fn link(applied: u64, durable: Option<u64>, heard_ms: u64) -> ReplicaLink {
        let mut link = ReplicaLink::partial(ReplicaOptions::default(), Vec::new(), 0);
        link.handle_ack(applied, durable, heard_ms);
        link
    }

    #[test]
    fn replicas_count_by_what_they_acknowledged() {
        let mut loading = ReplicaLink::full(ReplicaOptions::default(), Vec::new(), false, 0);
        loading.handle_ack(200, Some(200), 0);
        let links = [link(100, Some(90), 0), link(99, None, 0), loading];
        let counts = |offset| (count_applied(&links, offset), count_durable(&links, offset));
        assert_eq!(counts(0), (2, 2));
        assert_eq!(counts(90), (2, 1));
        assert_eq!(counts(99), (2, 0));
        assert_eq!(counts(100), (1, 0));
        assert_eq!(counts(101), (0, 0));
        let copies = |local, offset| DurableCopies::of(&links, local, offset);
        let wanted = DurableCopies { local: 1, replicas: 1 };
        assert_eq!(copies(Some(90), 90), wanted);
        assert!(copies(Some(90), 90).meet(wanted));
        assert!(!copies(Some(89), 90).meet(wanted) && !copies(None, 0).meet(wanted));
        assert!(!copies(Some(91), 91).meet(wanted));
        assert!(copies(None, 90).meet(DurableCopies { local: 0, replicas: 1 }));
    }

    #[test]
    fn writes_need_replicas_that_were_heard_lately() {
        let links = [link(0, None, 0), link(0, None, 5_000)];
        let allowed = |to_write, max_lag, now_ms| {
            MinReplicas { to_write, max_lag }.allow_writes(&links, now_ms)
        };
        assert!(allowed(2, 10, 10_999));
        assert!(!allowed(2, 10, 11_000));
        assert!(allowed(1, 10, 15_999));
        assert!(!allowed(1, 10, 16_000));
        assert!(allowed(0, 10, 99_000) && allowed(5, 0, 99_000), "either 0 turns the rule off");
        let good = MinReplicas { to_write: 1, max_lag: 10 }.good_replicas(&links, 12_000);
        assert_eq!(good, Some(1));
    }
}
