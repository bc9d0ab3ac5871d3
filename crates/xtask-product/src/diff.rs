//! `cargo xtask diff`: sends the same random requests to Weft and to a reference, and prints the
//! differences.
//!
//! The reference is a running server, or the program of one. Weft is built for development, so
//! that overflows and broken invariants panic. The crate `diff` does the work; this file has the
//! command line, starts the servers and prints the report.

use std::io;
use std::path::Path;

use base::quote::push_quoted;
use clap::builder::PossibleValuesParser;
use diff::generate::{Command, KINDS, Mix, data_commands, groups};
use diff::run::Tally;
use diff::{ConnectionName, Difference, Found, Pair, Peer, Plan, Request, Step, Summary, rules};

use xtask::Failure;

use crate::server::{self, Where};

/// Bytes of an argument that are printed.
const PRINTED_BYTES_MAX: usize = 400;

/// Errors that are shown for each command.
const ERRORS_SHOWN_MAX: usize = 5;

/// The last requests of a list that are printed; most lists are shorter.
const STEPS_SHOWN_MAX: usize = 40;

/// The options of a run.
#[derive(clap::Args)]
pub struct Options {
    /// HOST:PORT of the server to compare with, or the path of its program, which is then started
    #[arg(long, required_unless_present = "rules", value_name = "HOST:PORT|PROGRAM")]
    reference: Option<String>,
    /// The same for the server under test [default: Weft, built from this source]
    #[arg(long, value_name = "HOST:PORT|PROGRAM")]
    subject: Option<String>,
    /// How many requests
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    commands: u64,
    /// Seed of the random numbers; a difference names the seed of its round
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Only commands of these groups; transactions, scripting and acl make theirs of all others,
    /// or of those that are named with them
    #[arg(long, value_name = "GROUP", value_delimiter = ',',
        value_parser = PossibleValuesParser::new([groups(), KINDS.to_vec()].concat()))]
    groups: Vec<String>,
    /// Only these commands on data, by their names in lower case: set,xgroup|create
    #[arg(long, value_name = "CMD", value_delimiter = ',')]
    only: Vec<String>,
    /// All but these commands
    #[arg(long, value_name = "CMD", value_delimiter = ',')]
    skip: Vec<String>,
    /// Requests between empty servers
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    round: usize,
    /// Requests between two comparisons of all data
    #[arg(long, default_value_t = 200, value_name = "N")]
    look: usize,
    /// End after this many kinds of differences
    #[arg(long, default_value_t = 10, value_name = "N")]
    differences: usize,
    /// Seconds to spend on finding a short list of requests for each
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS")]
    shrink: f64,
    /// Print how often each command was sent and refused, and why most
    #[arg(long)]
    coverage: bool,
    /// Print what is not sent or not compared byte for byte, and why, and end
    #[arg(long)]
    rules: bool,
}

/// Compares the servers, and prints the differences.
///
/// # Errors
/// When a difference has no row that explains it, or a server cannot be reached.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    if options.rules {
        print!("{}", rules::describe());
        return Ok(());
    }
    let build = || server::build(root, false);
    let reference = Where::named(options.reference.as_deref(), &[], build)?;
    let reference = peer("reference", reference)?;
    let subject = peer("subject", Where::named(options.subject.as_deref(), &[], build)?)?;
    let failed = |e: io::Error| format!("the servers cannot be compared: {e}");
    let mut pair = Pair::new(subject, reference).map_err(failed)?;
    let (commands, unknown) = pair.known(wanted(options)).map_err(failed)?;
    if !unknown.is_empty() {
        eprintln!("diff: not known to both: {}", unknown.join(" "));
    }
    if commands.is_empty() {
        return Err("no command is left to compare".to_owned());
    }
    let plan = Plan {
        commands,
        mix: mix(options),
        version: pair.version,
        requests: options.commands,
        seed: options.seed,
        round_requests: options.round,
        look_requests: options.look,
        differences_max: options.differences,
        shrink_time: std::time::Duration::from_secs_f64(options.shrink),
    };
    let mut printed = 0;
    let summary = diff::run(&mut pair, &plan, &mut |sent, differences| {
        if sent / 100_000 > printed {
            printed = sent / 100_000;
            eprintln!("diff: {sent} requests, {differences} differences");
        }
    });
    report(&summary.map_err(failed)?, options)
}

/// Connects to a server, which is started first if it is a program, and again when it ends.
fn peer(name: &str, origin: Where) -> Result<Peer<'static>, Failure> {
    let failed = |e: io::Error| format!("the {name} cannot be reached: {e}");
    let is_program = matches!(origin, Where::Program(_));
    // Lives as long as the peer, which restarts the server through it.
    let mut running = None;
    let mut start = move || {
        drop(running.take());
        let (address, server) = origin.start().map_err(io::Error::other)?;
        running = server;
        Ok(address)
    };
    let peer = Peer::connect(name, &start().map_err(failed)?).map_err(failed)?;
    Ok(if is_program { peer.revived_by(Box::new(start)) } else { peer })
}

/// The commands on data that the options select.
fn wanted(options: &Options) -> Vec<Command> {
    let named = |list: &[String], text: &str| list.iter().any(|wanted| wanted == text);
    let all_groups = options.groups.iter().all(|group| is_kind(group));
    let mut commands = data_commands();
    commands.retain(|command| {
        (all_groups || named(&options.groups, command.spec.group.name()))
            && (options.only.is_empty() || named(&options.only, command.name))
            && !named(&options.skip, command.name)
    });
    commands
}

/// The kinds of requests that the options select: all kinds by default, otherwise the named ones.
fn mix(options: &Options) -> Mix {
    let kinds: Vec<&str> =
        options.groups.iter().map(String::as_str).filter(|group| is_kind(group)).collect();
    match (kinds.is_empty(), options.groups.is_empty() && options.only.is_empty()) {
        (true, true) => Mix::ALL,
        (true, false) => Mix::REQUESTS,
        (false, _) => Mix::of_kinds(&kinds),
    }
}

fn is_kind(group: &str) -> bool {
    KINDS.contains(&group)
}

fn report(summary: &Summary, options: &Options) -> Result<(), Failure> {
    if options.coverage {
        summary.tallies.iter().for_each(|(name, tally)| print!("{}", coverage(name, tally)));
    }
    for (reason, count) in &summary.explained {
        println!("explained {count} times: {reason}");
    }
    for difference in &summary.differences {
        print!("{}", describe(difference));
    }
    let seconds = summary.elapsed.as_secs_f64();
    println!(
        "{} requests of {} commands in {seconds:.1} s, {:.0} a second",
        summary.sent,
        summary.tallies.len(),
        summary.sent as f64 / seconds.max(0.001)
    );
    match (summary.differences.len(), summary.repeated) {
        (0, _) => Ok(()),
        (kinds, more) => Err(format!("{kinds} kinds of differences, {more} more of the same")),
    }
}

/// How often a command succeeded, and its most frequent errors.
fn coverage(name: &str, tally: &Tally) -> String {
    let mut text = format!("{name:<24}{:>9} sent {:>9} refused\n", tally.sent, tally.refused());
    let mut errors: Vec<_> = tally.errors.iter().collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (error, count) in errors.into_iter().take(ERRORS_SHOWN_MAX) {
        text += &format!("{count:>12} {}\n", String::from_utf8_lossy(error));
    }
    text
}

fn describe(difference: &Difference) -> String {
    let mut text = format!("\n=== {} (--seed {})\n", difference.found.kind(), difference.seed);
    match &difference.found {
        Found::Reply(_, request, subject, reference) => {
            text += &format!("request   {}\n", line(request));
            text += &format!("subject   {subject}\nreference {reference}\n");
        }
        Found::State(unlike) => {
            text += &format!("look      {} in {}\n", line(&unlike.request), unlike.database);
            text += &format!("subject   {}\nreference {}\n", unlike.subject, unlike.reference);
        }
        Found::Lost(name, _, request, reason) => {
            text += &format!("the {name} does not answer: {reason}\nrequest   {}\n", line(request));
        }
        Found::Explained(_, reason) => text += &format!("explained {reason}\n"),
    }
    if difference.steps.is_empty() {
        text += "it could not be repeated\n";
    }
    let hidden = difference.steps.len().saturating_sub(STEPS_SHOWN_MAX);
    if hidden > 0 {
        text += &format!("    ... {hidden} requests before these, which --shrink may shorten\n");
    }
    for step in &difference.steps[hidden..] {
        text += &format!("    {}{}\n", by(step), line(&step.request));
    }
    text
}

/// A mark for the steps of all connections but the first.
fn by(step: &Step) -> &'static str {
    match step.client {
        ConnectionName::First => "",
        ConnectionName::Second => "(second) ",
        ConnectionName::Observer => "(observer) ",
    }
}

/// A request in the syntax of `redis-cli`.
fn line(request: &Request) -> String {
    let word = |word: &Vec<u8>| {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
        if !word.is_empty() && word.iter().all(is_plain) && word.len() <= PRINTED_BYTES_MAX {
            return String::from_utf8_lossy(word).into_owned();
        }
        let mut quoted = Vec::new();
        push_quoted(&mut quoted, word.get(..PRINTED_BYTES_MAX).unwrap_or(word));
        let quoted = String::from_utf8_lossy(&quoted).into_owned();
        match word.len() > PRINTED_BYTES_MAX {
            true => format!("{quoted}...({} bytes)", word.len()),
            false => quoted,
        }
    };
    request.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diff::request;

    #[test]
    fn requests_are_printed_as_they_are_typed() {
        assert_eq!(line(&request(&["SET", "a b", "", "x"])), r#"SET "a b" "" x"#);
        assert_eq!(line(&vec![b"GET".to_vec(), b"\x00\"".to_vec()]), r#"GET "\x00\"""#);
    }
}
