//! The modes in which `weft cli` does something other than send one command.

mod keys;
mod latency;
mod pipe;
mod spectrum;
mod stat;
mod walk;

use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::connection::{Caught, ConnectionFailure, CtrlC};
use super::options::Options;
use super::output::{CliEnd, print};
use super::session::CliSession;
use crate::client::reply::ServerReply;

/// Enters the mode that the options name; `None` without one.
pub fn enter(options: &Options, session: &mut CliSession) -> Option<Result<(), CliEnd>> {
    let modes = &options.modes;
    if let Some(seconds) = modes.intrinsic_latency {
        return Some(latency::intrinsic(seconds));
    }
    let mode: fn(&Options, &mut CliSession) -> Result<(), CliEnd> = match modes {
        modes if modes.latency || modes.latency_history => latency::sample,
        modes if modes.latency_dist => spectrum::sample,
        modes if modes.pipe => pipe::transfer,
        modes if modes.bigkeys => keys::find_big,
        modes if modes.memkeys || modes.memkeys_samples.is_some() => keys::find_large,
        modes if modes.hotkeys => keys::find_hot,
        modes if modes.stat => stat::follow,
        modes if modes.scan => keys::list,
        _ => return None,
    };
    Some(match session.connect(false) {
        Err(_) => Err(CliEnd::Code(1)),
        Ok(()) => mode(options, session),
    })
}

/// From now on Ctrl-C ends the mode, and a second one the process.
fn catch_interrupt() -> Result<Caught, CliEnd> {
    let interrupt = CtrlC::watch();
    let failed = |error| CliEnd::failed(format!("cannot watch Ctrl-C: {error}"));
    Ok(Caught::begin(Rc::new(interrupt.map_err(failed)?)))
}

fn lost(failure: ConnectionFailure) -> CliEnd {
    CliEnd::failed(format!("Error: {failure}"))
}

/// Sends a command. In a terminal, waits until a lost server is back.
fn ask_again(
    session: &mut CliSession,
    words: &[&str],
    is_terminal: bool,
) -> Result<ServerReply, CliEnd> {
    let mut tries = 0;
    loop {
        match session.ask(words) {
            Ok(reply) => {
                if tries > 0 {
                    print(b"\r\x1b[0K")?;
                }
                return Ok(reply);
            }
            Err(failure) if !is_terminal => return Err(lost(failure)),
            Err(_) => {
                tries += 1;
                print(format!("\r\x1b[0KReconnecting... {tries}\r").as_bytes())?;
                if session.connect(true).is_err() {
                    thread::sleep(Duration::from_secs(1));
                }
            }
        }
    }
}
