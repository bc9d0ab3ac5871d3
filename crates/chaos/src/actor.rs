//! The loop of an actor: it works with a connection, and connects again when the server closes it.

use crate::connection::Connection;
use crate::trouble::Trouble;
use crate::world::World;

/// Repeats `work` until the run is over, with a new connection after each loss of one.
pub fn act(
    world: &World,
    actor: &str,
    resp3: bool,
    mut work: impl FnMut(&mut Connection) -> Result<(), Trouble>,
) {
    while !world.is_over() {
        let ended = Connection::open(&world.endpoint, resp3).and_then(|mut connection| {
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
