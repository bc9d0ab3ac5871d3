//! Counts with INCR: no acknowledged increment is lost, none happens twice.

use test_support::Value;

use crate::actor::act;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::trouble::{Trouble, wrong};
use crate::world::World;

/// Increments that are sent together.
const BATCH: usize = 8;

/// The values that one counter may have: increments without a reply when a connection closed may
/// count or not.
struct Range {
    key: String,
    least: i64,
    most: i64,
}

/// Counts until the run is over.
pub fn count(world: &World, number: usize) {
    let mut range = Range { key: format!("counter:{number}"), least: 0, most: 0 };
    let actor = format!("counter {number}");
    act(world, &actor, number % 2 == 1, |connection| range.add_batch(world, connection));
}

impl Range {
    fn add_batch(&mut self, world: &World, connection: &mut Connection) -> Result<(), Trouble> {
        let increment: &[&str] = &["INCR", &self.key];
        let is_repeated = world.plants(Fault::RepeatedIncrement, 100);
        let sent = connection.send(&vec![increment; BATCH + usize::from(is_repeated)]);
        self.unless_lost(sent, BATCH)?;
        if world.plants(Fault::LostReply, 200) {
            connection.reply()?;
        }
        for answered in 0..BATCH {
            let reply = connection.reply();
            let reply = self.unless_lost(reply, BATCH - answered)?;
            self.see(&reply)?;
        }
        if is_repeated {
            connection.reply()?;
        }
        let value = connection.ask(&["GET", &self.key])?;
        if value.integer() != Some(self.least) {
            return wrong(format!("GET {} is {value}, not {}", self.key, self.least));
        }
        world.met("increments", BATCH as u64);
        Ok(())
    }

    /// Notes that `sent` increments may count although the connection was closed.
    fn unless_lost<T>(&mut self, result: Result<T, Trouble>, sent: usize) -> Result<T, Trouble> {
        result.inspect_err(|_| self.most += sent as i64)
    }

    /// Checks the next reply of INCR: one more than before.
    fn see(&mut self, reply: &Value) -> Result<(), Trouble> {
        let seen = reply.integer();
        match seen.filter(|seen| (self.least + 1..=self.most + 1).contains(seen)) {
            Some(seen) => (self.least, self.most) = (seen, seen),
            None => {
                let Self { key, least, most } = self;
                return wrong(format!("INCR {key} was {least}..{most} and is {reply}"));
            }
        }
        Ok(())
    }
}
