//! What goes wrong with a configuration, in texts that people read.
//!
//! The form of a fatal file error and the errors of CONFIG SET are Redis's, which tools look for;
//! a fatal error also names the file.

use std::error::Error;
use std::fmt;

use engine::echo;

/// Where a configuration text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file of that name.
    File(String),
    /// Standard input.
    Stdin,
    /// The options of the command line, one a line.
    CommandLine,
}

/// A line that cannot be accepted: the server must not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the line is.
    pub origin: Origin,
    /// Its number, from 1.
    pub line: usize,
    /// The line without white space around it.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A line that was accepted but asks for something that will not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where the line is.
    pub origin: Origin,
    /// Its number, from 1.
    pub line: usize,
    /// The parameter.
    pub name: String,
    /// Why it has no effect; None for what Weft does not support yet.
    pub reason: Option<&'static str>,
}

/// Why CONFIG SET changed nothing. Displays as the error reply, without the leading `-`, in which
/// characters stand for the bytes of names and reasons ([`engine::echo`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No parameter has this name.
    Unknown(String),
    /// The parameter has to stay while keys are loaded.
    Loading,
    /// A parameter's value was refused, or could not be applied.
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
        match reason {
            Some(reason) => write!(f, "'{name}' has no effect: {reason} ")?,
            None => write!(f, "'{name}' has no effect yet ")?,
        }
        write!(f, "(in {origin}, at line {line})")
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
