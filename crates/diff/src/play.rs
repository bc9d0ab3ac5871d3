//! Plays a list of steps on both servers up to the first difference.

use std::time::Duration;

use test_support::Value;

use crate::compare::groups;
use crate::follow::{Planned, plan};
use crate::found::Lost;
use crate::judge::{Verdict, judge};
use crate::{ConnectionName, Found, Pair, Peer, Request, Step, rules, state};

/// The most replies to one walk with SCAN and similar commands; a longer walk does not end.
const WALK_REPLIES_MAX: usize = 20_000;

/// After this time a key with a time to live of a millisecond has expired on both servers.
const SOON: Duration = Duration::from_millis(4);

/// Observes each request whose replies agree, with the subject's reply and the reason of an
/// intended difference.
pub type Observe<'a> = dyn FnMut(&Request, &Value, Option<&'static str>) + 'a;

/// The requests that each connection has queued since MULTI, according to the servers.
#[derive(Debug, Default)]
struct Queues([Vec<Request>; ConnectionName::ALL.len()]);

impl Queues {
    /// Records a queued request; returns the queue that a reply ends.
    fn take(&mut self, client: ConnectionName, request: &Request, reply: &Value) -> Vec<Request> {
        let queue = &mut self.0[client as usize];
        if reply.bytes() == Some(b"QUEUED") {
            queue.push(request.clone());
            return Vec::new();
        }
        match &*rules::name(request) {
            "exec" | "discard" | "reset" => std::mem::take(queue),
            _ => Vec::new(),
        }
    }
}

impl Pair<'_> {
    /// Plays a list with its accompanying steps up to the first difference; without one, compares
    /// the data of the servers.
    pub fn play(&mut self, list: &[Step], observe: &mut Observe<'_>) -> Option<Found> {
        let planned = plan(list);
        let mut queues = Queues::default();
        let mut from = 0;
        while from < planned.len() {
            let rest = &planned[from..];
            let (len, outcome) = match rest[0].walk {
                Some(width) => (1, self.walk(&rest[0].step, width, observe)),
                None => {
                    let len = batch_len(rest);
                    (len, self.exchange(&rest[..len], &mut queues, observe))
                }
            };
            if rest[len - 1].waits {
                std::thread::sleep(SOON);
            }
            let origin = |at: usize| rest.get(at).map_or(list.len(), |planned| planned.origin);
            match outcome {
                Err(lost) => {
                    let request = rest.get(lost.at).map(|planned| planned.step.request.clone());
                    let request = request.unwrap_or_default();
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

    /// Sends a batch of one connection and judges the replies.
    fn exchange(
        &mut self,
        batch: &[Planned],
        queues: &mut Queues,
        observe: &mut Observe<'_>,
    ) -> Result<Option<Found>, Lost> {
        let client = batch[0].step.client;
        let requests: Vec<Request> =
            batch.iter().map(|planned| planned.step.request.clone()).collect();
        let (subject, reference) = self.each(client, &requests, &requests)?;
        for (at, (subject, reference)) in subject.into_iter().zip(reference).enumerate() {
            let request = &requests[at];
            let (subject, reference) =
                (self.comparable(request, subject), self.comparable(request, reference));
            let queued = queues.take(client, request, &subject);
            match judge(request, &queued, &subject, &reference) {
                Verdict::Same => observe(request, &subject, None),
                // The data of both servers is unchanged, so the round can go on.
                Verdict::Explained(reason, true) => observe(request, &subject, Some(reason)),
                Verdict::Explained(reason, false) => {
                    return Ok(Some(Found::Explained(at, reason)));
                }
                Verdict::Differs(request, subject, reference) => {
                    return Ok(Some(Found::Reply(at, request, subject, reference)));
                }
            }
        }
        Ok(None)
    }

    /// Walks on both servers with their own cursors, and compares all elements.
    fn walk(
        &mut self,
        step: &Step,
        width: usize,
        observe: &mut Observe<'_>,
    ) -> Result<Option<Found>, Lost> {
        let request = &step.request;
        let asked = std::slice::from_ref(request);
        let (subject, reference) = self.each(step.client, asked, asked)?;
        let (Some(subject), Some(reference)) = (subject.first(), reference.first()) else {
            return Ok(None);
        };
        observe(request, subject, None);
        let both_walk = subject.elements().len() == 2 && reference.elements().len() == 2;
        if !both_walk || !starts(request) {
            let differ = subject.is_error() != reference.is_error()
                || subject.is_error() && subject != reference
                || subject.elements().len() != reference.elements().len();
            return Ok(differ.then(|| judged(request, subject, reference)));
        }
        let subject = walk_on(&mut self.subject, step, subject.clone(), width)?;
        let reference = walk_on(&mut self.reference, step, reference.clone(), width)?;
        Ok((subject != reference).then(|| judged(request, &subject, &reference)))
    }
}

fn judged(request: &Request, subject: &Value, reference: &Value) -> Found {
    match rules::explained(request, subject, reference) {
        Some(reason) => Found::Explained(0, reason),
        None => Found::Reply(0, request.clone(), subject.clone(), reference.clone()),
    }
}

/// Whether a walk starts at cursor 0.
fn starts(request: &Request) -> bool {
    cursor_at(request).and_then(|at| request.get(at)).is_some_and(|cursor| cursor == b"0")
}

/// The position of the cursor: SCAN has no key before it.
fn cursor_at(request: &Request) -> Option<usize> {
    let is_of_keys = request.first()?.eq_ignore_ascii_case(b"scan");
    Some(if is_of_keys { 1 } else { 2 })
}

/// All elements of a walk, each once and sorted, as one array.
fn walk_on(peer: &mut Peer<'_>, step: &Step, first: Value, width: usize) -> Result<Value, Lost> {
    let mut found: Vec<Value> = Vec::new();
    let mut reply = first;
    for _ in 0..WALK_REPLIES_MAX {
        let [cursor, elements] = reply.elements() else { return Ok(reply) };
        found.extend_from_slice(elements.elements());
        let cursor = cursor.bytes().unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            break;
        }
        let mut next = step.request.clone();
        if let Some(word) = cursor_at(&next).and_then(|at| next.get_mut(at)) {
            *word = cursor;
        }
        let asked = peer.ask(step.client, &next);
        reply =
            asked.map_err(|e| Lost { name: peer.name.clone(), at: 0, reason: e.to_string() })?;
    }
    let mut each = groups(&found, width);
    each.dedup();
    Ok(Value::Many(b'*', each.concat()))
}

/// How many requests of one connection go out before a walk, a login, or a wait for a key to
/// expire.
fn batch_len(planned: &[Planned]) -> usize {
    let client = planned[0].step.client;
    let is_plain = |planned: &&Planned| planned.walk.is_none() && planned.step.client == client;
    let plain = planned.iter().take_while(is_plain).count();
    let waiting = planned[..plain].iter().position(|planned| planned.waits);
    let len = waiting.map_or(plain, |at| at + 1);
    // Redis replies to a failed AUTH only if no other reply waits.
    let is_login = |planned: &Planned| rules::name(&planned.step.request) == "auth";
    planned[1..len].iter().position(is_login).map_or(len, |at| at + 1)
}
