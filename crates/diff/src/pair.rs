//! Two servers side by side: the same requests to both, and the first thing in which they differ.

use std::io;
use std::time::Duration;

use crate::compare::{groups, same};
use crate::generate::{Command, Version, version};
use crate::peer;
use crate::reply::Value;
use crate::rules::{self, Compare};
use crate::state::{self, Unlike};
use crate::{Peer, Request, request};

/// Replies to one walk with SCAN or its like; more say that it does not end.
const WALK_REPLIES_MAX: usize = 20_000;

/// After this time a key that was given a millisecond has ended on both servers.
const SOON: Duration = Duration::from_millis(4);

/// The two servers.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The server under test.
    pub subject: Peer<'a>,
    /// The one it is held against.
    pub reference: Peer<'a>,
    /// The version of Redis that the reference says to be compatible with.
    pub version: Version,
    /// Whether both reply when fields of hashes expire.
    hash_field_times: bool,
}

impl<'a> Pair<'a> {
    /// Puts two servers together and asks what they are.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn new(subject: Peer<'a>, reference: Peer<'a>) -> io::Result<Self> {
        let mut pair = Self { subject, reference, version: [0; 3], hash_field_times: false };
        let info = pair.reference.ask(&request(&["INFO", "server"]))?;
        let text = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
        pair.version = version(line.unwrap_or_default());
        // Another Weft knows what later versions brought as well.
        if text.lines().any(|line| line.starts_with("weft_version:")) {
            pair.version = [u32::MAX; 3];
        }
        let asked = [request(&["COMMAND", "INFO", "hpexpiretime"])];
        let (subject, reference) = pair.both(&asked).map_err(|lost| lost.error())?;
        pair.hash_field_times = is_known(&subject[0]) && is_known(&reference[0]);
        Ok(pair)
    }

    /// The commands that both know, and the names of those that are left out.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn known(
        &mut self,
        commands: Vec<Command>,
    ) -> io::Result<(Vec<Command>, Vec<&'static str>)> {
        let asked: Vec<Request> =
            commands.iter().map(|command| request(&["COMMAND", "INFO", command.name])).collect();
        let (subject, reference) = self.both(&asked).map_err(|lost| lost.error())?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (command, (ours, theirs)) in commands.into_iter().zip(subject.iter().zip(&reference)) {
            match is_known(ours) && is_known(theirs) {
                true => known.push(command),
                false => unknown.push(command.name),
            }
        }
        Ok((known, unknown))
    }

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
    /// compares the data of the servers afterwards.
    pub fn play(&mut self, list: &[Request], observe: &mut Observe<'_>) -> Option<Found> {
        let (requests, origins) = rules::with_follow_ups(list);
        let mut from = 0;
        while from < requests.len() {
            let rest = &requests[from..];
            let (len, outcome) = match is_walk(&rest[0]) {
                Some(width) => (1, self.walk(&rest[0], width, observe)),
                None => {
                    let len = batch_len(rest);
                    (len, self.exchange(&rest[..len], observe))
                }
            };
            if rules::ends_at_once(&rest[len - 1]) {
                std::thread::sleep(SOON);
            }
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

    fn error(self) -> io::Error {
        io::Error::other(format!("{}: {}", self.name, self.reason))
    }

    pub(crate) fn found(self, requests: &[Request]) -> Found {
        let request = requests.get(self.at).cloned().unwrap_or_default();
        Found::Lost(self.name, self.at, request, self.reason)
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

/// The position of the cursor: SCAN has no key before it.
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

/// Whether a row of COMMAND INFO is there.
fn is_known(reply: &Value) -> bool {
    reply.elements().iter().any(|row| !row.elements().is_empty())
}

/// How many requests go out before a walk, or before a key is waited for that ends.
fn batch_len(requests: &[Request]) -> usize {
    let plain = requests.iter().take_while(|request| is_walk(request).is_none()).count();
    let ending = requests[..plain].iter().position(rules::ends_at_once);
    ending.map_or(plain, |at| at + 1)
}

/// How a walk over a whole collection is judged: by what it found, so many at a time, and not by
/// its cursors.
fn is_walk(request: &Request) -> Option<usize> {
    match rules::compare(request) {
        Compare::Scan(width) => Some(width),
        _ => None,
    }
}
