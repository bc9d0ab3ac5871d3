//! `cargo xtask ci`: exactly what CI runs, so that a green run here is a green run there.
//!
//! The steps are one table, run in its order, and the first failure ends the run. Their output
//! passes through unfiltered; at the end is one line per step with its time. Installing
//! toolchains is the business of `.ci/run`, not of this command.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use xtask::{Failure, tidy};

use crate::cargo;

/// What a step does.
enum Action {
    /// Runs cargo with these arguments and environment.
    Cargo { args: &'static [&'static str], env: &'static [(&'static str, &'static str)] },
    /// Runs the rules of style in this process.
    Tidy,
}

/// One step of CI.
struct Step {
    name: &'static str,
    action: Action,
}

/// The whole of CI, cheapest first as far as one step does not need another.
const STEPS: &[Step] = &[
    Step { name: "fmt", action: Action::Cargo { args: &["fmt", "--all", "--check"], env: &[] } },
    Step {
        name: "clippy",
        action: Action::Cargo {
            args: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            env: &[],
        },
    },
    Step { name: "tidy", action: Action::Tidy },
    Step {
        name: "rows",
        action: Action::Cargo {
            args: &["run", "--quiet", "--package", "xtask-product", "--", "rows"],
            env: &[],
        },
    },
    Step {
        name: "rustdoc",
        action: Action::Cargo {
            args: &["doc", "--workspace", "--no-deps", "--quiet"],
            env: &[("RUSTDOCFLAGS", "-D warnings")],
        },
    },
    Step { name: "test", action: Action::Cargo { args: &["test", "--workspace"], env: &[] } },
];

/// Which steps to run; all of them when nothing is said.
#[derive(clap::Args)]
pub struct Options {
    /// Run only these steps, in CI's order
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    only: Vec<String>,
    /// Leave these steps out
    #[arg(long, value_name = "STEP", value_delimiter = ',', value_parser = step_names())]
    skip: Vec<String>,
}

/// Runs the selected steps and prints what each took.
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
    STEPS.iter().map(|step| step.name).collect::<Vec<_>>().into()
}

fn selected(options: &Options) -> Vec<&'static Step> {
    let named = |list: &[String], step: &Step| list.iter().any(|name| name == step.name);
    STEPS
        .iter()
        .filter(|step| options.only.is_empty() || named(&options.only, step))
        .filter(|step| !named(&options.skip, step))
        .collect()
}

fn perform(root: &Path, step: &Step) -> Result<(), Failure> {
    match step.action {
        Action::Tidy => tidy::run(root, &tidy::Options::default()),
        Action::Cargo { args, env } => cargo(root, args.iter().copied(), env),
    }
}

fn summary(times: &[(&str, Duration, bool)]) -> String {
    let total: Duration = times.iter().map(|(_, time, _)| *time).sum();
    let mut lines = vec!["==> times".to_owned()];
    for (name, time, passed) in times {
        let verdict = if *passed { "ok" } else { "FAILED" };
        lines.push(format!("{name:<8}{:>8.1} s  {verdict}", time.as_secs_f64()));
    }
    lines.push(format!("{:<8}{:>8.1} s", "total", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let options = Options { only: owned(only), skip: owned(skip) };
        selected(&options).into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_selected_in_the_order_of_ci() {
        assert_eq!(names(&[], &[]), ["fmt", "clippy", "tidy", "rows", "rustdoc", "test"]);
        assert_eq!(names(&["test", "fmt"], &[]), ["fmt", "test"]);
        assert_eq!(names(&[], &["clippy", "rustdoc"]), ["fmt", "tidy", "rows", "test"]);
        assert!(names(&["tidy"], &["tidy"]).is_empty());
    }

    #[test]
    fn nothing_to_run_is_an_error_and_not_a_success() {
        let options = Options { only: vec!["fmt".to_owned()], skip: vec!["fmt".to_owned()] };
        assert!(run(Path::new("."), &options).is_err());
    }

    #[test]
    fn the_summary_names_each_step_its_time_and_the_failure() {
        let times =
            [("fmt", Duration::from_millis(1500), true), ("tidy", Duration::from_secs(2), false)];
        let expected = "==> times\n\
                        fmt          1.5 s  ok\n\
                        tidy         2.0 s  FAILED\n\
                        total        3.5 s";
        assert_eq!(summary(&times), expected);
    }
}
