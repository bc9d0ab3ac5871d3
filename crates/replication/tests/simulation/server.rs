//! A server: its history, its data, its role, and what changes them.

use std::collections::BTreeMap;

use base::random::Random;
use replication::failover::{Failover, FailoverOptions, FailoverStep};
use replication::history::{ReplicationHistory, SecondId};
use replication::psync::BacklogRange;
use replication::replica_link::ReplicaLink;
use replication::replid::ReplicationId;
use replication::retry::SyncRetries;

use super::downstream::Downstream;
use super::network::{ConnectionId, Network};
use super::oracle::{Oracle, digest_after};
use super::upstream::Upstream;
use super::world::Plant;

/// The network, the randomness and the counts of all servers.
pub struct Shared {
    pub net: Network,
    pub oracle: Oracle,
    pub random: Random,
    pub plant: Option<Plant>,
    /// How often something happened, so that a test sees that it did.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Shared {
    pub fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn has_plant(&self, plant: Plant) -> bool {
        self.plant == Some(plant)
    }

    pub fn random_bytes(&mut self) -> [u8; 20] {
        std::array::from_fn(|_| self.random.next_u64() as u8)
    }

    pub fn new_id(&mut self) -> ReplicationId {
        ReplicationId::from_random(self.random_bytes())
    }
}

/// The data of a server and their place in a history; also what it saved of them.
#[derive(Clone)]
pub struct Dataset {
    pub history: ReplicationHistory,
    pub digest: u64,
    /// The values of all writes.
    pub values: Vec<u8>,
    /// The end of the stream.
    pub backlog: Vec<u8>,
}

impl Dataset {
    pub fn first_offset(&self) -> u64 {
        self.history.next_offset() - self.backlog.len() as u64
    }
}

pub struct Server {
    pub index: usize,
    pub data: Dataset,
    pub saved: Dataset,
    pub primary: Option<usize>,
    pub upstream: Option<Upstream>,
    pub retries: SyncRetries,
    /// The stream was broken, so the next synchronization is full.
    pub must_sync_fully: bool,
    pub downstreams: BTreeMap<ConnectionId, Downstream>,
    /// A planted fault keeps links of closed connections here.
    pub ghosts: Vec<ReplicaLink>,
    pub failover: Failover,
    /// Until when the server is down.
    pub down_until_ms: u64,
    pub pinged_ms: u64,
    /// The offset at which the server took its id.
    pub common_to: u64,
    /// `repl-backlog-size`.
    pub backlog_bytes_max: usize,
    /// Whether writes leave a stream: not after the backlog expired, until a replica comes.
    pub has_backlog: bool,
}

impl Server {
    pub fn new(index: usize, shared: &mut Shared) -> Self {
        let history = ReplicationHistory::new(shared.new_id());
        let data = Dataset { history, digest: 1, values: Vec::new(), backlog: Vec::new() };
        Self {
            index,
            saved: data.clone(),
            data,
            primary: None,
            upstream: None,
            retries: SyncRetries::new(),
            must_sync_fully: false,
            downstreams: BTreeMap::new(),
            ghosts: Vec::new(),
            failover: Failover::default(),
            down_until_ms: 0,
            pinged_ms: 0,
            common_to: 0,
            backlog_bytes_max: 200 + shared.random.below(4_000) as usize,
            has_backlog: true,
        }
    }

    pub fn is_down(&self, shared: &Shared) -> bool {
        shared.net.now_ms < self.down_until_ms
    }

    pub fn link_up(&self) -> bool {
        self.upstream.as_ref().is_some_and(Upstream::is_streaming)
    }

    pub fn backlog_range(&self) -> Option<BacklogRange> {
        let range =
            BacklogRange { first: self.data.first_offset(), bytes: self.data.backlog.len() as u64 };
        self.has_backlog.then_some(range)
    }

    /// Appends bytes of the stream: its own as a primary, those of its primary as a replica.
    pub fn append(&mut self, bytes: &[u8], shared: &mut Shared) {
        let (id, mut offset) = (self.data.history.id(), self.data.history.offset());
        for byte in bytes {
            offset += 1;
            self.data.digest = digest_after(self.data.digest, *byte);
            shared.oracle.state(self.index, id, offset, self.data.digest);
        }
        self.data.history.advance(bytes.len() as u64);
        self.data.backlog.extend_from_slice(bytes);
    }

    /// A client's write, which may be refused.
    pub fn write(&mut self, shared: &mut Shared) {
        if self.primary.is_some() || self.failover.pauses_writes() || self.is_down(shared) {
            return;
        }
        let writes = if shared.chance(4) { 2 + shared.random.below(9) } else { 1 };
        let mut stream = Vec::new();
        let push = replication::wire::push_command;
        if writes > 1 {
            push(&mut stream, &[b"MULTI"]);
        }
        for _ in 0..writes {
            let len = 1 + shared.random.below(40);
            let letter = |_| b'a' + shared.random.below(26) as u8;
            let value: Vec<u8> = (0..len).map(letter).collect();
            push(&mut stream, &[b"SET", b"k", &value]);
            self.data.values.extend(value);
        }
        if writes > 1 {
            push(&mut stream, &[b"EXEC"]);
        }
        if self.has_backlog {
            self.append(&stream, shared);
        } else {
            // The state changes, but no offset shows it.
            let digest = stream.iter().fold(self.data.digest, |d, byte| digest_after(d, *byte));
            self.data.digest = digest;
            shared.count("write without a stream");
        }
    }

    /// A client waits with WAIT: the primary asks for ACKs.
    pub fn ask_for_acks(&mut self, shared: &mut Shared) {
        let is_primary = self.primary.is_none() && !self.failover.pauses_writes();
        if is_primary && self.has_backlog && !self.is_down(shared) {
            self.append(replication::wire::GETACK, shared);
        }
    }

    pub fn links(&self) -> impl Iterator<Item = &ReplicaLink> {
        self.downstreams.values().filter_map(|replica| replica.link.as_ref()).chain(&self.ghosts)
    }

    /// Begins a history that continues the current one.
    pub fn begin_new(&mut self, shared: &mut Shared) {
        let history = &mut self.data.history;
        history.begin_new(shared.new_id());
        let planted = history.second().and_then(|SecondId { id, offset }| match shared.plant {
            Some(Plant::SecondOffset) => Some(SecondId { id, offset: offset - 1 }),
            Some(Plant::EndlessSecondId) => Some(SecondId { id, offset: u64::MAX }),
            _ => None,
        });
        if planted.is_some() {
            *history = ReplicationHistory::restored(history.id(), planted, history.offset());
        }
        self.changed_history(shared);
    }

    /// The history has another id, which replicas must learn.
    pub fn changed_history(&mut self, shared: &mut Shared) {
        self.note_state(shared);
        self.ghosts.clear();
        self.common_to = self.data.history.offset();
        for connection in std::mem::take(&mut self.downstreams).into_keys() {
            shared.net.cut(connection, &mut shared.random);
        }
    }

    /// REPLICAOF.
    pub fn replicaof(&mut self, primary: Option<usize>, shared: &mut Shared) {
        if self.failover.pauses_writes() || primary == Some(self.index) || self.primary == primary {
            return;
        }
        self.follow(primary, shared);
    }

    fn follow(&mut self, primary: Option<usize>, shared: &mut Shared) {
        if let Some(upstream) = self.upstream.take() {
            shared.net.cut(upstream.connection, &mut shared.random);
        }
        self.retries = SyncRetries::new();
        self.must_sync_fully = false;
        if self.primary.is_some() && primary.is_none() {
            shared.count("promotion");
            self.begin_new(shared);
        }
        self.primary = primary;
        self.has_backlog = true;
    }

    /// Promotes itself for `PSYNC .. FAILOVER`.
    pub fn promote(&mut self, shared: &mut Shared) {
        self.follow(None, shared);
    }

    /// The server ends and starts again, with all its data or with those it saved last.
    pub fn restart(&mut self, shared: &mut Shared) {
        let is_crash = shared.chance(2);
        shared.count(if is_crash { "crash" } else { "restart" });
        if is_crash {
            self.data = self.saved.clone();
        }
        shared.net.reset(self.index);
        self.downstreams.clear();
        self.ghosts.clear();
        self.upstream = None;
        self.retries = SyncRetries::new();
        self.must_sync_fully = false;
        self.failover = Failover::default();
        self.has_backlog = true;
        self.down_until_ms = shared.net.now_ms + shared.random.below(3_000);
        if self.primary.is_none() && !shared.has_plant(Plant::SameIdAfterCrash) {
            self.begin_new(shared);
        }
        self.saved = self.data.clone();
    }

    /// The backlog of a primary without replicas expires.
    pub fn expire_backlog(&mut self, shared: &mut Shared) {
        if self.primary.is_some() || !self.downstreams.is_empty() || self.failover.pauses_writes() {
            return;
        }
        shared.count("expired backlog");
        self.has_backlog = false;
        self.data.backlog.clear();
        if !shared.has_plant(Plant::SameIdAfterExpiry) {
            self.data.history.begin_unrelated(shared.new_id());
        }
    }

    /// Writes leave a stream again, because a replica comes.
    pub fn create_backlog(&mut self, shared: &mut Shared) {
        if !self.has_backlog {
            self.has_backlog = true;
            self.note_state(shared);
        }
    }

    pub fn note_state(&self, shared: &mut Shared) {
        let history = &self.data.history;
        shared.oracle.state(self.index, history.id(), history.offset(), self.data.digest);
    }

    /// FAILOVER, with a last GETACK before writes are paused.
    pub fn start_failover(&mut self, shared: &mut Shared) {
        self.ask_for_acks(shared);
        let timeout_ms = Some(100 + shared.random.below(4_000));
        let links: Vec<&ReplicaLink> = self.links().collect();
        let target = links.get(shared.random.below(4) as usize);
        let target = target.map(|link| (link.ip().to_vec(), link.options().listening_port));
        let force = target.is_some() && shared.chance(2);
        let options = FailoverOptions { target, force, timeout_ms };
        let mut failover = std::mem::take(&mut self.failover);
        let is_replica = self.primary.is_some();
        let now_ms = shared.net.now_ms;
        if failover.start(options, is_replica, self.links(), now_ms).is_ok() {
            shared.count("failover");
        }
        self.failover = failover;
    }

    /// The failover goes on.
    pub fn drive_failover(&mut self, shared: &mut Shared) {
        let mut failover = std::mem::take(&mut self.failover);
        let step = failover.poll(self.links(), self.data.history.offset(), shared.net.now_ms);
        self.failover = failover;
        self.finish_failover(step, shared);
    }

    /// FAILOVER ABORT.
    pub fn abort_failover(&mut self, shared: &mut Shared) {
        let step = self.failover.abort().ok();
        self.finish_failover(step, shared);
    }

    pub fn finish_failover(&mut self, step: Option<FailoverStep>, shared: &mut Shared) {
        match step {
            Some(FailoverStep::Switch { port, is_forced, .. }) => {
                shared.count(if is_forced { "forced switch" } else { "switch" });
                let target = port as usize;
                let history = &self.data.history;
                let (id, offset) = (history.id(), history.offset());
                if !is_forced && !shared.oracle.has_reached(target, id, offset) {
                    shared.oracle.violate(format!("failover to {target} loses writes"));
                }
                self.follow(Some(target), shared);
            }
            Some(FailoverStep::Done) => shared.count("failover done"),
            Some(FailoverStep::Aborted { was_switching: true, .. }) => {
                shared.count("failover taken back");
                self.follow(None, shared);
            }
            Some(FailoverStep::Aborted { .. }) | None => {}
        }
    }
}
