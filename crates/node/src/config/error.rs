//! Errors and warnings of configurations.
//!
//! The form of a fatal file error and the errors of CONFIG SET are those of Redis, which tools look
//! for; a fatal error also names the file.

use std::error::Error;
use std::fmt;

use engine::echo;

/// The source of a configuration text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, by its name.
    File(String),
    /// Standard input.
    Stdin,
    /// The options of the command line, one a line.
    CommandLine,
}

/// A line that is refused: the server must not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The text that has the line.
    pub origin: Origin,
    /// Its number, from 1.
    pub line: usize,
    /// The line, trimmed and without secrets.
    pub text: String,
    /// The reason why it is refused.
    pub reason: String,
}

/// A line that was accepted but has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The text that has the line.
    pub origin: Origin,
    /// Its number, from 1.
    pub line: usize,
    /// The parameter.
    pub name: &'static str,
    /// Why it has no effect.
    pub reason: &'static str,
}

/// Why CONFIG SET changed nothing. Displays as the error reply without the leading `-`; names and
/// reasons are encoded by [`engine::echo`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No parameter has this name.
    Unknown(String),
    /// The parameter cannot change while keys are loaded.
    Loading,
    /// A value was refused or could not be applied.
    Failed {
        /// The parameter.
        name: String,
        /// Why.
        reason: String,
    },
}

impl SetError {
    /// The error for a name that no parameter has.
    pub fn unknown(name: &[u8]) -> Self {
        Self::Unknown(echo(name))
    }

    /// The error for a value that was refused, or that the server failed to apply.
    pub fn failed(name: &[u8], reason: &str) -> Self {
        Self::Failed { name: echo(name), reason: echo(reason.as_bytes()) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "the configuration file {name}"),
            Self::Stdin => f.write_str("the configuration from standard input"),
            Self::CommandLine => f.write_str("the options of the command line"),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = crate::version::VERSION;
        writeln!(f, "*** FATAL CONFIG FILE ERROR (Weft {version}) ***")?;
        writeln!(f, "Reading {}, at line {}", self.origin, self.line)?;
        writeln!(f, ">>> '{}'", self.text)?;
        f.write_str(&self.reason)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, line, name, reason } = self;
        write!(f, "'{name}' has no effect: {reason} (in {origin}, at line {line})")
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
            }
            Self::Loading => f.write_str("LOADING Redis is loading the dataset in memory"),
            Self::Failed { name, reason } => write!(
                f,
                "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"
            ),
        }
    }
}

impl Error for ConfigError {}
impl Error for SetError {}
