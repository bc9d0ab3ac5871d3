//! `--command`, which may be given several times, each with a ratio and a pattern of its own.
//!
//! `--command-ratio` and `--command-key-pattern` belong to the `--command` before them. Code that
//! `clap` derives does not see the positions of options, so this is written by hand.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::load::keys::Letter;

const COMMAND: &str = "command";
const RATIO: &str = "command-ratio";
const PATTERN: &str = "command-key-pattern";

/// One command of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its words.
    pub words: Vec<String>,
    /// How often it is sent, relative to the others.
    pub ratio: u32,
    /// How its keys are chosen, if given.
    pub pattern: Option<Letter>,
}

/// The commands of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandArgs(pub Vec<Given>);

impl Args for CommandArgs {
    fn augment_args(command: Command) -> Command {
        let arg = |name| Arg::new(name).long(name).action(ArgAction::Append);
        command
            .arg(
                arg(COMMAND)
                    .value_name("COMMAND")
                    .allow_hyphen_values(true)
                    .conflicts_with_all(["workload", "all", "ratio"])
                    .help(
                        "Send this instead of a workload, with __key__ for a key and __data__ for \
                         a value; may be given several times",
                    ),
            )
            .arg(
                arg(RATIO).value_name("N").requires(COMMAND).value_parser(value_parser!(u32)).help(
                    "How often the last --command is sent, relative to the others [default: 1]",
                ),
            )
            .arg(
                arg(PATTERN)
                    .value_name("R|S|P|G|Z")
                    .requires(COMMAND)
                    .value_parser(|text: &str| text.parse::<Letter>())
                    .help("How the keys of the last --command are chosen, as in --key-pattern"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CommandArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for (at, text) in placed::<String>(matches, COMMAND) {
            let words = shlex::split(text).filter(|words| !words.is_empty());
            let words = words.ok_or_else(|| {
                let text = format!("--command '{text}' is empty or has an open quotation\n");
                clap::Error::raw(ErrorKind::ValueValidation, text)
            })?;
            given.push((at, Given { words, ratio: 1, pattern: None }));
        }
        for (at, ratio) in placed::<u32>(matches, RATIO) {
            before(&mut given, at, RATIO)?.ratio = *ratio;
        }
        for (at, pattern) in placed::<Letter>(matches, PATTERN) {
            before(&mut given, at, PATTERN)?.pattern = Some(*pattern);
        }
        Ok(CommandArgs(given.into_iter().map(|(_, given)| given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The command that an option at this position belongs to.
fn before<'a>(
    given: &'a mut [(usize, Given)],
    at: usize,
    name: &str,
) -> Result<&'a mut Given, clap::Error> {
    let last = given.iter_mut().rfind(|(place, _)| *place < at);
    last.map(|(_, given)| given).ok_or_else(|| {
        let text = format!("--{name} stands before any --command\n");
        clap::Error::raw(ErrorKind::ValueValidation, text)
    })
}

/// The values of an option with their positions.
fn placed<'a, T: Clone + Send + Sync + 'static>(
    matches: &'a ArgMatches,
    name: &str,
) -> impl Iterator<Item = (usize, &'a T)> {
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(matches.get_many(name).into_iter().flatten())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        commands: CommandArgs,
        #[arg(long)]
        workload: bool,
        #[arg(long)]
        all: bool,
        #[arg(long)]
        ratio: bool,
    }

    fn parsed(words: &[&str]) -> Result<Vec<Given>, clap::Error> {
        let words = std::iter::once("bench").chain(words.iter().copied());
        Line::try_parse_from(words).map(|line| line.commands.0)
    }

    #[test]
    fn ratios_and_patterns_belong_to_the_command_before_them() {
        let given = |words: &[&str], ratio, pattern| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            Given { words, ratio, pattern }
        };
        let found = parsed(&[
            "--command=SET __key__ 'a b'",
            "--command-key-pattern",
            "P",
            "--command-ratio=3",
            "--command",
            "PING",
            "--command=LRANGE l 0 -1",
            "--command-ratio",
            "0",
        ]);
        assert_eq!(
            found.unwrap(),
            [
                given(&["SET", "__key__", "a b"], 3, Some(Letter::Parallel)),
                given(&["PING"], 1, None),
                given(&["LRANGE", "l", "0", "-1"], 0, None),
            ]
        );
        assert_eq!(parsed(&[]).unwrap(), []);
    }

    #[test]
    fn what_belongs_to_no_command_is_refused() {
        let cases: [&[&str]; 5] = [
            &["--command-ratio=3"],
            &["--command-ratio=3", "--command=PING"],
            &["--command=PING", "--command-key-pattern=X"],
            &["--command='open"],
            &["--command="],
        ];
        cases.iter().for_each(|words| assert!(parsed(words).is_err(), "{words:?}"));
    }
}
