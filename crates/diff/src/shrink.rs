//! Shortens a list of requests that shows a difference.
//!
//! Smaller and smaller parts of the list are left out as long as the rest shows a difference of the
//! same kind; then words of the remaining requests. Every attempt starts from empty servers. The
//! search is bounded in time, so the result is short and not always the shortest.

use std::io;
use std::time::{Duration, Instant};

use crate::follow::plan;
use crate::found::Found;
use crate::generate::USERS;
use crate::pair::Pair;
use crate::replay::replay;
use crate::settings::{default_of, unusual};
use crate::{Step, rules, scripts};

/// Requests of at most this many words are not shortened.
const WORDS_MIN: usize = 3;

/// The shortest list, after its opening, and the difference that it shows.
///
/// # Errors
/// When a server was lost and cannot be reached again.
pub fn shrink(
    pair: &mut Pair<'_>,
    opening: &[Step],
    requests: &[Step],
    found: Found,
    time: Duration,
) -> io::Result<(Vec<Step>, Found)> {
    let deadline = Instant::now() + time;
    let kind = found.kind();
    let mut best = (requests[..found.steps(requests.len()).min(requests.len())].to_vec(), found);
    let mut opening = opening.to_vec();
    let mut attempt = |opening: &[Step], list: &[Step]| -> io::Result<_> {
        let is_broken = |step: &Step| scripts::is_broken(&step.request) || makes_stray_user(step);
        if Instant::now() > deadline || list.iter().any(is_broken) {
            return Ok(None);
        }
        let found = replay(pair, opening, list)?.filter(|found| found.kind() == kind);
        Ok(found.map(|found| (list[..found.steps(list.len()).min(list.len())].to_vec(), found)))
    };
    drop_requests(&mut best, &mut |list| attempt(&opening, list))?;
    drop_words(&mut best, &mut |list| attempt(&opening, list))?;
    drop_requests(&mut best, &mut |list| attempt(&opening, list))?;
    for at in 0..opening.len() {
        let Some(default) = default_of(&opening[at]) else { continue };
        let mut simpler = opening.clone();
        simpler[at] = default;
        if let Some(better) = attempt(&simpler, &best.0)? {
            (best, opening) = (better, simpler);
        }
    }
    let mut steps = unusual(&opening, &best.0);
    steps.extend(plan(&best.0).into_iter().map(|planned| planned.step));
    Ok((steps, best.1))
}

/// Whether a step creates a user that no opening deletes.
fn makes_stray_user(step: &Step) -> bool {
    let is_known = |name: &Vec<u8>| USERS.iter().any(|user| user.as_bytes() == name);
    rules::name(&step.request) == "acl|setuser" && !step.request.get(2).is_some_and(is_known)
}

type Best = (Vec<Step>, Found);
type Attempt<'a> = dyn FnMut(&[Step]) -> io::Result<Option<Best>> + 'a;

/// Leaves out halves, quarters and so on, down to single requests.
fn drop_requests(best: &mut Best, attempt: &mut Attempt<'_>) -> io::Result<()> {
    let mut size = best.0.len().div_ceil(2);
    while size > 0 {
        let mut end = best.0.len();
        while end > 0 {
            let start = end.saturating_sub(size);
            let mut shorter = best.0.clone();
            shorter.drain(start..end);
            if let Some(better) = attempt(&shorter)? {
                *best = better;
            }
            end = start.min(best.0.len());
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    Ok(())
}

/// Leaves out words of long requests, from the end.
fn drop_words(best: &mut Best, attempt: &mut Attempt<'_>) -> io::Result<()> {
    let mut at = best.0.len();
    while at > 0 {
        at = (at - 1).min(best.0.len().saturating_sub(1));
        let mut size = best.0.get(at).map_or(0, |step| step.request.len().div_ceil(2));
        while size > 0 {
            let mut end = best.0.get(at).map_or(0, |step| step.request.len());
            while end > WORDS_MIN {
                let start = end.saturating_sub(size).max(WORDS_MIN - 1);
                let mut shorter = best.0.clone();
                shorter[at].request.drain(start..end);
                match attempt(&shorter)? {
                    Some(better) => *best = better,
                    None if start < WORDS_MIN => break,
                    None => {}
                }
                end = start.min(best.0.get(at).map_or(0, |step| step.request.len()));
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }
    Ok(())
}
