//! Scripts and their replies, in files of cases.
//!
//! A case is the lines of a script, each after `> `, then `keys`, `argv` and `resp 3` if it needs
//! them, then the reply on one line: `:1` an integer, `"..."` a string, `+OK`, `-ERR ...`, `*2` and
//! `%1` and `~1` the headers of lists, `nil` and `nil3` the nulls of both protocols, `,1.5`, `#t`,
//! `(123`, `=txt:"..."`. The expectations are those of Redis 8.0.6. Where this server differs on
//! purpose, the next line has Redis's reply after `redis:`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fuzz;
mod host;
mod library;
mod limits;
mod sandbox;

use std::sync::Arc;

use host::Server;
use resp::{Args, Out, Reply, Span};
use script::{Script, ScriptFailure, ScriptInput, Vm};
use sys::process::thread_cpu_time;

const MEMORY_BYTES_MAX: usize = 64 << 20;

fn vm() -> Vm {
    Vm::new(MEMORY_BYTES_MAX).unwrap()
}

/// The processor time of this thread, in seconds: a busy machine adds nothing to it.
fn cpu_seconds() -> f64 {
    let time = thread_cpu_time();
    time.user + time.system
}

/// The arguments as one request, and the place of the first key.
struct Request {
    buffer: Vec<u8>,
    spans: Vec<Span>,
    keys: usize,
}

impl Request {
    fn new(keys: &[&[u8]], argv: &[&[u8]]) -> Self {
        let (mut buffer, mut spans) = (Vec::new(), Vec::new());
        for arg in keys.iter().chain(argv) {
            spans.push(Span::new(buffer.len(), arg.len()));
            buffer.extend_from_slice(arg);
        }
        Self { buffer, spans, keys: keys.len() }
    }

    fn input(&self) -> ScriptInput<'_> {
        let args = Args::new(&self.buffer, &self.spans, &[]);
        ScriptInput { args, first_key: 0, keys: self.keys }
    }
}

/// Runs a script as EVAL does, and returns its reply on one line.
fn eval_with(
    vm: &mut Vm,
    server: &mut Server,
    body: &[u8],
    request: &Request,
    resp3: bool,
) -> String {
    let mut out = Out::default();
    let mut run = |out: &mut Out| -> Result<(), ScriptFailure> {
        let loaded = match vm.script_by_body(body) {
            Some(loaded) => loaded,
            None => vm.load_script(&Arc::new(Script::new(body)?))?,
        };
        vm.eval_script(server, &loaded, request.input(), &mut Reply::new(out, resp3))
    };
    if let Err(failure) = run(&mut out) {
        out.clear();
        Reply::new(&mut out, resp3).error(&failure.text);
    }
    line_of(&out)
}

/// A reply on one line.
fn line_of(out: &Out) -> String {
    let mut rest = out.bytes.as_slice();
    let mut line = String::new();
    while !rest.is_empty() {
        rest = render(rest, &mut line);
    }
    line.trim_end().to_owned()
}

fn eval(vm: &mut Vm, body: &str) -> String {
    eval_with(vm, &mut Server::default(), body.as_bytes(), &Request::new(&[], &[]), false)
}

/// Appends one element of a reply, and returns the rest.
fn render<'a>(reply: &'a [u8], line: &mut String) -> &'a [u8] {
    let end = reply.windows(2).position(|pair| pair == b"\r\n").expect("a whole line");
    let (head, mut rest) = (&reply[..end], &reply[end + 2..]);
    let text = String::from_utf8_lossy(&head[1..]).into_owned();
    match (head[0], text.as_str()) {
        (b'$' | b'*', "-1") => line.push_str("nil"),
        (b'_', _) => line.push_str("nil3"),
        (kind @ (b'$' | b'='), len) => {
            let len: usize = len.parse().unwrap();
            let mut bytes = &rest[..len];
            rest = &rest[len + 2..];
            if kind == b'=' {
                line.push('=');
                line.push_str(&String::from_utf8_lossy(&bytes[..4]));
                bytes = &bytes[4..];
            }
            quote(bytes, line);
        }
        _ => quote_plain(head, line),
    }
    line.push(' ');
    rest
}

fn quote(bytes: &[u8], line: &mut String) {
    line.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
    }
    line.push('"');
}

fn quote_plain(bytes: &[u8], line: &mut String) {
    for byte in bytes {
        match byte {
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => line.push_str(&format!("\\x{byte:02x}")),
        }
    }
}

/// A script with its inputs and its reply.
#[derive(Default)]
struct Case {
    body: String,
    keys: Vec<String>,
    argv: Vec<String>,
    resp3: bool,
    call: Option<String>,
    expected: String,
    line: usize,
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut case = Case::default();
    let words = |rest: &str| rest.split(' ').map(str::to_owned).collect();
    for (number, line) in text.lines().enumerate() {
        if let Some(code) = line.strip_prefix("> ").or_else(|| (line == ">").then_some("")) {
            if case.line > 0 {
                case.body.push('\n');
            } else {
                case.line = number + 1;
            }
            case.body.push_str(code);
        } else if let Some(rest) = line.strip_prefix("keys ") {
            case.keys = words(rest);
        } else if let Some(rest) = line.strip_prefix("argv ") {
            case.argv = words(rest);
        } else if let Some(name) = line.strip_prefix("call ") {
            case.call = Some(name.to_owned());
        } else if line == "resp 3" {
            case.resp3 = true;
        } else if !line.is_empty() && !line.starts_with("# ") && !line.starts_with("redis: ") {
            case.expected = line.to_owned();
            cases.push(std::mem::take(&mut case));
        }
    }
    assert_eq!(case.line, 0, "the last script has no reply");
    cases
}

fn bytes(words: &[String]) -> Vec<&[u8]> {
    words.iter().map(String::as_bytes).collect()
}

/// Runs all cases of a file in one VM: no case may change the replies of another.
fn check(text: &str) {
    let mut vm = vm();
    let mut wrong = String::new();
    let cases = cases(text);
    assert!(!cases.is_empty());
    for case in cases {
        let request = Request::new(&bytes(&case.keys), &bytes(&case.argv));
        let mut server = Server::default();
        let found = eval_with(&mut vm, &mut server, case.body.as_bytes(), &request, case.resp3);
        if found != case.expected {
            let Case { line, body, expected, .. } = case;
            wrong += &format!("line {line}: {body}\n  expected {expected}\n  found    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn replies() {
    check(include_str!("cases/replies.txt"));
}

#[test]
fn redis_functions() {
    check(include_str!("cases/redis.txt"));
}

#[test]
fn language() {
    check(include_str!("cases/language.txt"));
}

#[test]
fn rare_arguments() {
    check(include_str!("cases/lua51.txt"));
}

#[test]
fn json() {
    check(include_str!("cases/json.txt"));
}

#[test]
fn msgpack() {
    check(include_str!("cases/msgpack.txt"));
}

#[test]
fn structs() {
    check(include_str!("cases/structs.txt"));
}

#[test]
fn bits() {
    check(include_str!("cases/bits.txt"));
}

#[test]
fn globals() {
    check(include_str!("cases/globals.txt"));
}
