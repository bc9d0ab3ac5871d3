//! A record of transcripts, for `cargo xtask transcripts`.
//!
//! If the environment names a file, replies are not compared, and each run of a transcript appends
//! a block of lines to the file. A line is a list of words, quoted like an inline command:
//!
//! ```text
//! case TEST SERVER FILE LINE IS-PREPARED   a run, its server, and the location of the call
//! text LINE                                each line of the transcript
//! send LINE CLIENT WORD...                 its steps; lines count from 0
//! receive LINE CLIENT
//! advance LINE MS
//! close LINE CLIENT
//! reply EXPECTED BYTES                     of the `send` or `receive` before it
//! unmet LINE LINES EXPECTED NEW-LINE...    an unmet expectation, and the correct lines
//! ```
//!
//! Runs on the same server follow each other.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::Location;
use std::sync::Mutex;

use base::quote::push_quoted;

use crate::check::Outcome;
use crate::fake::TestServer;
use crate::grammar::{Action, Step};

/// The environment variable with the name of the file.
const FILE: &str = "WEFT_TRANSCRIPTS_RECORD";

/// Held while a record is appended.
static APPENDING: Mutex<()> = Mutex::new(());

/// The record of one run, appended when it ends.
pub struct Record {
    path: String,
    text: Vec<u8>,
}

impl Record {
    /// Whether runs are recorded and not compared.
    pub fn is_wanted() -> bool {
        std::env::var_os(FILE).is_some()
    }

    /// Begins a record if the environment asks for one.
    pub fn begin(server: &TestServer, transcript: &str, at: &Location<'_>) -> Option<Self> {
        let path = std::env::var(FILE).ok()?;
        let mut record = Self { path, text: Vec::new() };
        let current = std::thread::current();
        let test = current.name().unwrap_or_default();
        let (number, line) = (server.number.to_string(), at.line().to_string());
        let prepared = if server.is_prepared() { "1" } else { "0" };
        record.line(&["case", test, &number, at.file(), &line, prepared]);
        transcript.lines().for_each(|line| record.line(&["text", line]));
        Some(record)
    }

    /// Adds a step and its outcome.
    pub fn step(&mut self, step: &Step<'_>, outcome: &Outcome) {
        let line = step.line.to_string();
        let has_reply = match &step.action {
            Action::Send(client, args) => {
                let words = ["send", &line, client].map(str::as_bytes);
                self.words(words.into_iter().chain(args.iter().map(Vec::as_slice)));
                true
            }
            Action::Receive(client) => {
                self.line(&["receive", &line, client]);
                true
            }
            Action::Advance(ms) => {
                self.line(&["advance", &line, &ms.to_string()]);
                false
            }
            Action::Close(client) => {
                self.line(&["close", &line, client]);
                false
            }
            Action::Deadlines => false,
        };
        if has_reply {
            self.words([b"reply", step.expected.text.as_bytes(), &outcome.reply].into_iter());
        }
        for mismatch in outcome.mismatches(step) {
            let expected = mismatch.expected;
            let (line, lines) = (expected.line.to_string(), expected.lines.to_string());
            let new = expected.lines_of(mismatch.got);
            let words = ["unmet", &line, &lines, &expected.text].into_iter();
            self.words(words.chain(new.iter().map(String::as_str)).map(str::as_bytes));
        }
    }

    fn line(&mut self, words: &[&str]) {
        self.words(words.iter().map(|word| word.as_bytes()));
    }

    fn words<'a>(&mut self, words: impl Iterator<Item = &'a [u8]>) {
        for (at, word) in words.enumerate() {
            if at > 0 {
                self.text.push(b' ');
            }
            push_quoted(&mut self.text, word);
        }
        self.text.push(b'\n');
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _appending = APPENDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(&self.text));
        written.expect("the record can be written");
    }
}
