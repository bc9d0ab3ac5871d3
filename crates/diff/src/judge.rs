//! Whether two replies to a request are both right. The elements of EXEC's reply are judged one by
//! one, and so are the replies that a script passes on.
//!
//! Each carried request is judged by its own rule, as far as the reply still has its types.

use test_support::Value;

use crate::compare::{Compare, same};
use crate::rules;
use crate::scripts::{self, Carried};
use crate::{Request, follow};

/// The verdict on two replies to a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// They are equivalent.
    Same,
    /// They differ intentionally: the reason, and whether the request changed nothing.
    Explained(&'static str, bool),
    /// They differ: the request, itself or queued, and both replies.
    Differs(Request, Value, Value),
}

/// Judges the replies to a request. `queued` are the requests of an EXEC.
pub(crate) fn judge(
    request: &Request,
    queued: &[Request],
    subject: &Value,
    reference: &Value,
) -> Verdict {
    let pairs = match (subject, reference) {
        (Value::Many(a, ours), Value::Many(b, theirs))
            if a == b && rules::name(request) == EXEC =>
        {
            ours.iter().zip(theirs)
        }
        _ => return judge_one(request, subject, reference),
    };
    let is_whole = |reply: &Value| reply.elements().len() == queued.len();
    if !is_whole(subject) || !is_whole(reference) {
        return differs(request, subject, reference);
    }
    together(queued.iter().zip(pairs).map(|(request, (a, b))| judge_one(request, a, b)))
}

const EXEC: &str = "exec";

fn judge_one(request: &Request, subject: &Value, reference: &Value) -> Verdict {
    let judge_call = |call: &Request, how: Compare, subject: &Value, reference: &Value| {
        if same(how, subject, reference) {
            return Verdict::Same;
        }
        match rules::explained(call, subject, reference) {
            Some(reason) => Verdict::Explained(reason, follow::is_read(request)),
            None => differs(request, subject, reference),
        }
    };
    let Some(Carried { calls, is_list, protocol }) = scripts::carried(request) else {
        return judge_call(request, single(rules::compare(request)), subject, reference);
    };
    let how = |call: &Request| rules::through_script(rules::compare(call), protocol);
    let (ours, theirs) = (subject.elements(), reference.elements());
    match calls.as_slice() {
        [call] if !is_list => judge_call(call, how(call), subject, reference),
        _ if ours.len() != calls.len() || theirs.len() != calls.len() => {
            judge_call(request, Compare::Exact, subject, reference)
        }
        _ => {
            let pairs = calls.iter().zip(ours.iter().zip(theirs));
            let each = pairs.map(|(call, (a, b))| judge_call(call, how(call), a, b));
            match together(each) {
                Verdict::Differs(..) => differs(request, subject, reference),
                verdict => verdict,
            }
        }
    }
}

/// A walk inside a transaction or a script has one reply.
fn single(how: Compare) -> Compare {
    match how {
        Compare::Scan(_) => Compare::Count,
        how => how,
    }
}

fn differs(request: &Request, subject: &Value, reference: &Value) -> Verdict {
    Verdict::Differs(request.clone(), subject.clone(), reference.clone())
}

/// The first difference, or else the first intended one. An intended difference of a write ends the
/// comparison.
fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let mut all = Verdict::Same;
    for verdict in verdicts {
        match (&all, verdict) {
            (_, Verdict::Same) => {}
            (Verdict::Same, explained @ Verdict::Explained(_, true)) => all = explained,
            (_, Verdict::Explained(_, true)) => {}
            (_, verdict) => return verdict,
        }
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::request;

    fn check(how: &Request, queued: &[Request], subject: &str, reference: &str, wanted: &str) {
        let reply = |text: &str| {
            let bytes: String = text.split(' ').map(|line| format!("{line}\r\n")).collect();
            Value::read(&mut bytes.as_bytes()).unwrap()
        };
        let found = match judge(how, queued, &reply(subject), &reply(reference)) {
            Verdict::Same => "same".to_owned(),
            Verdict::Explained(..) => "explained".to_owned(),
            Verdict::Differs(request, ..) => scripts::title(&request),
        };
        assert_eq!(found, wanted, "{subject} against {reference}");
    }

    #[test]
    fn elements_of_exec_have_the_rules_of_their_requests() {
        let exec = request(&["EXEC"]);
        let queued = [request(&["GET", "k"]), request(&["SMEMBERS", "e"]), request(&["PTTL", "k"])];
        check(&exec, &queued, "*3 +a *2 +a +b :5", "*3 +a *2 +b +a :6", "same");
        check(&exec, &queued, "*3 +a *2 +a +b :5", "*3 +b *2 +b +a :6", "get");
        check(&exec, &queued, "*3 +a *2 +a +b :5", "*3 +a *2 +b +a :-1", "pttl");
        check(&exec, &queued, "*2 +a *0", "*3 +a *0 :-1", "exec");
        check(&exec, &queued, "*-1", "*3 +a *0 :-1", "exec");
        check(&exec, &[], "-EXECABORT", "-EXECABORT", "same");
        let walk = [request(&["SCAN", "0"])];
        check(&exec, &walk, "*1 *2 +7 *1 +a", "*1 *2 +0 *2 +a +b", "same");
    }

    #[test]
    fn replies_of_scripts_have_the_rules_of_what_they_call() {
        let single = |words: &[&str]| scripts::evaluated(0, &[], &[request(words)]);
        check(&single(&["SMEMBERS", "e"]), &[], "*2 +a +b", "*2 +b +a", "same");
        check(&single(&["LRANGE", "l", "0", "1"]), &[], "*2 +a +b", "*2 +b +a", "eval lrange");
        let calls = [request(&["GET", "k"]), request(&["SMEMBERS", "e"])];
        let list = scripts::evaluated(scripts::LIST, &[], &calls);
        check(&list, &[], "*2 +x *2 +a +b", "*2 +x *2 +b +a", "same");
        check(&list, &[], "*2 +x *2 +a +b", "*2 +y *2 +b +a", "eval");
        check(&list, &[], "*1 +x", "*2 +x *0", "eval");
        let exec = request(&["EXEC"]);
        check(&exec, &[list], "*1 *2 +x *2 +a +b", "*1 *2 +x *2 +b +a", "same");
    }
}
