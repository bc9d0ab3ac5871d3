//! One run: starts the actors, each on a thread, and checks the data after all have stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;

use crate::actors::{bank, cache, counter, disturber, publishing, queues, scratch};
use crate::connection::Connection;
use crate::trouble::Trouble;
use crate::world::{Plan, World};

/// The events and the failures of a run.
#[derive(Debug)]
pub struct Report {
    /// How often each event occurred.
    pub counts: BTreeMap<&'static str, u64>,
    /// Broken promises; empty after a good run.
    pub failures: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (event, count) in &self.counts {
            writeln!(f, "{count:>10} {event}")?;
        }
        self.failures.iter().try_for_each(|failure| writeln!(f, "WRONG: {failure}"))
    }
}

/// The records of actors that check each other's work.
#[derive(Default)]
struct ActorRecords {
    queues: queues::Ledger,
    published: publishing::Publishers,
    versions: cache::Versions,
}

/// Runs all actors until the time is over or a check fails.
pub fn run(plan: &Plan) -> Report {
    let world = World::new(plan);
    let records = ActorRecords::default();
    if let Err(trouble) = prepare(&world) {
        world.fail(format!("the server cannot be prepared: {trouble:?}"));
    }
    thread::scope(|scope| {
        for (number, act) in actors(plan.clients, &world, &records).into_iter().enumerate() {
            scope.spawn(move || {
                fastrand::seed(plan.seed.wrapping_add(number as u64));
                act();
            });
        }
    });
    if let Err(trouble) = close(&world, &records.queues) {
        world.fail(format!("at the end: {trouble:?}"));
    }
    let (counts, failures) = world.into_findings();
    Report { counts, failures }
}

type Act<'a> = Box<dyn FnOnce() + Send + 'a>;

fn actors<'a>(clients: usize, world: &'a World, records: &'a ActorRecords) -> Vec<Act<'a>> {
    let ActorRecords { queues, published, versions } = records;
    let mut acts: Vec<Act<'a>> = vec![Box::new(|| disturber::disturb(world))];
    for number in 0..clients {
        acts.push(Box::new(move || counter::count(world, number)));
        acts.push(Box::new(move || bank::transfer(world, number)));
        acts.push(Box::new(move || bank::audit(world, number)));
        acts.push(Box::new(move || queues::produce(world, queues, number)));
        acts.push(Box::new(move || queues::consume(world, queues, number)));
        acts.push(Box::new(move || publishing::follow(world, published, number)));
        acts.push(Box::new(move || cache::keep(world, versions, number)));
        acts.push(Box::new(move || scratch::scribble(world, number)));
    }
    for key in 0..cache::KEYS {
        acts.push(Box::new(move || cache::write(world, versions, key)));
    }
    for channel in 0..publishing::CHANNELS {
        acts.push(Box::new(move || publishing::publish(world, published, channel)));
    }
    acts
}

fn prepare(world: &World) -> Result<(), Trouble> {
    let mut connection = Connection::open(&world.endpoint, false)?;
    connection.ask(&["FLUSHALL"])?;
    bank::open_accounts(&mut connection)
}

fn close(world: &World, queues: &queues::Ledger) -> Result<(), Trouble> {
    queues.close(&mut Connection::open(&world.endpoint, false)?)
}
