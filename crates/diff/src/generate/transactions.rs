//! Transactions: watched keys that may change, MULTI, queued requests, and an end.

use super::stream::Stream;
use crate::{ConnectionName, Request, Step, follow, request, rules};

/// How often a transaction watches, is discarded, has a request that cannot be queued, and so on:
/// one in this number.
const WATCHED: u32 = 2;
const UNWATCHED: u32 = 8;
const DISCARDED: u32 = 8;
const UNSOUND: u32 = 10;
const OTHER_WRITER: u32 = 2;
const BY_SECOND: u32 = 6;

const QUEUED_MAX: usize = 8;

/// Requests that fail inside a transaction; some of them end it.
const UNSOUND_REQUESTS: &[&[&str]] =
    &[&["NOSUCH", "a"], &["GET"], &["MULTI"], &["WATCH", "s1"], &["MULTI", "x"], &["EXEC", "x"]];

impl Stream {
    /// A transaction, mostly of this connection.
    pub(super) fn transaction(&mut self, client: ConnectionName) -> Vec<Step> {
        let client = if self.one_in(BY_SECOND) { ConnectionName::Second } else { client };
        let mut steps = Vec::new();
        let late = if self.one_in(WATCHED) { self.watch(client, &mut steps) } else { None };
        steps.push(Step { client, request: request(&["MULTI"]) });
        let count = self.rng().usize(..=QUEUED_MAX);
        for _ in 0..count {
            if self.one_in(UNSOUND * 4) {
                let unsound = self.rng().choice(UNSOUND_REQUESTS).copied().unwrap_or_default();
                steps.push(Step { client, request: request(unsound) });
            }
            let Some(request) = self.request() else { break };
            let is_last = follow::leaves_differences(&request);
            steps.push(Step { client, request });
            if is_last {
                break;
            }
        }
        steps.extend(late);
        let end = if self.one_in(DISCARDED) { "DISCARD" } else { "EXEC" };
        steps.push(Step { client, request: request(&[end]) });
        steps
    }

    /// Watches the keys of a request. The request then comes from this connection or from the other
    /// one, perhaps only after requests are queued; in that case it is returned.
    fn watch(&mut self, client: ConnectionName, steps: &mut Vec<Step>) -> Option<Step> {
        let touching = self.generator.request()?;
        let mut watch: Request = request(&["WATCH"]);
        watch.extend(rules::keys(&touching));
        if watch.len() == 1 || self.one_in(4) {
            watch.extend(self.generator.request().map(|other| rules::keys(&other))?);
        }
        steps.push(Step { client, request: watch });
        if self.one_in(UNWATCHED) {
            steps.push(Step { client, request: request(&["UNWATCH"]) });
        }
        if self.one_in(2) {
            return None;
        }
        if !self.one_in(OTHER_WRITER) {
            steps.push(Step { client, request: touching });
            return None;
        }
        let other = match client {
            ConnectionName::First => ConnectionName::Second,
            _ => ConnectionName::First,
        };
        let step = Step { client: other, request: touching };
        if self.one_in(2) {
            return Some(step);
        }
        steps.push(step);
        None
    }
}
