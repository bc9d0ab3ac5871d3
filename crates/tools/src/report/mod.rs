//! `weft report`: a series of experiments on one or more servers, as a page.
//!
//! Reading order: `args` is the command line; `experiments` is the table of experiments;
//! `servers` starts them for each question; `measure` goes round them; `verdict` says what the
//! figures mean; `write` makes the page, which `files` puts in its place. `machine` says what else
//! ran.
//!
//! Invariants: the page is written even after an interrupt or a failure, with the results until
//! then; a point with errors has no figures; a report with failures ends with an error.

mod args;
mod experiments;
mod files;
mod machine;
mod measure;
mod progress;
mod servers;
#[cfg(test)]
mod tests;
mod verdict;
mod write;

use std::sync::atomic::Ordering;

pub use self::args::ReportArgs;

use self::experiments::{ServerSetup, TABLE};
use self::files::ReportFiles;
use self::machine::MachineFacts;
use self::measure::{ReportPlan, measure};
use self::progress::ReportProgress;
use self::servers::Fleet;
use self::write::Findings;
use crate::interrupt::interrupted_flag;
use crate::{Error, output};

/// Measures what the command line says and writes the page.
///
/// # Errors
/// A server does not start or cannot be reached, the files cannot be written, or measurements
/// failed or were interrupted; the page lists them.
pub fn run(args: &ReportArgs) -> Result<(), Error> {
    let targets = servers::named(args)?;
    let files = ReportFiles::named(args)?;
    let stop = interrupted_flag()?;
    let machine = MachineFacts::read();
    let threads = args.threads.map_or((machine.processors / 2).max(1), usize::from);
    let chosen = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let plan = ReportPlan {
        targets: &targets,
        experiments: TABLE.iter().filter(|row| chosen(row.name)).collect(),
        extent: args.extent(),
        threads,
        cpus: args.pin.clone().unwrap_or_default(),
        stop: &stop,
    };
    let mut fleet = Fleet::new(&targets);
    fleet.enter(ServerSetup::default())?;
    let facts = fleet.facts()?;
    let mut progress = ReportProgress::new();
    let measured = measure(&plan, &mut fleet, &mut progress)?;
    progress.finish();
    drop(fleet);
    let findings = Findings {
        machine,
        targets: &targets,
        facts,
        extent: plan.extent,
        load_threads: threads,
        measured,
        is_interrupted: stop.load(Ordering::Relaxed),
    };
    finish(&files, &findings)
}

/// Writes both files and prints the result.
fn finish(files: &ReportFiles, findings: &Findings<'_>) -> Result<(), Error> {
    // An earlier report is not replaced by one without results.
    if findings.is_empty() && findings.failed_count() == 0 {
        return Err(match findings.is_interrupted {
            true => Error::Interrupted,
            false => Error::Usage(
                "nothing was measured: no server takes part in these experiments".into(),
            ),
        });
    }
    files.write(&findings.page())?;
    output::print(&format!("{} and {}\n", files.page.display(), files.markdown.display()))?;
    if findings.is_interrupted {
        say!("the page has the results so far");
    }
    findings.failures().iter().for_each(|failure| say!("{failure}"));
    match findings.failed_count() {
        0 if findings.is_interrupted => Err(Error::Interrupted),
        0 => Ok(()),
        count => Err(Error::NotMeasured { count }),
    }
}
