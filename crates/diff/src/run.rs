//! Rounds: each empties the servers, sends a stream of requests to both, and compares the replies
//! and, at intervals, all data.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use test_support::Value;

use crate::follow::parts;
use crate::found::Found;
use crate::generate::{Command, Generator, Mix, Stream, Version, all_commands};
use crate::pair::Pair;
use crate::replay::replay;
use crate::settings::Settings;
use crate::shrink::shrink;
use crate::{Request, Step, rules};

/// How often a failed round is repeated before it counts as not repeatable.
const REPLAYS_MAX: usize = 3;

/// The options of a run.
#[derive(Debug)]
pub struct Plan {
    /// The commands on data that are sent.
    pub commands: Vec<Command>,
    /// The proportion of requests, transactions, scripts and users.
    pub mix: Mix,
    /// Commands of later versions are not sent.
    pub version: Version,
    /// The number of requests.
    pub requests: u64,
    /// The seed of the first round; each next round adds one.
    pub seed: u64,
    /// Requests between empty servers.
    pub round_requests: usize,
    /// Requests between two comparisons of all data.
    pub look_requests: usize,
    /// Different kinds of differences after which the run ends.
    pub differences_max: usize,
    /// How long to search for a short list of requests that shows a difference.
    pub shrink_time: Duration,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Summary {
    /// Requests that were sent and compared.
    pub sent: u64,
    /// The time for that, without the search for short lists.
    pub elapsed: Duration,
    /// Requests and error replies of each command.
    pub tallies: BTreeMap<String, Tally>,
    /// Unexplained differences, one of each kind.
    pub differences: Vec<Difference>,
    /// Further differences of the same kinds.
    pub repeated: u64,
    /// Explained differences by their reason.
    pub explained: BTreeMap<&'static str, u64>,
}

/// How often a command was sent, and how often it was refused.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests.
    pub sent: u64,
    /// Error replies of the subject, by their text.
    pub errors: BTreeMap<Vec<u8>, u64>,
}

impl Tally {
    /// How often it was refused.
    pub fn refused(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// An unexplained difference.
#[derive(Debug)]
pub struct Difference {
    /// The differences, for people.
    pub found: Found,
    /// The seed of its round.
    pub seed: u64,
    /// A short list of requests that shows it; the first ones set up the servers. Empty if it could
    /// not be repeated.
    pub steps: Vec<Step>,
}

/// Runs the plan. `progress` gets the numbers of requests and of differences.
///
/// # Errors
/// When a server cannot be reached at all, or again after it was lost.
pub fn run(
    pair: &mut Pair<'_>,
    plan: &Plan,
    progress: &mut dyn FnMut(u64, usize),
) -> io::Result<Summary> {
    // Rules of users name any command.
    let (named, _) = pair.known(all_commands())?;
    let settings = Settings::shared(&mut [&mut pair.subject, &mut pair.reference])?;
    let mut summary = Summary::default();
    let mut seed = plan.seed;
    while summary.sent < plan.requests && summary.differences.len() < plan.differences_max {
        let round = Round::new(plan, &named, &settings, seed, plan.requests - summary.sent);
        let start = Instant::now();
        let found = round.play(pair, plan, &mut summary);
        summary.elapsed += start.elapsed();
        if let Some((found, steps)) = found {
            settle(pair, &round, found, steps, plan, &mut summary)?;
        }
        progress(summary.sent, summary.differences.len());
        seed = seed.wrapping_add(1);
    }
    Ok(summary)
}

/// The requests between two moments at which the servers are emptied.
struct Round {
    seed: u64,
    opening: Vec<Step>,
    steps: Vec<Step>,
}

impl Round {
    fn new(
        plan: &Plan,
        named: &[Command],
        settings: &Settings,
        seed: u64,
        requests_max: u64,
    ) -> Self {
        let generator = Generator::new(plan.commands.clone(), plan.version, seed);
        let mut stream = Stream::new(generator, plan.mix, named.to_vec());
        let opening = settings.opening(&plan.mix, stream.rng());
        let most = plan.round_requests.min(usize::try_from(requests_max).unwrap_or(usize::MAX));
        let mut steps = Vec::new();
        while steps.len() < most {
            let unit = stream.unit();
            if unit.is_empty() {
                break;
            }
            steps.extend(unit);
        }
        Self { seed, opening, steps }
    }

    /// The difference, and how many requests led to it.
    fn play(
        &self,
        pair: &mut Pair<'_>,
        plan: &Plan,
        summary: &mut Summary,
    ) -> Option<(Found, usize)> {
        if let Err(lost) = pair.open(&self.opening) {
            return Some((lost.found(&self.opening), 0));
        }
        let mut from = 0;
        for part in parts(&self.steps, plan.look_requests) {
            let observe =
                &mut |request: &Request, reply: &Value, explained: Option<&'static str>| {
                    if let Some(reason) = explained {
                        *summary.explained.entry(reason).or_default() += 1;
                    }
                    let tally = summary.tallies.entry(rules::name(request)).or_default();
                    tally.sent += 1;
                    if let (true, Some(text)) = (reply.is_error(), reply.bytes()) {
                        *tally.errors.entry(text.to_vec()).or_default() += 1;
                    }
                    summary.sent += 1;
                };
            if let Some(found) = pair.play(part, observe) {
                let steps = from + found.steps(part.len());
                return Some((found, steps));
            }
            from += part.len();
        }
        None
    }
}

/// Counts the result of a round; a new difference is repeated, shortened and kept.
fn settle(
    pair: &mut Pair<'_>,
    round: &Round,
    found: Found,
    steps: usize,
    plan: &Plan,
    summary: &mut Summary,
) -> io::Result<()> {
    if let Found::Explained(_, reason) = found {
        *summary.explained.entry(reason).or_default() += 1;
        return Ok(());
    }
    pair.subject.reconnect()?;
    pair.reference.reconnect()?;
    if summary.differences.iter().any(|known| known.found.kind() == found.kind()) {
        summary.repeated += 1;
        return Ok(());
    }
    let list = &round.steps[..steps.min(round.steps.len())];
    let mut again = None;
    for _ in 0..REPLAYS_MAX {
        again = replay(pair, &round.opening, list)?;
        if again.is_some() {
            break;
        }
    }
    let Some(again) = again else {
        summary.differences.push(Difference { found, seed: round.seed, steps: Vec::new() });
        return Ok(());
    };
    let (steps, found) = shrink(pair, &round.opening, list, again, plan.shrink_time)?;
    summary.differences.push(Difference { found, seed: round.seed, steps });
    Ok(())
}
