//! One run: the actors, each on its thread, and what is checked when all have stopped.

use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::Duration;

use crate::actors::{bank, cache, counter, disturber, news, queues, scratch};
use crate::connection::{Connection, Endpoint};
use crate::world::{Fault, Trouble, World};

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server. Its data is overwritten.
    pub endpoint: Endpoint,
    /// The server has the parameters of Weft; without them, the checks can be tried on another.
    pub is_weft: bool,
    /// How long clients act.
    pub length: Duration,
    /// Where the random numbers begin.
    pub seed: u64,
    /// Clients of each kind.
    pub clients: usize,
    /// A fault between the server and the clients, which has to be found.
    pub fault: Option<Fault>,
}

/// What a run has met and found.
#[derive(Debug)]
pub struct Report {
    /// How often what was met.
    pub counts: BTreeMap<&'static str, u64>,
    /// What is wrong; nothing, if all is well.
    pub failures: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in &self.counts {
            writeln!(f, "{count:>10} {what}")?;
        }
        self.failures.iter().try_for_each(|failure| writeln!(f, "WRONG: {failure}"))
    }
}

/// Runs all actors until the time is over or something is wrong.
pub fn run(plan: &Plan) -> Report {
    let world = World::new(plan);
    let (ledger, news) = (queues::Ledger::default(), news::News::default());
    let versions = cache::Versions::default();
    let prepared = prepare(&world);
    if let Err(trouble) = prepared {
        world.fail(format!("the server cannot be prepared: {trouble:?}"));
    }
    thread::scope(|scope| {
        for (number, act) in
            actors(plan, &world, &ledger, (&news, &versions)).into_iter().enumerate()
        {
            scope.spawn(move || {
                fastrand::seed(plan.seed.wrapping_add(number as u64));
                act();
            });
        }
    });
    if let Err(trouble) = close(&world, &ledger) {
        world.fail(format!("at the end: {trouble:?}"));
    }
    let (counts, failures) = world.into_findings();
    Report { counts, failures }
}

type Act<'a> = Box<dyn FnOnce() + Send + 'a>;

fn actors<'a>(
    plan: &Plan,
    world: &'a World,
    ledger: &'a queues::Ledger,
    (news, versions): (&'a news::News, &'a cache::Versions),
) -> Vec<Act<'a>> {
    let mut acts: Vec<Act<'a>> = vec![Box::new(|| disturber::disturb(world))];
    for number in 0..plan.clients {
        acts.push(Box::new(move || counter::count(world, number)));
        acts.push(Box::new(move || bank::transfer(world, number)));
        acts.push(Box::new(move || bank::audit(world, number)));
        acts.push(Box::new(move || queues::produce(world, ledger, number)));
        acts.push(Box::new(move || queues::consume(world, ledger, number)));
        acts.push(Box::new(move || news::follow(world, news, number)));
        acts.push(Box::new(move || cache::keep(world, versions, number)));
        acts.push(Box::new(move || scratch::scribble(world, number)));
    }
    for key in 0..cache::KEYS {
        acts.push(Box::new(move || cache::write(world, versions, key)));
    }
    for channel in 0..news::CHANNELS {
        acts.push(Box::new(move || news::publish(world, news, channel)));
    }
    acts
}

fn prepare(world: &World) -> Result<(), Trouble> {
    let mut connection = Connection::open(world, false)?;
    connection.ask(&["FLUSHALL"])?;
    bank::open_accounts(&mut connection)
}

fn close(world: &World, ledger: &queues::Ledger) -> Result<(), Trouble> {
    ledger.close(&mut Connection::open(world, false)?)
}
