//! The command line of `weft cli`, with the options of redis-cli.
//!
//! The first word that is not an option begins the command, to which all further words belong.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use base::quote::split_args;
use clap::{Parser, Subcommand};

use super::connection::{CliTarget, PreferredFamily};
use super::format::{Output, Style};
use super::missing::MissingOptions;
use crate::client::address::ServerAddress;
use crate::client::tls::TlsOptions;
use crate::client::uri::Uri;

/// Talk to a Weft, Redis or Valkey: commands as arguments, from a pipe, or in a terminal.
///
/// Without a command it reads commands from standard input: with history, completion and hints if
/// that is a terminal.
#[derive(Debug, Parser)]
#[command(
    name = "weft cli",
    bin_name = "weft cli",
    disable_help_flag = true,
    disable_help_subcommand = true,
    disable_version_flag = true,
    args_override_self = true,
    override_usage = "weft cli [OPTIONS] [COMMAND [ARGUMENT ...]]"
)]
pub struct Options {
    /// The server.
    #[command(flatten)]
    pub server: ServerOptions,
    /// How replies are shown.
    #[command(flatten)]
    pub shown: OutputOptions,
    /// The modes other than one command.
    #[command(flatten)]
    pub modes: ModeOptions,
    /// Options of redis-cli that do not exist here.
    #[command(flatten)]
    pub missing: MissingOptions,
    /// Send the command N times; below zero, forever
    #[arg(short = 'r', value_name = "N", default_value_t = 1, allow_hyphen_values = true)]
    pub repeat: i64,
    /// Wait after each command of -r, each line of --stat, each step of --scan, and every 100 steps
    /// of --bigkeys, --memkeys and --hotkeys; decimals are allowed
    #[arg(short = 'i', value_name = "SECONDS", value_parser = seconds)]
    pub interval: Option<Duration>,
    /// Read the last argument from standard input
    #[arg(short = 'x')]
    pub last_from_stdin: bool,
    /// Read the argument that is TAG from standard input
    #[arg(short = 'X', value_name = "TAG", conflicts_with = "last_from_stdin")]
    pub tag_from_stdin: Option<OsString>,
    /// Exit with 1 after an error reply, which goes to standard error
    #[arg(short = 'e')]
    pub errors_end: bool,
    /// Follow MOVED and ASK of a cluster
    #[arg(short = 'c', conflicts_with = "socket")]
    pub cluster: bool,
    /// Arguments are quoted strings, with escapes such as \x00
    #[arg(long)]
    pub quoted_input: bool,
    /// Accepted as by redis-cli, without effect
    #[arg(long)]
    pub verbose: bool,
    /// Show this help
    #[arg(long)]
    pub help: bool,
    /// Show the version
    #[arg(short = 'v', long)]
    pub version: bool,
    /// The command to send.
    #[command(subcommand)]
    pub command: Option<CommandWords>,
}

/// The command on the command line.
#[derive(Debug, Subcommand)]
pub enum CommandWords {
    /// All of its words.
    #[command(external_subcommand)]
    All(Vec<OsString>),
}

/// The server and the credentials.
#[derive(Debug, clap::Args)]
pub struct ServerOptions {
    /// Name or address of the server [default: 127.0.0.1]
    #[arg(short = 'h', value_name = "HOST")]
    pub host: Option<String>,
    /// Its port [default: 6379]
    #[arg(short = 'p', value_name = "PORT")]
    pub port: Option<u16>,
    /// Its unix socket, instead of host and port
    #[arg(short = 's', value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// redis://user:password@host:port/db, or rediss:// for TLS
    #[arg(short = 'u', value_name = "URI", value_parser = Uri::parse)]
    pub uri: Option<Uri>,
    /// The most seconds to connect; 0 leaves it to the system
    #[arg(short = 't', value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Password; REDISCLI_AUTH in the environment is safer
    #[arg(short = 'a', long = "pass", value_name = "PASSWORD", allow_hyphen_values = true)]
    pub password: Option<OsString>,
    /// User of the password
    #[arg(long, value_name = "NAME")]
    pub user: Option<OsString>,
    /// Ask for the password
    #[arg(long)]
    pub askpass: bool,
    /// Do not warn about a password on the command line
    #[arg(long)]
    pub no_auth_warning: bool,
    /// Database
    #[arg(short = 'n', value_name = "DB", allow_hyphen_values = true)]
    pub db: Option<i64>,
    /// Speak RESP2
    #[arg(short = '2', conflicts_with = "resp3")]
    pub resp2: bool,
    /// Speak RESP3
    #[arg(short = '3')]
    pub resp3: bool,
    /// Prefer IPv4 addresses
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Prefer IPv6 addresses
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Speak TLS; without --cacert and --cacertdir, it trusts the authorities of the system
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub tls_options: TlsOptions,
}

/// How replies are shown.
#[derive(Debug, clap::Args)]
pub struct OutputOptions {
    /// Replies as bytes [default without a terminal]
    #[arg(long, overrides_with_all = ["no_raw", "csv", "json", "quoted_json"])]
    pub raw: bool,
    /// Replies with their types [default in a terminal]
    #[arg(long, overrides_with_all = ["raw", "csv", "json", "quoted_json"])]
    pub no_raw: bool,
    /// Replies as CSV
    #[arg(long, overrides_with_all = ["raw", "no_raw", "json", "quoted_json"])]
    pub csv: bool,
    /// Replies as JSON; speaks RESP3 unless -2 is given
    #[arg(long, overrides_with_all = ["raw", "no_raw", "csv", "quoted_json"])]
    pub json: bool,
    /// The same in ASCII
    #[arg(long, overrides_with_all = ["raw", "no_raw", "csv", "json"])]
    pub quoted_json: bool,
    /// Between the elements of a raw reply [default: a line end]
    #[arg(short = 'd', value_name = "DELIMITER", allow_hyphen_values = true)]
    pub element_delimiter: Option<OsString>,
    /// After each raw reply [default: a line end]
    #[arg(short = 'D', value_name = "DELIMITER", allow_hyphen_values = true)]
    pub reply_delimiter: Option<OsString>,
    /// Whether to print pushes of RESP3 [default: yes in a terminal]
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    pub show_pushes: Option<bool>,
}

/// The modes other than one command.
#[derive(Debug, clap::Args)]
pub struct ModeOptions {
    /// Send a script from a file: its keys, a comma, its arguments
    #[arg(long, value_name = "FILE")]
    pub eval: Option<PathBuf>,
    /// Send standard input as it is, and count the replies
    #[arg(long)]
    pub pipe: bool,
    /// The most seconds without a reply after all data is sent; 0 waits forever
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub pipe_timeout: u64,
    /// List the keys
    #[arg(long)]
    pub scan: bool,
    /// Only keys that match, also for --bigkeys, --memkeys and --hotkeys
    #[arg(long, value_name = "GLOB", allow_hyphen_values = true)]
    pub pattern: Option<OsString>,
    /// The same as a quoted string
    #[arg(long, value_name = "GLOB", conflicts_with = "pattern", value_parser = quoted)]
    pub quoted_pattern: Option<Quoted>,
    /// Only keys of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub key_type: Option<String>,
    /// Keys that the server visits in each step
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub count: u64,
    /// Find the keys with the most elements
    #[arg(long)]
    pub bigkeys: bool,
    /// Find the keys that take the most memory
    #[arg(long)]
    pub memkeys: bool,
    /// The same, with this many elements sampled of each key
    #[arg(long, value_name = "N")]
    pub memkeys_samples: Option<u64>,
    /// Find the keys that are used most; needs an LFU maxmemory-policy
    #[arg(long)]
    pub hotkeys: bool,
    /// Print figures of the server, line by line
    #[arg(long)]
    pub stat: bool,
    /// Measure the round trip; without a terminal, for one second or -i
    #[arg(long)]
    pub latency: bool,
    /// Measure it in rounds of 15 seconds or -i
    #[arg(long)]
    pub latency_history: bool,
    /// Show its distribution as a spectrum of colours
    #[arg(long)]
    pub latency_dist: bool,
    /// The spectrum in shades of grey
    #[arg(long)]
    pub mono: bool,
    /// Measure the longest pauses of this machine in a program that only computes
    #[arg(long, value_name = "SECONDS")]
    pub intrinsic_latency: Option<u64>,
}

impl Options {
    /// The words of the command; empty without one.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let Some(CommandWords::All(words)) = &self.command else { return Vec::new() };
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    /// The form of replies; by default it depends on whether standard output is a terminal.
    pub fn style(&self, is_terminal: bool) -> Style {
        let output = match &self.shown {
            shown if shown.raw => Output::Raw,
            shown if shown.no_raw => Output::Standard,
            shown if shown.csv => Output::Csv,
            shown if shown.json => Output::Json,
            shown if shown.quoted_json => Output::QuotedJson,
            _ if is_terminal => Output::Standard,
            _ => Output::Raw,
        };
        let delimiter = |given: &Option<OsString>| {
            given.clone().map_or_else(|| b"\n".to_vec(), OsString::into_vec)
        };
        Style {
            output,
            element_delimiter: delimiter(&self.shown.element_delimiter),
            reply_delimiter: delimiter(&self.shown.reply_delimiter),
        }
    }

    /// The pattern of keys, in either notation.
    pub fn pattern(&self) -> Option<Vec<u8>> {
        let quoted = self.modes.quoted_pattern.clone().map(|quoted| quoted.0);
        quoted.or_else(|| self.modes.pattern.clone().map(OsString::into_vec))
    }
}

impl ServerOptions {
    /// Where to connect; other options win over the URI.
    pub fn target(&self) -> CliTarget {
        let uri = self.uri.clone().unwrap_or_default();
        let address = match &self.socket {
            Some(path) => ServerAddress::Unix(path.clone()),
            None => ServerAddress::Tcp {
                host: self.host.clone().or(uri.host).unwrap_or_else(|| "127.0.0.1".into()),
                port: self.port.or(uri.port).unwrap_or(6379),
            },
        };
        let family = match (self.ipv4, self.ipv6) {
            (true, _) => PreferredFamily::V4,
            (_, true) => PreferredFamily::V6,
            _ => PreferredFamily::Any,
        };
        let tls = (self.tls || uri.tls)
            .then(|| TlsOptions { trusts_system: true, ..self.tls_options.clone() });
        let timeout = self.timeout.filter(|timeout| !timeout.is_zero());
        CliTarget { address, family, timeout, tls }
    }

    /// The user and the password of the command line.
    pub fn credentials(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let uri = self.uri.clone().unwrap_or_default();
        let bytes = |given: &Option<OsString>| given.clone().map(OsString::into_vec);
        (bytes(&self.user).or(uri.user), bytes(&self.password).or(uri.password))
    }

    /// The database.
    pub fn database(&self) -> i64 {
        self.db.or(self.uri.as_ref().and_then(|uri| uri.db)).unwrap_or(0)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "it is no time".to_owned())
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.as_bytes().first().map(u8::to_ascii_lowercase) {
        Some(b'y') => Ok(true),
        Some(b'n') => Ok(false),
        _ => Err("say yes or no".into()),
    }
}

/// The bytes of a quoted string.
#[derive(Debug, Clone)]
pub struct Quoted(Vec<u8>);

fn quoted(text: &str) -> Result<Quoted, String> {
    unquote(text.as_bytes()).map(Quoted).ok_or_else(|| "it is no quoted string".into())
}

/// The bytes of a quoted string that is one argument.
pub fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    split_args(text).filter(|words| words.len() == 1)?.pop()
}
