//! What the clients of a run do, and what each of them must see.

pub mod bank;
pub mod cache;
pub mod counter;
pub mod disturber;
pub mod news;
pub mod queues;
pub mod scratch;

use crate::connection::Connection;
use crate::world::{Trouble, World};

/// Connects again and again until the run is over, and does `work` with each connection: until it
/// breaks.
pub fn act(
    world: &World,
    actor: &str,
    resp3: bool,
    mut work: impl FnMut(&mut Connection) -> Result<(), Trouble>,
) {
    while !world.is_over() {
        let ended = Connection::open(world, resp3).and_then(|mut connection| {
            while !world.is_over() {
                work(&mut connection)?;
            }
            Ok(())
        });
        match ended {
            Ok(()) => return,
            Err(trouble) => {
                if !world.survives(actor, trouble) {
                    return;
                }
            }
        }
    }
}
