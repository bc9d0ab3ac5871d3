//! Plays a list of requests again, from empty servers.

use std::io;

use crate::Step;
use crate::found::Found;
use crate::pair::Pair;

/// Plays a list from empty servers, and compares the data afterwards.
///
/// # Errors
/// When a server was lost and cannot be reached again.
pub fn replay(pair: &mut Pair<'_>, opening: &[Step], steps: &[Step]) -> io::Result<Option<Found>> {
    let found = match pair.open(opening) {
        Ok(()) => pair.play(steps, &mut |_, _, _| {}),
        Err(lost) => Some(lost.found(opening)),
    };
    // A server that has sent too many or too few replies would be out of step in the next attempt.
    if found.is_some() {
        pair.subject.reconnect()?;
        pair.reference.reconnect()?;
    }
    Ok(found.filter(|found| !matches!(found, Found::Explained(..))))
}
