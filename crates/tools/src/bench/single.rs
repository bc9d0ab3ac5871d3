//! `weft bench` of one running server: measures every workload run by run, prints the results and
//! writes the files.

use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::AtomicBool;

use super::args::BenchArgs;
use super::measured::{MeasuredWorkload, name};
use super::server_table::print;
use super::{csv, html, idle, report};
use crate::client::session::ServerEndpoint;
use crate::interrupt::{self, interrupted_flag};
use crate::load::drive::{check, drive, make_ready_observed};
use crate::load::outcome::{WindowOutcome, WindowProgress};
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::load::workload::names;
use crate::printable::grouped;
use crate::servers::account::find_pid;
use crate::{Error, output, progress};
pub(super) fn measure(args: &BenchArgs) -> Result<(), Error> {
    args.output.files().try_for_each(|path| output::check(path))?;
    if let (Some(json), Some(html)) = (&args.output.json_out_file, &args.output.html) {
        output::check_apart(json, html)?;
    }
    let endpoint = args.connection.endpoint()?;
    let stop = interrupted_flag()?;
    if args.idle {
        return hold(args, &endpoint, &stop);
    }
    let pid = match args.pid {
        Some(pid) => Some(pid),
        // The CPU time of one node is not that of all.
        None if args.load.cluster => None,
        None => find_pid(&endpoint)?,
    };
    let mut bench = SingleBench { args, endpoint, pid, stop: &stop, all: Vec::new() };
    let workloads = workloads(args)?;
    if args.output.csv {
        print(csv::HEADING)?;
    }
    let mut result = bench.turn(&workloads);
    while args.forever && result.is_ok() && bench.is_wanted() {
        bench.write_files()?;
        bench.all.clear();
        result = bench.turn(&workloads);
    }
    // The measurements are written even after a failure.
    bench.write_files().and(result)
}
fn workloads(args: &BenchArgs) -> Result<Vec<(&'static Workload, LoadSpec)>, Error> {
    let mut words: Vec<Vec<u8>> = args.words.iter().map(|word| word.clone().into_vec()).collect();
    if args.last_from_stdin {
        let mut last = Vec::new();
        std::io::stdin().read_to_end(&mut last).map_err(Error::io("read standard input"))?;
        words.push(last);
    }
    if !words.is_empty() {
        let commands = vec![args.load.command(words)];
        return Ok(vec![(
            &names::COMMAND,
            LoadSpec { commands, ..args.load.load(&names::COMMAND) },
        )]);
    }
    if args.storm {
        let load = LoadSpec { reconnects: true, ..args.load.load(&names::CONNECT) };
        return Ok(vec![(&names::CONNECT, load)]);
    }
    Ok(args.load.rows()?.into_iter().map(|row| (row, args.load.load(row))).collect())
}
fn hold(args: &BenchArgs, endpoint: &ServerEndpoint, stop: &AtomicBool) -> Result<(), Error> {
    let clients = args.load.load(&names::CONNECT).clients;
    idle::hold(endpoint, clients, stop, || {
        print(&format!("{clients} idle connections are open; SIGINT closes them\n"))
    })?;
    Err(Error::Interrupted)
}

struct SingleBench<'a> {
    args: &'a BenchArgs,
    endpoint: ServerEndpoint,
    pid: Option<u32>,
    stop: &'a AtomicBool,
    all: Vec<MeasuredWorkload>,
}

impl SingleBench<'_> {
    /// Measures each workload. After one that the server refuses, the others still run; the first
    /// failure decides the exit code.
    fn turn(&mut self, workloads: &[(&'static Workload, LoadSpec)]) -> Result<(), Error> {
        let mut failed = Ok(());
        for (row, load) in workloads {
            let result = self.measure(row, load);
            let goes_on = match &result {
                Err(error @ Error::Refused { .. }) => {
                    self.show_refused(row, error)?;
                    true
                }
                Err(Error::ErrorReplies { .. }) | Ok(()) => true,
                Err(_) => false,
            };
            failed = failed.and(result);
            if !goes_on || !self.is_wanted() {
                break;
            }
        }
        failed
    }

    /// Prepares the server for a workload, measures it as often as asked for, and prints it.
    fn measure(&mut self, row: &'static Workload, load: &LoadSpec) -> Result<(), Error> {
        check(row, load)?;
        let bar = progress::bar();
        bar.set_message(format!("{}: preparing", row.name));
        make_ready_observed(&self.endpoint, row, load, self.args.load.prefill, &mut |share| {
            progress::show_step(&bar, &format!("{}: writing keys", row.name), share);
            interrupt::go_on(self.stop)
        })?;
        let pid = self.pid;
        let mut measured = MeasuredWorkload { row, load: load.clone(), pid, outcomes: Vec::new() };
        let (mut load, count) = (load.clone(), self.args.run_count);
        let mut result = Ok(());
        for run in 0..count {
            let title = match count {
                1 => name(row, &load),
                _ => format!("{} {}/{count}", name(row, &load), run + 1),
            };
            let outcome = drive(&self.endpoint, row, &load, pid, &mut |progress| {
                progress::show(&bar, progress.share, &format!("{title}: {}", going(progress)));
                interrupt::go_on(self.stop)
            });
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let interrupted = outcome.interrupted;
            measured.outcomes.push(outcome);
            if let (Some(outcome), true) = (measured.outcomes.last(), count > 1) {
                result = bar.suspend(|| self.show_run(&measured, outcome, run + 1));
            }
            if result.is_err() {
                break;
            }
            if interrupted {
                result = Err(Error::Interrupted);
                break;
            }
            // The next run has other keys.
            load.seed = load.seed.wrapping_add(load.threads as u64);
        }
        bar.finish_and_clear();
        if measured.outcomes.is_empty() {
            return result;
        }
        let shown = self.show(&measured);
        let checked = measured.refuse_errors();
        self.all.push(measured);
        shown.and(checked).and(result)
    }

    /// A line for one run of several, in text.
    fn show_run(
        &self,
        measured: &MeasuredWorkload,
        outcome: &WindowOutcome,
        run: u32,
    ) -> Result<(), Error> {
        let output = &self.args.output;
        match output.json || output.csv {
            true => Ok(()),
            false => print(&format!("run {run}: {}", report::line(measured, outcome))),
        }
    }

    fn show(&self, measured: &MeasuredWorkload) -> Result<(), Error> {
        let output = &self.args.output;
        let text = match &measured.outcomes[..] {
            _ if output.json => format!("{}\n", report::json(measured)),
            _ if output.csv => csv::lines(measured),
            [only] if output.quiet => report::line(measured, only),
            [only] => report::text(measured, only, !output.hide_histogram),
            _ => report::summary(measured),
        };
        print(&text)
    }

    fn show_refused(&self, row: &Workload, error: &Error) -> Result<(), Error> {
        let output = &self.args.output;
        match (output.json, output.csv) {
            (true, _) => print(&format!("{}\n", report::refused_json(row, error))),
            (_, true) => Ok(()),
            _ => print(&report::refused_text(row, error)),
        }
    }

    /// Whether further results have a reader: of standard output, or of a file.
    fn is_wanted(&self) -> bool {
        output::is_read() || self.args.output.files().next().is_some()
    }

    /// Writes the files that were asked for. Without a measurement, earlier files stay.
    fn write_files(&self) -> Result<(), Error> {
        if self.all.is_empty() {
            return Ok(());
        }
        if let Some(path) = &self.args.output.json_out_file {
            let objects: serde_json::Value = self.all.iter().map(report::json).collect();
            output::write(path, &format!("{objects:#}\n"))?;
        }
        if let Some(path) = &self.args.output.html {
            output::write(path, &html::page(&self.endpoint.address.to_string(), &self.all))?;
        }
        Ok(())
    }
}

/// The progress of a run, in a few words.
fn going(progress: &WindowProgress) -> String {
    let mut text = format!("{} requests", grouped(progress.requests));
    if let Some(last) = progress.last {
        let per_second = grouped(last.per_second as u64);
        text = format!("{per_second}/s, p99 {:.0} us", last.p99_us);
    }
    if let Some(left) = progress.left() {
        text += &format!(", {} s left", left.as_secs_f64().ceil());
    }
    text
}
