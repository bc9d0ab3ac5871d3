//! Round after round: empty servers, a stream of requests to both, and the comparison of replies
//! and, every so often, of all they hold.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::compare::{groups, same};
use crate::generate::{Command, Generator, Version};
use crate::peer;
use crate::reply::Value;
use crate::settings::Settings;
use crate::shrink::shrink;
use crate::state::{self, Unlike, is_walk};
use crate::{Peer, Request, rules};

/// Replies to one walk with SCAN or its like; more say that it does not end.
const WALK_REPLIES_MAX: usize = 20_000;

/// How often a failed round is played again before it counts as not repeatable.
const REPLAYS_MAX: usize = 3;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    /// The commands that are sent.
    pub commands: Vec<Command>,
    /// Nothing that came later is sent.
    pub version: Version,
    /// How many requests.
    pub requests: u64,
    /// The seed of the first round; the next has the number after it.
    pub seed: u64,
    /// Requests between empty servers.
    pub round_requests: usize,
    /// Requests between two looks at all that the servers hold.
    pub look_requests: usize,
    /// Different kinds of differences after which the run ends.
    pub differences_max: usize,
    /// How long to look for a short list of requests that shows a difference.
    pub shrink_time: Duration,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// Requests that were sent and compared.
    pub sent: u64,
    /// How long that took, without the search for short lists.
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Requests.
    pub sent: u64,
    /// Error replies of the subject.
    pub errors: u64,
}

/// An unexplained difference.
#[derive(Debug)]
pub struct Difference {
    /// What differs.
    pub found: Found,
    /// The seed of its round.
    pub seed: u64,
    /// A short list of requests that shows it; the first ones set the servers up. Without any it
    /// could not be repeated.
    pub steps: Vec<Request>,
}

/// What two servers differ in.
#[derive(Clone, Debug)]
pub enum Found {
    /// Replies to a request, and its place in the list.
    Reply(usize, Request, Value, Value),
    /// What they hold after the list.
    State(Unlike),
    /// A server ended or fell silent: its name, the place and the request, and what was seen.
    Lost(String, usize, Request, String),
    /// An intended difference, its place and the reason.
    Explained(usize, &'static str),
}

impl Found {
    /// Differences with the same kind count as one.
    pub fn kind(&self) -> String {
        match self {
            Self::Reply(_, request, subject, reference) => {
                let error = if subject.is_error() || reference.is_error() { " error" } else { "" };
                format!("reply {}{error}", rules::name(request))
            }
            Self::State(unlike) => format!("state {}", rules::name(&unlike.request)),
            Self::Lost(name, _, request, _) => format!("lost {name} {}", rules::name(request)),
            Self::Explained(_, reason) => format!("explained {reason}"),
        }
    }

    /// How many requests of the list led to it.
    pub fn steps(&self, all: usize) -> usize {
        match self {
            Self::State(_) => all,
            Self::Reply(at, ..) | Self::Lost(_, at, ..) | Self::Explained(at, _) => at + 1,
        }
    }
}

/// A server that did not answer a request.
#[derive(Debug)]
pub struct Lost {
    name: String,
    at: usize,
    reason: String,
}

impl Lost {
    fn new(name: &str, lost: &peer::Lost) -> Self {
        Self { name: name.to_owned(), at: lost.answered, reason: lost.source.to_string() }
    }

    fn found(self, requests: &[Request]) -> Found {
        let request = requests.get(self.at).cloned().unwrap_or_default();
        Found::Lost(self.name, self.at, request, self.reason)
    }
}

/// The two servers.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The one whose rightness is in question.
    pub subject: Peer<'a>,
    /// The one it is held against.
    pub reference: Peer<'a>,
    /// Whether both can tell when fields of hashes end.
    pub hash_field_times: bool,
}

impl Pair<'_> {
    /// Sends the same requests to both, at the same time.
    ///
    /// # Errors
    /// When one does not answer; the subject is named before the reference.
    pub fn both(&mut self, requests: &[Request]) -> Result<(Vec<Value>, Vec<Value>), Lost> {
        let (subject, reference) = (&mut self.subject, &mut self.reference);
        let (ours, theirs) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| reference.ask_all(requests));
            let ours = subject.ask_all(requests);
            (ours, theirs.join())
        });
        let theirs = theirs.unwrap_or_else(|_| {
            let source = io::Error::other("its replies could not be read");
            Err(peer::Lost { answered: 0, source })
        });
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => Ok((ours, theirs)),
            (Err(lost), _) => Err(Lost::new(&self.subject.name, &lost)),
            (_, Err(lost)) => Err(Lost::new(&self.reference.name, &lost)),
        }
    }

    /// Plays a list, and what must follow its requests, to the first difference; without one,
    /// looks at what the servers hold afterwards.
    pub fn play(&mut self, list: &[Request], observe: &mut Observe<'_>) -> Option<Found> {
        let (requests, origins) = rules::with_follow_ups(list);
        let mut from = 0;
        while from < requests.len() {
            let rest = &requests[from..];
            let (len, outcome) = match is_walk(&rest[0]) {
                Some(width) => (1, self.walk(&rest[0], width, observe)),
                None => {
                    let len = rest.iter().take_while(|request| is_walk(request).is_none()).count();
                    (len, self.exchange(&rest[..len], observe))
                }
            };
            let origin = |at: usize| origins.get(from + at).copied().unwrap_or(list.len());
            match outcome {
                Err(lost) => {
                    let request = rest.get(lost.at).cloned().unwrap_or_default();
                    return Some(Found::Lost(lost.name, origin(lost.at), request, lost.reason));
                }
                Ok(Some(Found::Reply(at, request, subject, reference))) => {
                    return Some(Found::Reply(origin(at), request, subject, reference));
                }
                Ok(Some(Found::Explained(at, reason))) => {
                    return Some(Found::Explained(origin(at), reason));
                }
                Ok(Some(found)) => return Some(found),
                Ok(None) => from += len,
            }
        }
        match state::compare(self, self.hash_field_times) {
            Ok(unlike) => unlike.map(Found::State),
            Err(lost) => Some(Found::Lost(lost.name, list.len(), Vec::new(), lost.reason)),
        }
    }

    fn exchange(
        &mut self,
        requests: &[Request],
        observe: &mut Observe<'_>,
    ) -> Result<Option<Found>, Lost> {
        let (subject, reference) = self.both(requests)?;
        for (at, (subject, reference)) in subject.iter().zip(&reference).enumerate() {
            let request = &requests[at];
            if same(rules::compare(request), subject, reference) {
                observe(request, subject, None);
                continue;
            }
            match judged(at, request, subject, reference) {
                // Both hold what they held, so the round can go on.
                Found::Explained(_, reason) if rules::is_read(request) => {
                    observe(request, subject, Some(reason));
                }
                found => return Ok(Some(found)),
            }
        }
        Ok(None)
    }

    /// Asks both with their own cursors to the end, and compares what they found together.
    fn walk(
        &mut self,
        request: &Request,
        width: usize,
        observe: &mut Observe<'_>,
    ) -> Result<Option<Found>, Lost> {
        let (subject, reference) = self.both(std::slice::from_ref(request))?;
        let (Some(subject), Some(reference)) = (subject.first(), reference.first()) else {
            return Ok(None);
        };
        observe(request, subject, None);
        let both_walk = subject.elements().len() == 2 && reference.elements().len() == 2;
        if !both_walk || !starts(request) {
            let differ = subject.is_error() != reference.is_error()
                || subject.is_error() && subject != reference
                || subject.elements().len() != reference.elements().len();
            return Ok(differ.then(|| judged(0, request, subject, reference)));
        }
        let subject = walk_on(&mut self.subject, request, subject.clone(), width)?;
        let reference = walk_on(&mut self.reference, request, reference.clone(), width)?;
        Ok((subject != reference).then(|| judged(0, request, &subject, &reference)))
    }
}

/// Sees each request that went well, the subject's reply, and why the other one differed.
pub type Observe<'a> = dyn FnMut(&Request, &Value, Option<&'static str>) + 'a;

fn judged(at: usize, request: &Request, subject: &Value, reference: &Value) -> Found {
    match rules::explained(request, subject, reference) {
        Some(reason) => Found::Explained(at, reason),
        None => Found::Reply(at, request.clone(), subject.clone(), reference.clone()),
    }
}

/// Whether a walk begins at its beginning.
fn starts(request: &Request) -> bool {
    cursor_at(request).and_then(|at| request.get(at)).is_some_and(|cursor| cursor == b"0")
}

/// Where the cursor stands: SCAN has no key before it.
fn cursor_at(request: &Request) -> Option<usize> {
    let is_of_keys = request.first()?.eq_ignore_ascii_case(b"scan");
    Some(if is_of_keys { 1 } else { 2 })
}

/// All that a walk finds, each once and in order, as one array.
fn walk_on(
    peer: &mut Peer<'_>,
    request: &Request,
    first: Value,
    width: usize,
) -> Result<Value, Lost> {
    let mut found: Vec<Value> = Vec::new();
    let mut reply = first;
    for _ in 0..WALK_REPLIES_MAX {
        let [cursor, elements] = reply.elements() else { return Ok(reply) };
        found.extend_from_slice(elements.elements());
        let cursor = cursor.text().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            break;
        }
        let mut next = request.clone();
        if let Some(word) = cursor_at(request).and_then(|at| next.get_mut(at)) {
            *word = cursor;
        }
        let asked = peer.ask(&next);
        reply =
            asked.map_err(|e| Lost { name: peer.name.clone(), at: 0, reason: e.to_string() })?;
    }
    let mut each = groups(&found, width);
    each.dedup();
    Ok(Value::Many(b'*', each.concat()))
}

/// Runs the plan. `progress` is told the number of requests sent and of differences found.
///
/// # Errors
/// When a server cannot be reached at all, or again after it was lost.
pub fn run(
    pair: &mut Pair<'_>,
    plan: &Plan,
    progress: &mut dyn FnMut(u64, usize),
) -> io::Result<Summary> {
    let settings = Settings::shared(&mut [&mut pair.subject, &mut pair.reference])?;
    let mut summary = Summary::default();
    let mut seed = plan.seed;
    while summary.sent < plan.requests && summary.differences.len() < plan.differences_max {
        let round = Round::new(plan, &settings, seed, plan.requests - summary.sent);
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

/// The requests between two times that the servers are emptied.
struct Round {
    seed: u64,
    opening: Vec<Request>,
    requests: Vec<Request>,
}

impl Round {
    fn new(plan: &Plan, settings: &Settings, seed: u64, requests_max: u64) -> Self {
        let mut generator = Generator::new(plan.commands.clone(), plan.version, seed);
        let opening = settings.opening(generator.rng());
        let most = plan.round_requests.min(usize::try_from(requests_max).unwrap_or(usize::MAX));
        let mut requests = Vec::new();
        while requests.len() < most {
            let Some(request) = generator.request() else { break };
            requests.push(request);
        }
        Self { seed, opening, requests }
    }

    /// What was found, and how many requests led to it.
    fn play(
        &self,
        pair: &mut Pair<'_>,
        plan: &Plan,
        summary: &mut Summary,
    ) -> Option<(Found, usize)> {
        if let Err(lost) = pair.both(&self.opening) {
            return Some((lost.found(&self.opening), 0));
        }
        let mut from = 0;
        for part in self.requests.chunks(plan.look_requests.max(1)) {
            let observe =
                &mut |request: &Request, reply: &Value, explained: Option<&'static str>| {
                    if let Some(reason) = explained {
                        *summary.explained.entry(reason).or_default() += 1;
                    }
                    let tally = summary.tallies.entry(rules::name(request)).or_default();
                    tally.sent += 1;
                    tally.errors += u64::from(reply.is_error());
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

/// Counts what a round found; a new difference is played again, shortened and kept.
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
    let list = &round.requests[..steps.min(round.requests.len())];
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

/// Plays a list from empty servers and looks at what they hold afterwards.
///
/// # Errors
/// When a server was lost and cannot be reached again.
pub fn replay(
    pair: &mut Pair<'_>,
    opening: &[Request],
    requests: &[Request],
) -> io::Result<Option<Found>> {
    let found = match pair.both(opening) {
        Ok(_) => pair.play(requests, &mut |_, _, _| {}),
        Err(lost) => Some(lost.found(opening)),
    };
    if matches!(found, Some(Found::Lost(..))) {
        pair.subject.reconnect()?;
        pair.reference.reconnect()?;
    }
    Ok(found.filter(|found| !matches!(found, Found::Explained(..))))
}
