//! `cargo xtask ci`: exactly what CI runs, so that a green run here is a green run there.
//!
//! There are two tables of steps: for each change, and with `--nightly` the long random runs. Steps
//! run in the order of their table, and the first failure ends the run. Their output passes through
//! unfiltered; the last lines have the time of each step. `.ci/run` installs toolchains, and this
//! command does not.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use xtask::{Failure, tidy};

use crate::cargo;

/// How a step is performed.
#[derive(Clone, Copy)]
enum StepAction {
    /// Runs cargo with these arguments and environment.
    Cargo { args: &'static [&'static str], env: &'static [(&'static str, &'static str)] },
    /// Runs `xtask-product` with these arguments.
    Product(&'static [&'static str]),
    /// Runs `cargo test` of a package with this environment, for development: arithmetic that
    /// overflows panics then.
    Fuzz { args: &'static [&'static str], env: &'static [(&'static str, &'static str)] },
    /// Checks the rules of style in this process.
    Tidy,
}

/// One step of CI.
#[derive(Clone, Copy)]
struct CiStep {
    name: &'static str,
    action: StepAction,
}

/// The steps for a change, cheapest first where no step needs another.
const STEPS: &[CiStep] = &[
    step("fmt", &["fmt", "--all", "--check"], &[]),
    step("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]),
    CiStep { name: "tidy", action: StepAction::Tidy },
    // As a test of the workspace: `cargo xtask rows` is a build with fewer features of the
    // dependencies, which would compile the product a second time.
    step("rows", &["test", "--quiet", "--workspace", "--bin", "xtask-product", "rows::"], &[]),
    step(
        "rustdoc",
        &["doc", "--workspace", "--no-deps", "--quiet"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    ),
    step("test", &["test", "--workspace"], &[]),
];

/// The long random runs: some hours in all.
const NIGHTLY: &[CiStep] = &[
    product("lin", &["lin", "--release", "--operations", "10000000"]),
    product("chaos", &["chaos", "--release", "--seconds", "1800"]),
    product("crash", &["crash", "--release", "--rounds", "1000"]),
    fuzz("formats", &["persist", "--test", "formats"], &[("FORMAT_FUZZ_ROUNDS", "500000")]),
    fuzz("requests", &["resp", "--test", "request"], &[("RESP_FUZZ_ROUNDS", "2000000")]),
    fuzz("scripts", &["script", "--test", "scripts", "fuzz"], &[("SCRIPT_FUZZ_ROUNDS", "40000")]),
    fuzz("rules", &["acl", "--test", "rules", "random"], &[("ACL_FUZZ_ROUNDS", "50000")]),
    fuzz("snapshots", &["store", "--lib", "snapshot"], &[("SNAPSHOT_SCHEDULES", "50000")]),
];

/// A run of cargo with these arguments and environment.
const fn step(
    name: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
) -> CiStep {
    CiStep { name, action: StepAction::Cargo { args, env } }
}

/// A command of `xtask-product`.
const fn product(name: &'static str, args: &'static [&'static str]) -> CiStep {
    CiStep { name, action: StepAction::Product(args) }
}

/// Tests with more rounds than they usually have: the package, and options of `cargo test`.
const fn fuzz(
    name: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
) -> CiStep {
    CiStep { name, action: StepAction::Fuzz { args, env } }
}

/// The steps to run; by default all of them.
#[derive(clap::Args)]
pub struct Options {
    /// Run the long random runs of the night instead
    #[arg(long)]
    nightly: bool,
    /// Run only these steps, in the order of the table
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    only: Vec<String>,
    /// Leave these steps out
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    skip: Vec<String>,
}

/// Runs the selected steps, and prints the time of each.
///
/// # Errors
/// Names the first step that failed, and fails when the options leave no step to run.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let steps = selected(options);
    if steps.is_empty() {
        return Err("the options leave no step to run".to_owned());
    }
    let mut times = Vec::new();
    for step in steps {
        println!("==> {}", step.name);
        let start = Instant::now();
        let outcome = perform(root, step);
        times.push((step.name, start.elapsed(), outcome.is_ok()));
        if let Err(reason) = outcome {
            println!("{}", summary(&times));
            return Err(format!("ci stopped at `{}`: {reason}", step.name));
        }
    }
    println!("{}", summary(&times));
    Ok(())
}

fn step_names() -> PossibleValuesParser {
    [STEPS, NIGHTLY].concat().iter().map(|step| step.name).collect::<Vec<_>>().into()
}

fn selected(options: &Options) -> Vec<&'static CiStep> {
    let named = |list: &[String], step: &CiStep| list.iter().any(|name| name == step.name);
    let steps = if options.nightly { NIGHTLY } else { STEPS };
    steps
        .iter()
        .filter(|step| options.only.is_empty() || named(&options.only, step))
        .filter(|step| !named(&options.skip, step))
        .collect()
}

fn perform(root: &Path, step: &CiStep) -> Result<(), Failure> {
    match step.action {
        StepAction::Tidy => tidy::run(root, &tidy::Options::default()),
        StepAction::Cargo { args, env } => cargo(root, args.iter().copied(), env),
        StepAction::Product(args) => {
            let run = ["run", "--quiet", "--package", "xtask-product", "--"];
            cargo(root, run.iter().chain(args).copied(), &[])
        }
        StepAction::Fuzz { args, env } => {
            let test = ["test", "--package"];
            cargo(root, test.iter().chain(args).copied(), env)
        }
    }
}

fn summary(times: &[(&str, Duration, bool)]) -> String {
    let total: Duration = times.iter().map(|(_, time, _)| *time).sum();
    let mut lines = vec!["==> times".to_owned()];
    for (name, time, passed) in times {
        let verdict = if *passed { "ok" } else { "FAILED" };
        lines.push(format!("{name:<10}{:>8.1} s  {verdict}", time.as_secs_f64()));
    }
    lines.push(format!("{:<10}{:>8.1} s", "total", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(nightly: bool, only: &[&str], skip: &[&str]) -> Options {
        let owned = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Options { nightly, only: owned(only), skip: owned(skip) }
    }

    fn names(options: &Options) -> Vec<&'static str> {
        selected(options).into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_selected_in_the_order_of_their_table() {
        let every_change = |only, skip| names(&options(false, only, skip));
        assert_eq!(every_change(&[], &[]), ["fmt", "clippy", "tidy", "rows", "rustdoc", "test"]);
        assert_eq!(every_change(&["test", "fmt"], &[]), ["fmt", "test"]);
        assert_eq!(every_change(&[], &["clippy", "rustdoc"]), ["fmt", "tidy", "rows", "test"]);
        assert!(every_change(&["tidy"], &["tidy"]).is_empty());
        assert_eq!(names(&options(true, &["crash", "lin"], &[])), ["lin", "crash"]);
        assert!(names(&options(true, &["fmt"], &[])).is_empty());
    }

    #[test]
    fn the_workflow_runs_every_nightly_step_once() {
        let workflow = include_str!("../../../.github/workflows/ci.yml");
        let line = workflow.lines().find_map(|line| line.trim().strip_prefix("steps: ["));
        let listed = line.unwrap_or_default().trim_end_matches(']').replace(['"', ' '], "");
        assert_eq!(listed.split(',').collect::<Vec<_>>(), names(&options(true, &[], &[])));
    }

    #[test]
    fn options_that_leave_no_step_are_an_error() {
        assert!(run(Path::new("."), &options(false, &["fmt"], &["fmt"])).is_err());
    }

    #[test]
    fn the_summary_names_each_step_its_time_and_the_failure() {
        let times =
            [("fmt", Duration::from_millis(1500), true), ("tidy", Duration::from_secs(2), false)];
        let expected = "==> times\n\
                        fmt            1.5 s  ok\n\
                        tidy           2.0 s  FAILED\n\
                        total          3.5 s";
        assert_eq!(summary(&times), expected);
    }
}
