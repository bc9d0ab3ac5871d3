//! The steps that must accompany the requests of a list, wherever the list was cut.
//!
//! A random command writes different values on both servers, so its keys are compared loosely and
//! then deleted. Inside a transaction the deletion follows EXEC, and no request is queued after a
//! random command; a transaction that the list leaves open is discarded at its end. So every part
//! of a list is a list that can be played.

use crate::compare::Compare;
use crate::rules::{self, Forget};
use crate::{ConnectionName, Request, Step, request, scripts};

/// A step of a list, or one that accompanies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) step: Step,
    /// The position of its cause in the list.
    pub(crate) origin: usize,
    /// For a walk over a collection, the size of a group of elements.
    pub(crate) walk: Option<usize>,
    /// Whether a key expires a millisecond after it.
    pub(crate) waits: bool,
}

/// A transaction that is open on a connection.
#[derive(Debug, Default)]
struct Open {
    /// The requests that must follow its end.
    follow_ups: Vec<Request>,
    waits: bool,
}

#[derive(Debug, Default)]
struct Planner {
    planned: Vec<Planned>,
    open: [Option<Open>; ConnectionName::ALL.len()],
}

/// A list with all accompanying steps.
pub(crate) fn plan(list: &[Step]) -> Vec<Planned> {
    let mut planner = Planner::default();
    for (at, step) in list.iter().enumerate() {
        planner.add(step, at);
    }
    for client in ConnectionName::ALL {
        if planner.open[client as usize].is_some() {
            planner.add(&Step { client, request: request(&["DISCARD"]) }, list.len());
        }
    }
    planner.planned
}

/// The list in parts of about this many steps, none of which splits a transaction.
pub(crate) fn parts(list: &[Step], steps: usize) -> Vec<&[Step]> {
    let mut parts = Vec::new();
    let (mut from, mut open) = (0, [false; ConnectionName::ALL.len()]);
    for (at, step) in list.iter().enumerate() {
        match edge(&step.request) {
            Some(Edge::Begin) => open[step.client as usize] = true,
            Some(Edge::End) => open[step.client as usize] = false,
            None => {}
        }
        if at + 1 - from >= steps.max(1) && !open.contains(&true) {
            parts.push(&list[from..=at]);
            from = at + 1;
        }
    }
    if from < list.len() {
        parts.push(&list[from..]);
    }
    parts
}

impl Planner {
    fn add(&mut self, step: &Step, origin: usize) {
        let Step { client, request } = step;
        let edge = edge(request);
        let is_over = self.open[*client as usize]
            .as_ref()
            .is_some_and(|open| !open.follow_ups.is_empty() && edge != Some(Edge::End));
        if is_over {
            self.add(&Step { client: *client, request: crate::request(&["EXEC"]) }, origin);
        }
        // The server closes the connections of deleted users.
        if rules::name(request) == "acl|deluser" {
            let reset = crate::request(&["RESET"]);
            self.add(&Step { client: ConnectionName::Second, request: reset }, origin);
        }
        let carried = scripts::carried(request).map(|carried| carried.calls);
        let calls = carried.as_deref().unwrap_or(std::slice::from_ref(request));
        let follow_ups: Vec<Request> = calls.iter().flat_map(follow_ups).collect();
        let waits = calls.iter().any(rules::ends_at_once);
        let state = &mut self.open[*client as usize];
        if let Some(open) = state.as_mut().filter(|_| edge != Some(Edge::End)) {
            open.follow_ups.extend(follow_ups);
            open.waits |= waits;
            return self.push(step.clone(), origin, false);
        }
        let closed = state.take().unwrap_or_default();
        if edge == Some(Edge::Begin) {
            *state = Some(Open::default());
        }
        self.push(step.clone(), origin, waits || closed.waits);
        if let Some(last) = self.planned.last_mut() {
            last.walk = is_walk(request);
        }
        for request in follow_ups.into_iter().chain(closed.follow_ups) {
            // The user of the first connection may do everything, so the connection need not
            // change.
            let client = match client {
                ConnectionName::First => ConnectionName::First,
                _ => ConnectionName::Observer,
            };
            self.push(Step { client, request }, origin, false);
        }
    }

    fn push(&mut self, step: Step, origin: usize, waits: bool) {
        self.planned.push(Planned { step, origin, walk: None, waits });
    }
}

/// Where a transaction begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
}

fn edge(request: &Request) -> Option<Edge> {
    match (&*rules::name(request), request.len()) {
        ("multi", 1) => Some(Edge::Begin),
        ("exec" | "discard" | "reset", 1) => Some(Edge::End),
        _ => None,
    }
}

/// How a walk over a whole collection is judged: by its elements in groups, and not by its cursors.
fn is_walk(request: &Request) -> Option<usize> {
    match rules::compare(request) {
        Compare::Scan(width) => Some(width),
        _ => None,
    }
}

/// Whether no request may come between a request and the steps that must follow it.
pub(crate) fn leaves_differences(request: &Request) -> bool {
    match scripts::carried(request) {
        Some(carried) => carried.calls.iter().any(leaves_differences),
        None => !follow_ups(request).is_empty(),
    }
}

/// Whether a request and the requests that it carries change nothing.
pub(crate) fn is_read(request: &Request) -> bool {
    match scripts::carried(request) {
        Some(carried) => carried.calls.iter().all(rules::is_read),
        None => rules::is_read(request),
    }
}

fn follow_ups(request: &Request) -> Vec<Request> {
    match rules::forget(request) {
        Forget::Nothing => Vec::new(),
        Forget::Keys => farewell(request),
        Forget::First => request.get(1).map(|key| about("DEL", key)).into_iter().collect(),
        Forget::Stored => stored(request).map(|key| about("DEL", key)).into_iter().collect(),
    }
}

fn farewell(request: &Request) -> Vec<Request> {
    // Only Redis unpacks the sorted set that SORT reads. SPOP of most of a set rebuilds the rest,
    // whose encoding then depends on the members that are left.
    let changes_form = match &*rules::name(request) {
        "spop" => request.len() > 2,
        name => rules::SORT.contains(&name),
    };
    let mut requests = Vec::new();
    for key in rules::keys(request) {
        let looks = ["TYPE", "OBJECT ENCODING", "PTTL"].into_iter();
        let looks = looks.filter(|look| !(changes_form && look.starts_with("OBJECT")));
        requests.extend(looks.chain(["DEL"]).map(|words| about(words, &key)));
    }
    requests
}

/// The key that stores the result of a search, if any.
fn stored(request: &Request) -> Option<&[u8]> {
    match &*rules::name(request) {
        "geosearchstore" => request.get(1).map(Vec::as_slice),
        _ => rules::after(request, "STOREDIST").or_else(|| rules::after(request, "STORE")),
    }
}

fn about(words: &str, key: &[u8]) -> Request {
    words.split(' ').map(|word| word.as_bytes().to_vec()).chain([key.to_vec()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plans requests of the first connection, separated by `;`, and of the second after `2:`.
    fn check(list: &str, wanted: &str) {
        let step = |text: &str| {
            let (client, text) = match text.strip_prefix("2:") {
                Some(text) => (ConnectionName::Second, text),
                None => (ConnectionName::First, text),
            };
            Step { client, request: text.split(' ').map(Into::into).collect() }
        };
        let list: Vec<Step> = list.split("; ").map(step).collect();
        let told = |planned: &Planned| {
            let mark = ["", "2:", "o:"][planned.step.client as usize];
            let words = planned.step.request.iter().map(|word| String::from_utf8_lossy(word));
            let words = words.collect::<Vec<_>>().join(" ");
            let wait = if planned.waits { "..." } else { "" };
            format!("{mark}{words}{wait}")
        };
        let planned: Vec<String> = plan(&list).iter().map(told).collect();
        assert_eq!(planned.join("; "), wanted);
    }

    const LOOKS: &str = "TYPE e; OBJECT ENCODING e; PTTL e; DEL e";

    #[test]
    fn what_differs_is_deleted_at_once_or_after_the_transaction() {
        check("GET k; SPOP e; GET k", &format!("GET k; SPOP e; {LOOKS}; GET k"));
        check("MULTI; SPOP e; EXEC; GET k", &format!("MULTI; SPOP e; EXEC; {LOOKS}; GET k"));
        // The list lost its EXEC.
        check("MULTI; SPOP e; GET k", &format!("MULTI; SPOP e; EXEC; {LOOKS}; GET k"));
        check("MULTI; SPOP e", &format!("MULTI; SPOP e; DISCARD; {LOOKS}"));
        check("MULTI; GET k; 2:MULTI", "MULTI; GET k; 2:MULTI; DISCARD; 2:DISCARD");
        let looks = LOOKS.replace("; ", "; o:");
        check("MULTI; 2:SPOP e; EXEC", &format!("MULTI; 2:SPOP e; o:{looks}; EXEC"));
    }

    #[test]
    fn what_ends_at_once_is_waited_for_when_it_has_run() {
        check("PEXPIRE k 1; GET k", "PEXPIRE k 1...; GET k");
        check("MULTI; PEXPIRE k 1; GET k; EXEC", "MULTI; PEXPIRE k 1; GET k; EXEC...");
    }

    #[test]
    fn nobody_is_logged_in_as_a_user_who_goes() {
        check("ACL DELUSER u1; GET k", "2:RESET; ACL DELUSER u1; GET k");
    }

    #[test]
    fn parts_have_whole_transactions() {
        let list: Vec<Step> = ["MULTI", "GET", "GET", "EXEC", "GET"]
            .map(|word| Step::first(request(&[word])))
            .to_vec();
        let lengths = |most| parts(&list, most).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(lengths(1), [4, 1]);
        assert_eq!(lengths(5), [5]);
    }
}
