//! `weft cli`: a client for people and scripts, with the options and the output of redis-cli.
//!
//! Reading order: `options` is the command line; `format` prints replies; `connection` is the
//! connection, `session` the conversation on it; `repl` is the loop over commands, with help from
//! `docs` and `hint`; `modes` is everything that is not one command. Tests compare the output for
//! scripts with redis-cli byte by byte.

pub(crate) mod connection;
mod docs;
mod format;
mod help;
mod hint;
mod history;
mod missing;
mod modes;
pub(crate) mod options;
mod output;
mod repl;
mod session;
pub(crate) mod terminal;

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{CommandFactory, Parser};

use self::connection::CtrlC;
use self::options::Options;
use self::output::CliEnd;
use self::session::{CliSession, Obstacle, Protocol, Terms};
use crate::printable::printable;

/// The exit code when the reader closes the output, as if SIGPIPE had ended the process.
const OUTPUT_CLOSED_CODE: u8 = 141;

/// Runs the client: `args` begins with its own name.
pub fn run(args: &[OsString]) -> ExitCode {
    let options = match read_options(args) {
        Ok(options) => options,
        Err(code) => return code,
    };
    match start(&options) {
        Ok(code) | Err(CliEnd::Code(code)) => ExitCode::from(code),
        Err(CliEnd::OutputClosed) => ExitCode::from(OUTPUT_CLOSED_CODE),
        Err(CliEnd::Failed(reason)) => {
            // Part of it may be a server's text.
            say!("{}", printable(&reason));
            ExitCode::FAILURE
        }
    }
}

fn read_options(args: &[OsString]) -> Result<Options, ExitCode> {
    let options = Options::try_parse_from(args).map_err(|error| {
        // As in redis-cli, `-h` without a host shows the help.
        if args.last().is_some_and(|last| last == "-h") {
            let _ = Options::command().print_help();
            return ExitCode::SUCCESS;
        }
        let _ = error.print();
        ExitCode::FAILURE
    })?;
    if options.help {
        let _ = Options::command().print_help();
        return Err(ExitCode::SUCCESS);
    }
    if options.version {
        let _ = output::print(format!("weft cli {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
        return Err(ExitCode::SUCCESS);
    }
    Ok(options)
}

fn start(options: &Options) -> Result<u8, CliEnd> {
    if let Some(reason) = options.missing.reason() {
        return Err(CliEnd::failed(reason));
    }
    let is_terminal = std::io::stdout().is_terminal();
    let (user, password) = options.server.credentials();
    if password.is_some() && !options.server.no_auth_warning {
        say!(
            "Warning: Using a password with '-a' or '-u' option on the command line interface \
             may not be safe."
        );
    }
    let password = match options.server.askpass {
        true => Some(terminal::ask_password("Please input password: ")?),
        false => password.or_else(|| std::env::var_os("REDISCLI_AUTH").map(OsString::into_vec)),
    };
    let words = options.words();
    let json = options.shown.json || options.shown.quoted_json;
    let terms = Terms {
        user,
        password,
        protocol: match &options.server {
            server if server.resp2 => Protocol::Two,
            server if server.resp3 => Protocol::Three,
            _ if json => Protocol::ThreeIfKnown,
            _ => Protocol::Two,
        },
        style: options.style(is_terminal),
        shows_pushes: options.shown.show_pushes.unwrap_or(is_terminal),
        interactive: words.is_empty() && options.modes.eval.is_none(),
        errors_end: options.errors_end,
        cluster: options.cluster,
        interval: options.interval.unwrap_or_default(),
    };
    let mut session = CliSession::new(options.server.target(), options.server.database(), terms);
    if let Some(result) = modes::enter(options, &mut session) {
        return result.map(|()| 0);
    }
    if let Some(file) = &options.modes.eval {
        let script = std::fs::read(file);
        let script = script.map_err(|error| {
            let reason = connection::reason(&error);
            CliEnd::failed(format!("Can't open file '{}': {reason}", file.display()))
        })?;
        let command = eval_command(script, words);
        return send_one(&mut session, &command, options.repeat);
    }
    if words.is_empty() {
        return converse(&mut session);
    }
    if matches!(words[0].to_ascii_lowercase().as_slice(), b"help" | b"?") {
        let _ = session.connect(true);
        help::print_help(&mut session, None, &words[1..])?;
        return Ok(0);
    }
    let command = complete(options, words)?;
    send_one(&mut session, &command, options.repeat)
}

/// Sends commands from standard input until its end.
fn converse(session: &mut CliSession) -> Result<u8, CliEnd> {
    let watched = CtrlC::watch();
    let interrupt =
        watched.map_err(|error| CliEnd::failed(format!("cannot watch Ctrl-C: {error}")))?;
    session.interrupt = Some(Rc::new(interrupt));
    let connected = session.connect(false);
    if std::io::stdin().is_terminal() {
        return repl::in_terminal(session).map(|()| 0);
    }
    if connected == Err(Obstacle::Refused) {
        return Ok(1);
    }
    repl::from_pipe(session)?;
    Ok(u8::from(session.failed))
}

/// Sends one command and shows the messages that follow it.
fn send_one(session: &mut CliSession, command: &[Vec<u8>], repeat: i64) -> Result<u8, CliEnd> {
    // If the connection fails, `issue` tries again and prints the reason.
    if session.connect(true) == Err(Obstacle::Refused) {
        return Ok(1);
    }
    session.issue(command, repeat)?;
    session.follow_messages()?;
    Ok(u8::from(session.failed))
}

/// Applies -x, -X and --quoted-input to the words of the command line.
fn complete(options: &Options, words: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, CliEnd> {
    let mut command = words;
    if options.quoted_input {
        for word in &mut command {
            let Some(unquoted) = options::unquote(word) else {
                output::print(b"Invalid quoted string\n")?;
                return Err(CliEnd::Code(1));
            };
            *word = unquoted;
        }
    }
    if options.last_from_stdin {
        command.push(read_stdin()?);
    } else if let Some(tag) = &options.tag_from_stdin {
        let tag = tag.clone().into_vec();
        let Some(word) = command.iter_mut().find(|word| **word == tag) else {
            return Err(CliEnd::failed("Using -X option but stdin tag not match."));
        };
        *word = read_stdin()?;
    }
    Ok(command)
}

fn read_stdin() -> Result<Vec<u8>, CliEnd> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| CliEnd::failed(format!("Reading from standard input: {error}")))?;
    Ok(bytes)
}

/// EVAL of a script with the words of the command line: keys, a comma by itself, arguments.
fn eval_command(script: Vec<u8>, mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let keys = words.iter().position(|word| word == b",");
    if let Some(comma) = keys {
        words.remove(comma);
    }
    let count = keys.unwrap_or(words.len()).to_string().into_bytes();
    let mut command = vec![b"EVAL".to_vec(), script, count];
    command.append(&mut words);
    command
}
