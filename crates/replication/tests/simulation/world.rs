//! Four servers, clients, and faults; everything follows from one seed.

use std::collections::BTreeMap;

use base::random::Random;

use super::network::Network;
use super::oracle::Oracle;
use super::server::{Server, Shared};

pub const SERVERS: usize = 4;
/// `repl-timeout`.
pub const TIMEOUT_MS: u64 = 8_000;
const STEPS: u64 = 1_500;
const CONVERGENCE_STEPS: u64 = 4_000;

/// A fault that the simulation has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The second id ends one byte too early.
    SecondOffset,
    /// The second id has no end.
    EndlessSecondId,
    /// A primary that lost writes in a crash keeps its id.
    SameIdAfterCrash,
    /// A primary whose backlog expired keeps its id.
    SameIdAfterExpiry,
    /// A receiver misses a mark that two reads share.
    MarkSplit,
    /// The stream follows a mark before the first ACK, and the replica works like the peers.
    StreamBeforeAck,
    /// The link of a closed connection still counts.
    AckCountedTwice,
    /// A unit that was cut off is taken.
    HalfUnit,
}

/// The end of a run without a violation.
#[derive(Debug, PartialEq, Eq)]
pub struct Converged {
    /// How often something happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// The last state, which differs for nearly all other runs.
    pub digest: u64,
}

struct World {
    servers: Vec<Server>,
    shared: Shared,
}

/// Runs a seed: some faults, then none until all servers are equal.
pub fn run(seed: u64, plant: Option<Plant>) -> Result<Converged, String> {
    let mut shared = Shared {
        net: Network::new(),
        oracle: Oracle::default(),
        random: Random::new(seed),
        plant,
        counts: BTreeMap::new(),
    };
    let servers = (0..SERVERS).map(|index| Server::new(index, &mut shared)).collect();
    let mut world = World { servers, shared };
    // A primary, two replicas and a chained one.
    world.follow([None, Some(0), Some(0), Some(1)]);
    // Seeds differ in how much happens.
    let calm = 1 + world.shared.random.below(6);
    for _ in 0..STEPS {
        world.cause_trouble(calm);
        world.step()?;
    }
    let mut primaries: Vec<usize> = (0..SERVERS).collect();
    for index in (1..SERVERS).rev() {
        primaries.swap(index, world.shared.random.below(index as u64 + 1) as usize);
    }
    let mut tree = [None; SERVERS];
    tree[primaries[1]] = Some(primaries[0]);
    tree[primaries[2]] = Some(primaries[0]);
    tree[primaries[3]] = Some(primaries[1]);
    world.follow(tree);
    for _ in 0..CONVERGENCE_STEPS {
        world.step()?;
        if world.is_converged() {
            let digest = world.servers[0].data.digest;
            return Ok(Converged { counts: world.shared.counts, digest });
        }
    }
    Err(format!("no convergence: {}", world.states()))
}

impl World {
    /// REPLICAOF on each server.
    fn follow(&mut self, primaries: [Option<usize>; SERVERS]) {
        for (server, primary) in self.servers.iter_mut().zip(primaries) {
            server.abort_failover(&mut self.shared);
            server.replicaof(primary, &mut self.shared);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.shared.net.now_ms += 1 + self.shared.random.below(60);
        let is_down: Vec<bool> =
            self.servers.iter().map(|server| server.is_down(&self.shared)).collect();
        for server in &mut self.servers {
            if !is_down[server.index] {
                server.drive_upstream(&is_down, &mut self.shared);
                server.drive_downstreams(&mut self.shared);
                server.drive_failover(&mut self.shared);
            }
        }
        match self.shared.oracle.violation() {
            Some(violation) => Err(violation.to_owned()),
            None => Ok(()),
        }
    }

    /// Writes, and sometimes a fault or a command of an operator.
    fn cause_trouble(&mut self, calm: u64) {
        let shared = &mut self.shared;
        for server in &mut self.servers {
            if shared.chance(6) {
                server.write(shared);
            }
            if shared.chance(40) {
                server.ask_for_acks(shared);
            }
            if shared.chance(30) {
                server.saved = server.data.clone();
            }
        }
        let index = shared.random.below(SERVERS as u64) as usize;
        let server = &mut self.servers[index];
        if server.is_down(shared) {
            return;
        }
        if shared.chance(20 * calm) {
            let open = shared.net.open();
            if let Some(connection) = open.get(shared.random.below(open.len() as u64) as usize) {
                shared.net.cut(*connection, &mut shared.random);
                shared.count("cut");
            }
        }
        if shared.chance(100 * calm) {
            server.restart(shared);
        }
        if shared.chance(80 * calm) {
            let primary = shared.random.below(SERVERS as u64 + 1) as usize;
            server.replicaof((primary < SERVERS).then_some(primary), shared);
        }
        if shared.chance(15 * calm) {
            server.start_failover(shared);
        }
        if shared.chance(200) {
            server.abort_failover(shared);
        }
        if shared.chance(50 * calm) {
            server.expire_backlog(shared);
        }
    }

    fn is_converged(&self) -> bool {
        let state = |server: &Server| {
            (server.data.history.id(), server.data.history.offset(), server.data.digest)
        };
        let first = &self.servers[0];
        self.servers.iter().all(|server| {
            let is_linked = server.primary.is_none() || server.link_up();
            is_linked && state(server) == state(first) && server.data.values == first.data.values
        })
    }

    fn states(&self) -> String {
        let state = |server: &Server| {
            let (history, primary) = (&server.data.history, server.primary);
            let failure = server.retries.failure();
            let link = server.link_up();
            format!("{history:?} of {primary:?}, in sync: {link}, last failure: {failure:?}")
        };
        self.servers.iter().map(state).collect::<Vec<_>>().join("\n")
    }
}
