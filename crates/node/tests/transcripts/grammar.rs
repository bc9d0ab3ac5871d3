//! The form of a transcript, and how it is read.
//!
//! ```text
//! > SET k v -> OK    a request of the only client, quoted like an inline command, and its reply:
//!                    OK, "bulk", 12, nil, nil-array, [array], {map}, ~[set], >[push], -error,
//!                    ,1.5 (double), #t, (big number), =txt:verbatim; several replies in a row
//! > MULTI            a request without a reply
//! > SET k v          a reply may follow in lines of its own
//! OK
//! b> BLPOP k 0       a request of client b, which connects when it is first mentioned; `> ` is
//!                    short for `a> `
//! b< ["k", "v"]      what b has received since: the reply if it follows b's request, else a
//!                    message, or the reply after b was blocked
//! b<                 b has received nothing since
//! ! set:k => SET k v the effect of the request: events, then the command to replay; `k@2` is a
//!                    key of database 2 when the effect is another's; ` | ` separates commands that
//!                    are replayed as one
//! @advance 1500      the clock advances by 1500 milliseconds
//! @deadlines a b     the clients whose deadlines were met since the last such line, in order
//! @close b           client b disconnects
//! # a comment
//! ```
//!
//! An expectation may be a pattern: `~~ *text*` matches by glob. A long request or expectation
//! continues in lines that begin with two blanks.

use base::quote::split_args;

/// The client of a bare `> `.
const ONLY_CLIENT: &str = "a";

/// Between a request and its reply on the same line.
const ARROW: &str = " -> ";

/// The widest line of the sources.
const COLUMNS_MAX: usize = 100;

/// One step of a transcript with its expectations.
#[derive(Debug)]
pub struct Step<'a> {
    /// Its line, from 0.
    pub line: usize,
    pub action: Action<'a>,
    /// The bytes that the client receives; for [`Action::Deadlines`] the clients.
    pub expected: Expected,
    /// The expected effects; an empty list is not compared.
    pub effects: Vec<Expected>,
}

#[derive(Debug)]
pub enum Action<'a> {
    /// A client sends a request.
    Send(&'a str, Vec<Vec<u8>>),
    /// A client, which was blocked, receives.
    Receive(&'a str),
    /// The clock advances by milliseconds.
    Advance(i64),
    /// The clients whose deadlines were met.
    Deadlines,
    /// A client disconnects.
    Close(&'a str),
}

/// An expectation and its lines.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its first line, from 0; without lines, the line to insert it at.
    pub line: usize,
    /// Its number of lines.
    pub lines: usize,
    /// The start of its first line: `> SET k v -> `, `b< `, `! ` or empty.
    pub mark: String,
    /// The text without mark and line breaks.
    pub text: String,
}

impl Expected {
    /// The lines that expect this text, broken at the width of the source.
    pub fn lines_of(&self, text: &str) -> Vec<String> {
        let Some(request) = self.mark.strip_suffix(ARROW) else {
            let is_absent = text.is_empty() && (self.mark.is_empty() || self.mark == "! ");
            return if is_absent { Vec::new() } else { broken(&format!("{}{text}", self.mark)) };
        };
        let full = format!("{}{text}", self.mark);
        if text.is_empty() {
            return vec![request.to_owned()];
        }
        if full.len() <= COLUMNS_MAX {
            return vec![full];
        }
        let client = request.split('>').next().unwrap_or_default();
        let mut lines = vec![request.to_owned()];
        lines.extend(broken(&format!("{}{text}", mark_of(client))));
        lines
    }
}

/// Breaks a text into lines.
fn broken(text: &str) -> Vec<String> {
    let mut rest = text.trim_end();
    let mut lines = Vec::new();
    loop {
        let start = if lines.is_empty() { "" } else { "  " };
        if start.len() + rest.len() <= COLUMNS_MAX {
            lines.push(format!("{start}{rest}"));
            return lines;
        }
        // A line does not end in blanks. The text is ASCII.
        let (head, _) = rest.split_at(COLUMNS_MAX - start.len());
        let head = head.trim_end();
        lines.push(format!("{start}{head}"));
        rest = &rest[head.len()..];
    }
}

/// The start of a line with the reply to a client.
fn mark_of(client: &str) -> String {
    if client.is_empty() { String::new() } else { format!("{client}< ") }
}

/// Reads a transcript.
///
/// # Panics
/// With the number and the text of a malformed line.
pub fn parse(transcript: &str) -> Vec<Step<'_>> {
    let mut reader = Reader { lines: transcript.lines().collect(), at: 0 };
    let mut steps = Vec::new();
    while let Some(line) = reader.lines.get(reader.at) {
        if line.is_empty() || line.starts_with('#') {
            reader.at += 1;
        } else {
            steps.push(reader.step());
        }
    }
    steps
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn step(&mut self) -> Step<'a> {
        let (number, line) = (self.at, self.lines[self.at]);
        let misread = || -> ! { panic!("line {}: not understood: {line}", number + 1) };
        let mut step = Step {
            line: number,
            action: Action::Deadlines,
            expected: Expected { line: number, lines: 0, mark: String::new(), text: String::new() },
            effects: Vec::new(),
        };
        if let Some((client, words)) = said(line, '>') {
            let request = match words.split_once(ARROW) {
                Some((request, reply)) => {
                    step.expected = on_line(number, &format!("{client}> {request}"), reply);
                    self.at += 1;
                    request.to_owned()
                }
                None => {
                    let request = self.continued(words);
                    step.expected = self.reply_to(client, number);
                    request
                }
            };
            let args = split_args(request.as_bytes()).unwrap_or_else(|| misread());
            step.action = Action::Send(if client.is_empty() { ONLY_CLIENT } else { client }, args);
            while self.lines.get(self.at).is_some_and(|line| line.starts_with("! ")) {
                step.effects.push(self.expected("! "));
            }
        } else if let Some((client, _)) = said(line, '<').filter(|(name, _)| !name.is_empty()) {
            step.action = Action::Receive(client);
            step.expected = self.expected(&format!("{client}< "));
        } else if line == "@deadlines" || line.starts_with("@deadlines ") {
            step.expected = self.expected("@deadlines ");
        } else if let Some(ms) = line.strip_prefix("@advance ") {
            step.action = Action::Advance(ms.parse().unwrap_or_else(|_| misread()));
            self.at += 1;
        } else if let Some(client) = line.strip_prefix("@close ") {
            step.action = Action::Close(client);
            self.at += 1;
        } else {
            misread();
        }
        step
    }

    /// The reply in the lines after the request in line `number`.
    fn reply_to(&mut self, client: &str, number: usize) -> Expected {
        let mark = mark_of(client);
        let is_reply = self.lines.get(self.at).is_some_and(|line| match client {
            "" => is_bare_reply(line),
            _ => line.strip_prefix(&mark).is_some_and(|text| !text.is_empty()),
        });
        match is_reply {
            true => self.expected(&mark),
            false if self.at == number + 1 => on_line(number, self.lines[number], ""),
            false => Expected { line: self.at, lines: 0, mark, text: String::new() },
        }
    }

    /// The expectation that starts here.
    fn expected(&mut self, mark: &str) -> Expected {
        let line = self.at;
        let text = self.continued(self.lines[line].strip_prefix(mark).unwrap_or_default());
        Expected { line, lines: self.at - line, mark: mark.to_owned(), text }
    }

    /// The rest of this line with its continuation lines.
    fn continued(&mut self, first: &str) -> String {
        let mut text = first.to_owned();
        self.at += 1;
        while let Some(more) = self.lines.get(self.at).and_then(|line| line.strip_prefix("  ")) {
            text.push_str(more);
            self.at += 1;
        }
        text
    }
}

/// The reply on the line of a request.
fn on_line(line: usize, request: &str, text: &str) -> Expected {
    Expected { line, lines: 1, mark: format!("{request}{ARROW}"), text: text.to_owned() }
}

/// The client and the words of a line `client> words` or `client< words`.
fn said(line: &str, arrow: char) -> Option<(&str, &str)> {
    let (client, rest) = line.split_once(arrow)?;
    let is_name = client.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let words = if rest.is_empty() { Some("") } else { rest.strip_prefix(' ') };
    words.filter(|_| is_name).map(|words| (client, words))
}

/// Whether a line is the reply to a request after a bare `> `.
fn is_bare_reply(line: &str) -> bool {
    let is_other = ["! ", "@", "#!", "# "].iter().any(|start| line.starts_with(start));
    !line.is_empty() && !is_other && said(line, '>').is_none() && said(line, '<').is_none()
}
