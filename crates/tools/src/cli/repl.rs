//! The loop over commands, from a terminal with history, completion and hints, or from a pipe.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base::quote::split_args;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::connection::{Caught, wait_readable};
use super::docs::Docs;
use super::format::Output;
use super::help::print_help;
use super::hint::hint;
use super::history::{History, dotfile, is_secret};
use super::output::{CliEnd, print};
use super::session::CliSession;
use super::terminal::{TerminalMode, restore_on_signals};
use crate::client::address::ServerAddress;

/// The time from which a command shows how long it took.
const SLOW: Duration = Duration::from_millis(500);

/// Shown while the client waits for messages.
const READING: &str = "Reading messages... (press Ctrl-C to quit or any key to type command)\r";

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum LoopStep {
    Read,
    Quit,
}

/// Sends commands from a terminal.
pub fn in_terminal(session: &mut CliSession) -> Result<(), CliEnd> {
    let failed = |error: ReadlineError| CliEnd::failed(format!("cannot use the terminal: {error}"));
    let config = Config::builder()
        .completion_type(CompletionType::Circular)
        .auto_add_history(false)
        // Pasted lines are commands of their own.
        .bracketed_paste(false)
        .build();
    let mut editor = Editor::<Typing, MemHistory>::with_history(config, MemHistory::new());
    let editor =
        editor.as_mut().map_err(|error| CliEnd::failed(format!("no terminal: {error}")))?;
    let history = History::of_environment();
    for line in history.load() {
        let _ = editor.add_history_entry(line);
    }
    let shows_hints = Rc::new(Cell::new(true));
    load_preferences(&shows_hints)?;
    restore_on_signals();
    let mut docs = Rc::new(Docs::default());
    loop {
        if docs.entries.is_empty() && session.is_plain() {
            docs = Rc::new(Docs::of_server(session));
        }
        let typing = Typing { docs: Rc::clone(&docs), shows_hints: Rc::clone(&shows_hints) };
        editor.set_helper(Some(typing));
        let line = match editor.readline(&session.prompt()) {
            Ok(line) => line,
            Err(ReadlineError::Eof | ReadlineError::Interrupted) if session.subscribed => {
                let _ = session.connect(false);
                continue;
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if line.trim().is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line.as_str());
        if may_be_written(line.as_bytes()) {
            history.append(&line);
        }
        if obey(session, Some(&docs), line.as_bytes(), &shows_hints)? == LoopStep::Quit {
            return Ok(());
        }
        if session.subscribed {
            let _mode = TerminalMode::single_keys();
            follow_until_input(session, &[])?;
        }
    }
}

/// Sends commands from a pipe or a file, one on each line.
pub fn from_pipe(session: &mut CliSession) -> Result<(), CliEnd> {
    let failed = |error: io::Error| CliEnd::failed(format!("cannot read standard input: {error}"));
    let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut input = BufReader::new(File::from(stdin));
    let (mut line, shows_hints) = (Vec::new(), Cell::new(true));
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if obey(session, None, &line, &shows_hints)? == LoopStep::Quit {
            return Ok(());
        }
        if session.subscribed {
            follow_until_input(session, input.buffer())?;
        }
    }
}

/// The number before a command, which repeats it.
fn repeat_of(words: &[Vec<u8>]) -> Option<Result<i64, ()>> {
    let first = words.first().filter(|_| words.len() > 1)?;
    let text = std::str::from_utf8(first).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok().filter(|count| *count > 0).ok_or(()))
}

/// Whether a line may be written to the history file. A line that cannot be split into words may
/// contain a password with wrong quotes.
fn may_be_written(line: &[u8]) -> bool {
    split_args(line).is_some_and(|words| {
        let skipped = usize::from(repeat_of(&words).is_some());
        !is_secret(&words[skipped..])
    })
}

fn obey(
    session: &mut CliSession,
    docs: Option<&Docs>,
    line: &[u8],
    shows_hints: &Cell<bool>,
) -> Result<LoopStep, CliEnd> {
    let Some(mut words) = split_args(line) else {
        print(b"Invalid argument(s)\n")?;
        return Ok(LoopStep::Read);
    };
    let repeat = match repeat_of(&words) {
        None => 1,
        Some(Ok(repeat)) => {
            words.remove(0);
            repeat
        }
        Some(Err(())) => {
            print(b"Invalid redis-cli repeat command option value.\n")?;
            return Ok(LoopStep::Read);
        }
    };
    let Some(first) = words.first() else { return Ok(LoopStep::Read) };
    match (first.to_ascii_lowercase().as_slice(), words.len()) {
        (b"quit" | b"exit", _) => return Ok(LoopStep::Quit),
        ([b':', ..], _) => set_preference(&words, "", shows_hints)?,
        (b"help" | b"?", _) => print_help(session, docs, &words[1..])?,
        (b"clear", 1) => print(b"\x1b[H\x1b[2J")?,
        (b"connect", 3) => {
            let host = String::from_utf8_lossy(&words[1]).into_owned();
            let port = std::str::from_utf8(&words[2]).ok().and_then(|port| port.parse().ok());
            match port {
                None => print(b"Invalid server port.\n")?,
                Some(port) => {
                    session.target.address = ServerAddress::Tcp { host, port };
                    let _ = session.connect(false);
                }
            }
        }
        _ => {
            let start = Instant::now();
            session.issue(&words, repeat)?;
            let elapsed = start.elapsed();
            if elapsed >= SLOW && session.terms.style.output == Output::Standard {
                print(format!("({:.2}s)\n", elapsed.as_secs_f64()).as_bytes())?;
            }
        }
    }
    Ok(LoopStep::Read)
}

/// Reads the preferences of the home folder.
fn load_preferences(shows_hints: &Cell<bool>) -> Result<(), CliEnd> {
    let path = dotfile("REDISCLI_RCFILE", ".redisclirc");
    let Some(bytes) = path.and_then(|path| fs::read(path).ok()) else { return Ok(()) };
    for line in bytes.split(|byte| *byte == b'\n') {
        let words = split_args(line).unwrap_or_default();
        if !words.is_empty() {
            set_preference(&words, ".redisclirc: ", shows_hints)?;
        }
    }
    Ok(())
}

fn set_preference(words: &[Vec<u8>], place: &str, shows_hints: &Cell<bool>) -> Result<(), CliEnd> {
    let lower: Vec<Vec<u8>> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&[u8]> = lower.iter().map(Vec::as_slice).collect();
    let (what, word) = match lower.as_slice() {
        [b":set", b"hints", ..] => {
            shows_hints.set(true);
            return Ok(());
        }
        [b":set", b"nohints", ..] => {
            shows_hints.set(false);
            return Ok(());
        }
        [b":set", _, ..] => ("preference", &words[1]),
        _ => ("internal command", &words[0]),
    };
    let word = String::from_utf8_lossy(word);
    print(format!("{place}unknown redis-cli {what} '{word}'\n").as_bytes())
}

/// Shows messages until there is input on standard input, or until Ctrl-C, which ends the
/// subscription. `buffered` is input that was already read.
fn follow_until_input(session: &mut CliSession, buffered: &[u8]) -> Result<(), CliEnd> {
    let output = session.terms.style.output;
    let shows_text = output != Output::Raw && io::stdout().is_terminal();
    let term = std::env::var("TERM").unwrap_or_default();
    let _caught = session.interrupt.clone().map(Caught::begin);
    let (colour, end) = if term.contains("xterm") { ("\x1b[1;90m", "\x1b[0m") } else { ("", "") };
    loop {
        session.show_received()?;
        if !buffered.is_empty() {
            return Ok(());
        }
        let (Some(connection), Some(interrupt)) = (&mut session.connection, &session.interrupt)
        else {
            return Ok(());
        };
        if shows_text {
            print(format!("{colour}{READING}{end}").as_bytes())?;
        }
        let stdin = io::stdin();
        let fds = [interrupt.as_fd(), connection.as_fd(), stdin.as_fd()];
        let ready = wait_readable(&fds, None)
            .map_err(|error| CliEnd::failed(format!("cannot wait for messages: {error}")))?;
        if shows_text {
            print(b"\x1b[K")?;
        }
        if ready[0] && interrupt.take() {
            let _ = session.connect(false);
            return Ok(());
        }
        if ready[1] {
            connection.fill().map_err(|failure| CliEnd::failed(format!("Error: {failure}")))?;
        } else if ready[2] {
            return Ok(());
        }
    }
}

/// Completion and hints while a line is typed.
struct Typing {
    docs: Rc<Docs>,
    shows_hints: Rc<Cell<bool>>,
}

/// A hint: shown after the line, and never inserted.
struct Missing(String);

impl Hint for Missing {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Typing {
    type Hint = Missing;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Missing> {
        if !self.shows_hints.get() || pos < line.len() {
            return None;
        }
        let missing = hint(&self.docs, line).filter(|missing| !missing.is_empty())?;
        let blank = if line.ends_with(' ') { "" } else { " " };
        Some(Missing(format!("{blank}{missing}")))
    }
}

impl Completer for Typing {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let line = &line[..pos];
        let is_help = line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("help "));
        let start = if is_help { line.len() - line[5..].trim_start().len() } else { 0 };
        let typed = line[start..].to_uppercase();
        let names = self.docs.entries.iter().map(|entry| entry.name.clone());
        let groups = self.docs.groups().into_iter().map(|group| format!("@{group}"));
        let topics = names.chain(groups.filter(|_| is_help));
        Ok((start, topics.filter(|topic| topic.to_uppercase().starts_with(&typed)).collect()))
    }
}

impl Highlighter for Typing {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}

impl Validator for Typing {}

impl Helper for Typing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_possible_password_is_not_written() {
        for (line, expected) in [
            ("get k", true),
            ("3 get \"k 1\"", true),
            ("auth secret", false),
            ("3 auth secret", false),
            ("auth \"sec ret", false),
            ("config set requirepass 'x", false),
        ] {
            assert_eq!(may_be_written(line.as_bytes()), expected, "{line}");
        }
    }
}
