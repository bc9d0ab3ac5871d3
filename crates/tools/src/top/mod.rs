//! `weft top`: the current work of a running Weft, Redis or Valkey, and what limits it.
//!
//! Reading order: `watch` asks the server (`info`) and the kernel (`host`); `report` computes rates
//! from two looks, and `verdict` names the limit; `view` puts a report into words, which `screen`
//! draws, and `json` is for programs. It changes nothing; a look costs the server a few commands.

mod host;
mod info;
mod json;
mod report;
mod screen;
mod verdict;
mod view;
mod watch;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{ArgAction, Args};

use self::report::TopReport;
use self::view::TopView;
use self::watch::{Login, LookAnswer, ServerLook, ServerWatch};
use crate::cli::connection::plain;
use crate::cli::options::ServerOptions;
use crate::cli::terminal::ask_password;
use crate::interrupt::interrupted_flag;
use crate::{Error, output};

/// How long the server may take to answer without a screen.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// The shortest time between two looks.
const INTERVAL_MIN: f64 = 0.1;
const INTERVAL_MAX: f64 = 3600.0;

/// Show a server's threads, clients, commands and memory, and what limits it.
///
/// Keys: q ends, space looks immediately.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct TopArgs {
    #[command(flatten)]
    server: ServerOptions,
    /// Seconds between two looks
    #[arg(short = 'i', long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Print one report as text, and end
    #[arg(long)]
    once: bool,
    /// Print one report as JSON, and end
    #[arg(long)]
    json: bool,
    /// Show this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The options of a screen.
struct Options {
    address: String,
    interval: Duration,
}

/// Watches a server.
///
/// # Errors
/// The server cannot be reached, refuses INFO, or is gone.
pub fn run(args: &TopArgs) -> Result<(), Error> {
    let refuse = |reason: String| Error::Usage(reason);
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&args.interval) {
        let reason = format!("the interval is between {INTERVAL_MIN} and {INTERVAL_MAX} seconds");
        return Err(refuse(reason));
    }
    let target = args.server.target();
    let options = Options {
        address: plain(&target.address),
        interval: Duration::from_secs_f64(args.interval),
    };
    let has_screen = !args.once && !args.json;
    if has_screen && !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        let reason = "this is no terminal: --once prints one report, --json one for programs";
        return Err(refuse(reason.to_owned()));
    }
    let watch = ServerWatch::begin(target, login(args)?);
    if has_screen {
        let stop = interrupted_flag()?;
        screen::show_until_quit(&watch, &options, &stop).map_err(refuse)?;
        return match stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        };
    }
    let before = wait(&watch).map_err(refuse)?;
    std::thread::sleep(options.interval);
    let now = wait(&watch).map_err(refuse)?;
    let report = TopReport::between(&before, &now);
    let text = match args.json {
        true => format!("{}\n", json::json(&report, &options.address)),
        false => TopView::new(&report, &options.address, unix_seconds()).text(),
    };
    output::print(&text)
}

/// The user and the password, as for `weft cli`.
fn login(args: &TopArgs) -> Result<Login, Error> {
    let (user, password) = args.server.credentials();
    let password = match args.server.askpass {
        true => match ask_password("Please input password: ") {
            Ok(password) => Some(password),
            Err(_) => return Err(Error::Usage("no password was given".to_owned())),
        },
        false => password.or_else(|| std::env::var_os("REDISCLI_AUTH").map(OsString::into_vec)),
    };
    Ok(Login { user, password })
}

fn wait(watch: &ServerWatch) -> Result<Box<ServerLook>, String> {
    watch.ask();
    match watch.wait(ANSWER_TIME) {
        Some(Ok(LookAnswer::Look(look))) => Ok(look),
        Some(Ok(LookAnswer::Busy(words))) => Err(format!("the server refused INFO: {words}")),
        Some(Err(reason)) => Err(reason),
        None => Err(format!("the server has not answered for {} seconds", ANSWER_TIME.as_secs())),
    }
}

fn unix_seconds() -> i64 {
    sys::clock::unix_micros() / 1_000_000
}
