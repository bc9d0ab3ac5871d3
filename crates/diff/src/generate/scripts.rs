//! Requests through scripts.

use super::stream::Stream;
use crate::compare::Compare;
use crate::scripts::{Run, is_list, running, sees_maps};
use crate::{Request, follow, rules, scripts};

/// The most words in the requests of a script: Lua's stack holds 8,000.
const WORDS_MAX: usize = 3_900;

/// The most requests of one script.
const CALLS_MAX: usize = 5;

/// How often the keys are not declared, the script may not write, or the number of keys is wrong:
/// one in this number.
const UNDECLARED: u32 = 3;
const READ_ONLY: u32 = 5;
const WRONG_COUNT: u32 = 60;

/// Numbers of keys that are wrong in every script.
const WRONG_COUNTS: &[&str] = &["-1", "100000", "x", "", "9223372036854775808"];

impl Stream {
    /// A request that runs a script; `None` without commands.
    pub(super) fn script(&mut self) -> Option<Request> {
        let script = self.rng().usize(..scripts::COUNT);
        let wanted = if is_list(script) { self.rng().usize(1..=CALLS_MAX) } else { 1 };
        let (mut calls, mut words) = (Vec::new(), 0);
        // Long requests, and requests with ages in maps, are replaced.
        for _ in 0..4 * wanted {
            let call = self.generator.request()?;
            let has_ages = sees_maps(script) && rules::compare(&call) == Compare::Ages;
            if has_ages || words + call.len() > WORDS_MAX {
                continue;
            }
            words += call.len();
            let is_last = follow::leaves_differences(&call);
            calls.push(call);
            if is_last || calls.len() == wanted {
                break;
            }
        }
        let keys = match self.one_in(UNDECLARED) {
            true => Vec::new(),
            false => calls.iter().flat_map(rules::keys).collect(),
        };
        let read_only = self.one_in(READ_ONLY);
        let runs = [Run::Text, Run::Hash, Run::Function];
        let run = self.rng().choice(runs).unwrap_or(Run::Text);
        let mut request = running(script, run, read_only, &keys, &calls);
        if !is_list(script) && self.one_in(WRONG_COUNT) {
            request[2] = self.rng().choice(WRONG_COUNTS).copied().unwrap_or_default().into();
        }
        Some(request)
    }
}
