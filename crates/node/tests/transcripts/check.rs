//! Runs transcripts and compares replies.
//!
//! Each transcript runs with 1, 4 and 1024 shards, which must give equal replies. Effects are
//! compared only where a transcript gives them. Each request must leave exactly one effect if it
//! changes the keyspace and none otherwise, except that expired keys leave effects of their own,
//! and FLUSHALL and FLUSHDB always leave one.

use std::panic::Location;

use base::glob;
use store::{Effect, Replay};

use crate::fake::TestServer;
use crate::grammar::{Action, Expected, Step, parse};
use crate::record::Record;
use crate::reply::render;

/// Runs a transcript and compares every reply.
///
/// # Panics
/// With the line, the expected and the actual text.
#[track_caller]
pub fn check(transcript: &str) {
    // One run is enough for a record.
    let shards: &[usize] = if Record::is_wanted() { &[1] } else { &[1, 4, 1024] };
    for shards in shards {
        run(&mut TestServer::new(*shards), transcript);
    }
}

/// Runs a transcript on a prepared server.
///
/// # Panics
/// With the line, the expected and the actual text.
#[track_caller]
pub fn run(server: &mut TestServer, transcript: &str) {
    let mut record = Record::begin(server, transcript, Location::caller());
    for step in parse(transcript) {
        let outcome = perform(server, &step);
        match &mut record {
            Some(record) => record.step(&step, &outcome),
            None => compare(&step, &outcome, transcript),
        }
    }
}

/// The outcome of a step.
pub struct Outcome {
    /// The bytes that the client received.
    pub reply: Vec<u8>,
    /// These bytes as text, or the clients whose deadlines were met.
    pub text: String,
    /// The effects, in the form of transcripts.
    pub effects: Vec<String>,
}

/// An expectation that is not met.
pub struct Mismatch<'a> {
    pub expected: &'a Expected,
    /// The actual text.
    pub got: &'a str,
}

impl Outcome {
    /// The expectations that the outcome of a step does not meet.
    pub fn mismatches<'a>(&'a self, step: &'a Step<'_>) -> Vec<Mismatch<'a>> {
        let effects = self.effects.iter().map(String::as_str).chain(std::iter::repeat(""));
        let pairs = step.effects.iter().zip(effects);
        let pairs = std::iter::once((&step.expected, self.text.as_str())).chain(pairs);
        let is_unmet = |(expected, got): &(&Expected, &str)| !is_met(&expected.text, got);
        pairs.filter(is_unmet).map(|(expected, got)| Mismatch { expected, got }).collect()
    }
}

fn is_met(expected: &str, got: &str) -> bool {
    match expected.strip_prefix("~~ ") {
        Some(pattern) => glob::matches(pattern.as_bytes(), got.as_bytes(), false),
        None => expected == got,
    }
}

#[track_caller]
fn compare(step: &Step<'_>, outcome: &Outcome, transcript: &str) {
    let mismatches = outcome.mismatches(step);
    if let Some(Mismatch { expected, got }) = mismatches.first() {
        let line = transcript.lines().nth(step.line).unwrap_or_default();
        let (number, want) = (step.line + 1, &expected.text);
        panic!("line {number}: {line}\nwant: {want}\n got: {got}");
    }
}

/// Performs a step.
pub fn perform(server: &mut TestServer, step: &Step<'_>) -> Outcome {
    let (reply, effects) = match &step.action {
        Action::Send(client, args) => server.request(client, args),
        Action::Receive(client) => (server.received(client), Vec::new()),
        Action::Deadlines => {
            let text = server.take_deadlines().join(" ");
            return Outcome { reply: Vec::new(), text, effects: Vec::new() };
        }
        Action::Advance(ms) => {
            server.advance(*ms);
            Default::default()
        }
        Action::Close(client) => {
            server.close(client);
            Default::default()
        }
    };
    let text = render(&reply);
    Outcome { reply, text, effects: effects.iter().map(describe).collect() }
}

fn describe(effect: &Effect) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let events: Vec<String> = effect
        .events
        .iter()
        .map(|(event, key)| {
            let database = event.db.map_or(String::new(), |db| format!("@{db}"));
            format!("{}:{}{database}", event.name, text(key))
        })
        .collect();
    let command = |replay: &Replay| {
        let words: Vec<String> = replay.args.iter().map(|arg| text(arg)).collect();
        let database = match replay.db {
            db if db == effect.db => String::new(),
            db => format!("@{db} "),
        };
        database + &words.join(" ")
    };
    let commands: Vec<String> = effect.commands.iter().map(command).collect();
    format!("{} => {}", events.join(" "), commands.join(" | "))
}
