//! The terminal while no line is edited: passwords without echo, single keys.

use std::io::{self, BufRead, IsTerminal, Write};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::output::CliEnd;

/// Another mode of the terminal of standard input, until it is dropped.
pub struct TerminalMode {
    before: Termios,
}

impl TerminalMode {
    /// Keys arrive immediately and are not shown. `None` if standard input is no terminal.
    pub fn single_keys() -> Option<TerminalMode> {
        TerminalMode::without(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn without(modes: LocalModes) -> Option<TerminalMode> {
        let stdin = io::stdin();
        let before = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten()?;
        let mut changed = before.clone();
        changed.local_modes.remove(modes);
        tcsetattr(&stdin, OptionalActions::Now, &changed).ok()?;
        Some(TerminalMode { before })
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// From now on, SIGTERM and SIGHUP restore the current mode of the terminal and end the process:
/// the line editor changes the mode.
pub fn restore_on_signals() {
    let stdin = io::stdin();
    let Some(before) = stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten() else {
        return;
    };
    // A process started by nohup(1) outlives the terminal.
    let hangup = (!sys::signal::hangup_is_ignored()).then_some(SIGHUP);
    let Ok(mut signals) = Signals::new([SIGTERM].into_iter().chain(hangup)) else { return };
    thread::spawn(move || {
        for signal in signals.forever() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
            // Ends the process as without a handler.
            let _ = emulate_default_handler(signal);
        }
    });
}

/// Asks for a password, which a terminal does not show.
pub fn ask_password(question: &str) -> Result<Vec<u8>, CliEnd> {
    let hidden = TerminalMode::without(LocalModes::ECHO);
    if hidden.is_some() {
        let _ = write!(io::stderr(), "{question}");
        let _ = io::stderr().flush();
    }
    let mut line = Vec::new();
    let read = io::stdin().lock().read_until(b'\n', &mut line);
    if hidden.is_some() {
        say!("");
    }
    match read {
        Ok(1..) => {}
        _ => return Err(CliEnd::failed("no password was given")),
    }
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}
