//! The output of a server, collected while the server runs.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Condvar, Mutex};

use crate::WAIT_MAX;

/// The output of a server so far.
#[derive(Debug, Default)]
pub struct Log {
    text: Mutex<Printed>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct Printed {
    text: String,
    /// The process has closed its output.
    is_closed: bool,
}

impl Log {
    /// Collects the output up to its end, so that the server never waits for a reader.
    pub fn collect(&self, output: impl Read) {
        for line in BufReader::new(output).split(b'\n') {
            let Ok(line) = line else { break };
            let mut printed = self.text.lock().unwrap();
            printed.text.push_str(&String::from_utf8_lossy(&line));
            printed.text.push('\n');
            self.grown.notify_all();
        }
        self.text.lock().unwrap().is_closed = true;
        self.grown.notify_all();
    }

    /// Whether these words appear before the server ends and within the time limit.
    pub fn wait_for(&self, words: &str) -> bool {
        let waits = |printed: &mut Printed| !printed.text.contains(words) && !printed.is_closed;
        let printed = self.text.lock().unwrap();
        let (printed, _) = self.grown.wait_timeout_while(printed, WAIT_MAX, waits).unwrap();
        printed.text.contains(words)
    }

    /// Whether the output ends within the time limit.
    pub fn wait_for_end(&self) -> bool {
        let printed = self.text.lock().unwrap();
        let waits = |printed: &mut Printed| !printed.is_closed;
        let (printed, _) = self.grown.wait_timeout_while(printed, WAIT_MAX, waits).unwrap();
        printed.is_closed
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.text.lock().unwrap().text.clone()
    }
}
