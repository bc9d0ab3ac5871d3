//! The scripts that send generated requests, and the requests that a call of one of them carries.
//!
//! A script takes the words of its requests as arguments, so a few scripts run everything: by EVAL,
//! EVALSHA and, as functions of a library, FCALL.

use std::sync::LazyLock;

use sha1::{Digest, Sha1};

use crate::{Request, Step, rules};

/// A script.
#[derive(Debug)]
struct Script {
    /// The name of its function in the library.
    function: &'static str,
    body: &'static str,
    /// Whether it sends several requests, each after the number of its words, and returns a list of
    /// replies.
    is_list: bool,
    /// The protocol in which it sees replies.
    protocol: u8,
}

/// The common part of the scripts that send a list, after `redis.setresp`.
macro_rules! list_body {
    () => {
        "local replies, at = {}, 1 while at <= #ARGV do local last = at + tonumber(ARGV[at]) \
         local reply = redis.pcall(unpack(ARGV, at + 1, last)) \
         if reply == nil then reply = false end \
         replies[#replies + 1] = reply at = last + 1 end return replies"
    };
}

const SCRIPTS: &[Script] = &[
    Script {
        function: "pass",
        body: "return redis.pcall(unpack(ARGV))",
        is_list: false,
        protocol: 2,
    },
    Script {
        function: "raise",
        body: "return redis.call(unpack(ARGV))",
        is_list: false,
        protocol: 2,
    },
    Script {
        function: "pass3",
        body: "redis.setresp(3) return redis.pcall(unpack(ARGV))",
        is_list: false,
        protocol: 3,
    },
    Script { function: "list", body: list_body!(), is_list: true, protocol: 2 },
    Script {
        function: "list3",
        body: concat!("redis.setresp(3) ", list_body!()),
        is_list: true,
        protocol: 3,
    },
];

/// How many scripts there are.
pub const COUNT: usize = SCRIPTS.len();

/// The number of a script that sends several requests.
pub const LIST: usize = 3;

/// The suffix of functions that may not write.
const READ_ONLY: &str = "_ro";

/// The requests that a script sends.
#[derive(Debug, PartialEq, Eq)]
pub struct Carried {
    /// The requests in order.
    pub calls: Vec<Request>,
    /// Whether the reply is a list with one element for each request.
    pub is_list: bool,
    /// The protocol in which the script sees replies.
    pub protocol: u8,
}

/// The ways to run a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// By its text.
    Text,
    /// By the hash of its text.
    Hash,
    /// As a function.
    Function,
}

/// Whether a script sends several requests.
pub fn is_list(script: usize) -> bool {
    SCRIPTS[script].is_list
}

/// Whether a script sees replies of protocol 3.
pub fn sees_maps(script: usize) -> bool {
    SCRIPTS[script].protocol == 3
}

/// A request that runs a script by its text.
pub fn evaluated(script: usize, keys: &[Vec<u8>], calls: &[Request]) -> Request {
    running(script, Run::Text, false, keys, calls)
}

/// A request that runs a script, perhaps a read-only one, with these keys declared.
pub fn running(
    script: usize,
    run: Run,
    read_only: bool,
    keys: &[Vec<u8>],
    calls: &[Request],
) -> Request {
    let script = &SCRIPTS[script];
    let (command, name) = match (run, read_only) {
        (Run::Text, false) => ("EVAL", script.body.to_owned()),
        (Run::Text, true) => ("EVAL_RO", script.body.to_owned()),
        (Run::Hash, false) => ("EVALSHA", hash(script.body)),
        (Run::Hash, true) => ("EVALSHA_RO", hash(script.body)),
        (Run::Function, false) => ("FCALL", script.function.to_owned()),
        (Run::Function, true) => ("FCALL_RO", format!("{}{READ_ONLY}", script.function)),
    };
    let mut request: Request = vec![command.into(), name.into()];
    request.push(keys.len().to_string().into_bytes());
    request.extend_from_slice(keys);
    for call in calls {
        if script.is_list {
            request.push(call.len().to_string().into_bytes());
        }
        request.extend_from_slice(call);
    }
    request
}

/// The requests that load all libraries and scripts into an empty server.
pub fn loading() -> Vec<Request> {
    let mut requests = vec![crate::request(&["FUNCTION", "FLUSH"])];
    requests.push(crate::request(&["FUNCTION", "LOAD", &library()]));
    requests.push(crate::request(&["SCRIPT", "FLUSH"]));
    requests.extend(SCRIPTS.iter().map(|one| crate::request(&["SCRIPT", "LOAD", one.body])));
    requests
}

/// Whether a list runs the script of a SCRIPT LOAD by its hash.
pub fn is_run_by_hash(load: &Request, list: &[Step]) -> bool {
    let body = load.last().and_then(|body| std::str::from_utf8(body).ok());
    let Some(hash) = body.map(hash) else { return false };
    list.iter().any(|step| step.request.get(1).is_some_and(|word| word == hash.as_bytes()))
}

fn library() -> String {
    let mut code = "#!lua name=carriers\n".to_owned();
    for Script { function, body, .. } in SCRIPTS {
        code += &format!(
            "redis.register_function('{function}', function(KEYS, ARGV) {body} end)\n\
             redis.register_function{{function_name='{function}{READ_ONLY}', \
             callback=function(KEYS, ARGV) {body} end, flags={{'no-writes'}}}}\n"
        );
    }
    code
}

/// The requests that a call of one of the scripts carries. `None` for other requests and for
/// arguments that are no requests.
pub fn carried(request: &Request) -> Option<Carried> {
    let command = rules::name(request);
    let wanted = std::str::from_utf8(request.get(1)?).ok()?;
    let script = match &*command {
        "eval" | "eval_ro" => SCRIPTS.iter().find(|script| script.body == wanted),
        "evalsha" | "evalsha_ro" => {
            HASHES.iter().position(|hash| hash == wanted).map(|at| &SCRIPTS[at])
        }
        "fcall" | "fcall_ro" => {
            let name = wanted.strip_suffix(READ_ONLY).unwrap_or(wanted);
            SCRIPTS.iter().find(|script| script.function == name)
        }
        _ => None,
    }?;
    let keys = number(request.get(2)?)?;
    let mut words = request.get(keys.checked_add(3)?..)?;
    let mut calls = Vec::new();
    while script.is_list && !words.is_empty() {
        let (count, rest) = words.split_first()?;
        let (call, after) = rest.split_at_checked(number(count)?)?;
        calls.push(call.to_vec());
        words = after;
    }
    if !script.is_list {
        calls.push(words.to_vec());
    }
    Some(Carried { calls, is_list: script.is_list, protocol: script.protocol })
}

/// Whether a request calls a script with arguments that it cannot read.
pub fn is_broken(request: &Request) -> bool {
    let runs = ["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"];
    let reads_numbers = |text: &Vec<u8>| {
        SCRIPTS.iter().zip(&*HASHES).filter(|(script, _)| script.is_list).any(|(script, hash)| {
            let text = text.strip_suffix(READ_ONLY.as_bytes()).unwrap_or(text);
            [script.body, script.function, hash].iter().any(|name| name.as_bytes() == text)
        })
    };
    runs.contains(&&*rules::name(request))
        && request.get(1).is_some_and(reads_numbers)
        && carried(request).is_none()
}

/// The name of a difference in the replies to a request: its command, and the requests that it
/// carries.
pub fn title(request: &Request) -> String {
    let name = rules::name(request);
    match carried(request).map(|carried| (carried.is_list, carried.calls)) {
        Some((false, calls)) => {
            calls.iter().fold(name, |title, call| format!("{title} {}", rules::name(call)))
        }
        _ => name,
    }
}

/// A number of keys or words in its canonical form.
fn number(word: &[u8]) -> Option<usize> {
    let is_plain = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    is_plain.then(|| std::str::from_utf8(word).ok()?.parse().ok()).flatten()
}

static HASHES: LazyLock<Vec<String>> =
    LazyLock::new(|| SCRIPTS.iter().map(|script| hash(script.body)).collect());

fn hash(body: &str) -> String {
    Sha1::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::request;

    #[test]
    fn what_is_put_into_a_script_is_found_in_it() {
        let calls = [request(&["SET", "a", "1"]), request(&["GET", "a"])];
        for script in 0..COUNT {
            let calls = if is_list(script) { &calls[..] } else { &calls[..1] };
            for run in [Run::Text, Run::Hash, Run::Function] {
                for read_only in [false, true] {
                    let made = running(script, run, read_only, &[b"a".to_vec()], calls);
                    let found = carried(&made).unwrap();
                    assert_eq!(found.calls, calls, "{made:?}");
                    assert_eq!(found.is_list, is_list(script));
                    assert!(!is_broken(&made));
                }
            }
        }
        assert!(is_list(LIST));
    }

    #[test]
    fn a_list_that_is_cut_is_broken() {
        let mut made = evaluated(LIST, &[], &[request(&["GET", "a"]), request(&["GET", "b"])]);
        made.pop();
        assert!(is_broken(&made) && carried(&made).is_none());
        assert!(carried(&request(&["EVAL", "return 1", "0"])).is_none());
        assert!(carried(&request(&["GET", "a"])).is_none());
    }

    #[test]
    fn differences_are_told_by_what_is_carried() {
        assert_eq!(
            title(&evaluated(0, &[], &[request(&["xInfo", "stream", "k"])])),
            "eval xinfo|stream"
        );
        assert_eq!(title(&request(&["GET", "k"])), "get");
    }
}
