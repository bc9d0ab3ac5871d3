//! The arguments of the server: `[file] [-] [--name value ...] ...`, as redis-server takes them.
//!
//! Each option becomes a line of a configuration text, which is loaded after the file and standard
//! input and overrides both. The quirks are those of Redis: the argument after an option is its
//! value even if it starts with `--`, unless the option and its value share one argument; further
//! arguments up to the next `--` are further values; `--save` needs no value. This module accepts
//! every argument; errors appear when the lines are loaded.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use base::quote::{push_quoted, split_args};

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Run a server.
    Run {
        /// Path of the configuration file.
        file: Option<OsString>,
        /// Whether to read configuration from standard input too, after the file.
        stdin: bool,
        /// The options as configuration text, to load last, with [`super::Origin::CommandLine`].
        options: Vec<u8>,
    },
    /// Print the version.
    Version,
    /// Print [`USAGE`].
    Help,
}

/// The help text of the server.
pub const USAGE: &str = "\
Usage: weft server [FILE] [--NAME VALUE ...] [-]

  FILE           a configuration file in the form of redis.conf
  --NAME VALUE   set a parameter; this overrides the file
  -              read more configuration from standard input
  -v, --version  print the version
  -h, --help     print this

Examples:
  weft server
  weft server redis.conf --port 7000 --io-threads 4
  weft server --bind 127.0.0.1 ::1 --requirepass secret
  echo 'loglevel verbose' | weft server -
";

/// Parses the arguments after the program's name and subcommand.
pub fn parse_arguments(args: &[OsString]) -> Invocation {
    match args.first().map(|arg| arg.as_bytes()) {
        Some(b"-v" | b"--version") => return Invocation::Version,
        Some(b"-h" | b"--help") => return Invocation::Help,
        _ => {}
    }
    let (file, rest) = match args.split_first() {
        Some((first, rest)) if !first.as_bytes().starts_with(b"-") => (Some(first.clone()), rest),
        _ => (None, args),
    };
    let mut stdin = false;
    let mut options = Options { text: Vec::new(), takes_value: false };
    for (index, arg) in rest.iter().enumerate() {
        let is_first = file.is_none() && index == 0;
        let next = rest.get(index.saturating_add(1));
        if arg == "-" && (is_first || next.is_none()) {
            stdin = true;
        } else {
            options.push(arg.as_bytes(), next.map(OsString::as_os_str));
        }
    }
    Invocation::Run { file, stdin, options: options.text }
}

struct Options {
    text: Vec<u8>,
    /// The last option has no value yet, so the next argument is its value.
    takes_value: bool,
}

impl Options {
    fn push(&mut self, arg: &[u8], next: Option<&OsStr>) {
        match arg.strip_prefix(b"--") {
            Some(option) if !self.takes_value => self.push_name(option, next),
            _ => {
                push_quoted(&mut self.text, arg);
                self.text.push(b' ');
                self.takes_value = false;
            }
        }
    }

    fn push_name(&mut self, option: &[u8], next: Option<&OsStr>) {
        if !self.text.is_empty() {
            self.text.push(b'\n');
        }
        self.text.extend_from_slice(option);
        self.text.push(b' ');
        // "--port 6380" may be one argument.
        self.takes_value = split_args(option).is_some_and(|words| words.len() <= 1);
        // A script with an empty list of save points passes `--save --port 6380`, or just `--save`.
        let valueless = next.is_none_or(|next| next.as_bytes().starts_with(b"--"));
        if valueless && option.eq_ignore_ascii_case(b"save") {
            self.text.extend_from_slice(b"\"\"");
            self.takes_value = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// File, whether standard input is read, and the options' text with lines joined by `|`.
    fn run(args: &[&str]) -> (Option<String>, bool, String) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let Invocation::Run { file, stdin, options } = parse_arguments(&args) else {
            return (None, false, "not a run".to_owned());
        };
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let lines: Vec<_> = options.split(|byte| *byte == b'\n').map(|l| l.trim_ascii()).collect();
        (file, stdin, String::from_utf8_lossy(&lines.join(&b'|')).into_owned())
    }

    #[track_caller]
    fn check(args: &[&str], text: &str) {
        assert_eq!(run(args), (None, false, text.to_owned()));
    }

    #[test]
    fn options_become_lines() {
        check(&[], "");
        check(&["--port", "7000", "--io-threads", "4"], "port \"7000\"|io-threads \"4\"");
        check(&["--bind", "127.0.0.1", "::1", "--port", "1"], r#"bind "127.0.0.1" "::1"|port "1""#);
        check(&["--logfile", "", "--Port", "1"], r#"logfile ""|Port "1""#);
        check(&["--logfile", "a\"b"], r#"logfile "a\"b""#);
        check(&["--port=7000"], "port=7000");
    }

    #[test]
    fn a_value_may_start_with_dashes() {
        check(&["--requirepass", "--foo", "--port", "1"], r#"requirepass "--foo"|port "1""#);
        check(&["--port", "--timeout", "5"], r#"port "--timeout" "5""#);
        check(&["--port 1234", "--timeout", "5"], r#"port 1234|timeout "5""#);
    }

    #[test]
    fn save_needs_no_value() {
        check(&["--save", "--port", "1"], r#"save ""|port "1""#);
        check(&["--port", "1", "--save"], r#"port "1"|save """#);
        check(&["--save", "60", "1"], r#"save "60" "1""#);
        check(&["--save", ""], r#"save """#);
    }

    #[test]
    fn file_and_standard_input_are_recognized() {
        let file = || Some("a.conf".to_owned());
        assert_eq!(run(&["a.conf"]), (file(), false, String::new()));
        assert_eq!(run(&["a.conf", "--port", "1", "-"]), (file(), true, "port \"1\"".to_owned()));
        assert_eq!(run(&["-", "--port", "1"]), (None, true, "port \"1\"".to_owned()));
        assert_eq!(run(&["--port", "-", "--hz", "1"]).2, r#"port "-"|hz "1""#);
        assert_eq!(run(&["a.conf", "-", "--hz", "1"]).2, r#""-" |hz "1""#.replace(" |", "|"));
    }

    #[test]
    fn version_and_help_count_only_as_first_argument() {
        for arg in ["-v", "--version"] {
            assert_eq!(parse_arguments(&[arg.into()]), Invocation::Version);
        }
        for arg in ["-h", "--help"] {
            assert_eq!(parse_arguments(&[arg.into()]), Invocation::Help);
        }
        check(&["--port", "1", "-v"], r#"port "1" "-v""#);
    }
}
