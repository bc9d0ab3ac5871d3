//! One parameter: its row, and how a value of each kind is read and printed.
//!
//! A row is data: constructors and modifiers are `const`, and the table is one constant. Reading
//! checks everything before it writes, so that a refused value leaves the `Config` as it was.
//! There is no percent form: no parameter that exists here takes one in Redis.

use std::borrow::Cow;
use std::str;

use base::number::parse_i64;
use base::quote::push_quoted;
use base::size::parse_bytes;

use super::Config;
use super::special::with_unit;

/// Why a value was refused, in Redis's words where Redis has them.
pub type Reason = Cow<'static, str>;

/// What must be told to the running server when a parameter changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// Nothing: whoever needs it reads it from the current configuration.
    Nothing,
    /// The log: the parameter of this name has no effect, for this reason.
    NoEffect(&'static str, &'static str),
    /// Listening sockets: addresses or ports changed.
    Listeners,
    /// Where metrics are served.
    Metrics,
    /// Certificates, protocols or ciphers: new connections need a new TLS setup.
    Tls,
    /// Number of threads, or which commands they execute.
    Threads,
    /// The most clients: descriptors must be provided for them.
    Clients,
    /// What the log writes.
    Log,
    /// The working directory.
    Directory,
    /// Whether writes are refused after a save has failed.
    Saving,
    /// The allocator's background thread.
    Allocator,
    /// What `ps` shows of the process.
    Title,
    /// The append-only file: it begins or ends.
    AppendOnly,
    /// The score by which the kernel chooses a process to end when memory is short.
    OomScore,
}

/// Where a value of type `T` lives in a `Config`.
pub struct Slot<T: 'static> {
    pub(super) of: fn(&Config) -> &T,
    pub(super) of_mut: fn(&mut Config) -> &mut T,
}

// Not derived, because that would ask for `T: Copy`.
impl<T> Copy for Slot<T> {}
impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Decimal digits only.
    Decimal,
    /// Bytes: digits and perhaps a unit, `k` for 1000 and `kb` for 1024.
    Bytes,
    /// Octal digits, as in file permissions.
    Octal,
}

/// A value that is read, printed and rewritten in a way of its own.
#[derive(Clone, Copy)]
pub struct Special {
    /// What CONFIG GET prints.
    pub(super) print: fn(&Config) -> String,
    /// Reads arguments; changes nothing when it refuses them.
    pub(super) read: fn(&mut Config, &[Vec<u8>]) -> Result<(), Reason>,
    /// What follows the name on each line that CONFIG REWRITE writes. A value that needs several
    /// lines always gives the same number, so that each can be compared with its default.
    pub(super) lines: fn(&Config) -> Vec<String>,
    /// What a value looks like, for documentation.
    pub form: &'static str,
}

/// What kind of value a parameter takes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Kind {
    /// `yes` or `no`.
    Flag(Slot<bool>),
    /// A number between `min` and `max`, both included.
    Number {
        /// How it is written.
        notation: Notation,
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
        #[doc(hidden)]
        read: fn(&Config) -> i64,
        #[doc(hidden)]
        write: fn(&mut Config, i64),
    },
    /// UTF-8 text without zero bytes; most are paths. Empty means that it is not given.
    Text(Slot<String>),
    /// Any bytes. Empty means that it is not given.
    Secret(Slot<Vec<u8>>),
    /// One of `names`.
    Choice {
        /// What may be said.
        names: &'static [&'static str],
        #[doc(hidden)]
        read: fn(&Config) -> &'static str,
        #[doc(hidden)]
        write: fn(&mut Config, &[u8]) -> bool,
    },
    /// In a way of its own.
    Special(Special),
}

/// One row of the table.
pub struct Parameter {
    /// Its name, in lower case.
    pub name: &'static str,
    /// An older name that still works.
    pub alias: Option<&'static str>,
    /// What it takes.
    pub kind: Kind,
    /// What it means, in a sentence or two, with the unit.
    pub about: &'static str,
    /// The source file that reads its field, below `crates`; None only without effect.
    /// `cargo xtask rows` looks for the field there.
    pub reader: Option<&'static str>,
    /// What to do when CONFIG SET changed it.
    pub apply: Apply,
    /// CONFIG SET refuses it.
    pub immutable: bool,
    /// CONFIG SET refuses it unless `enable-protected-configs` allows it.
    pub protected: bool,
    /// It is for tests: CONFIG GET shows it to who names it, and not for a pattern.
    pub hidden: bool,
    /// Its value must not be logged or shown to other clients.
    pub sensitive: bool,
    /// It takes any number of arguments.
    pub multi: bool,
    /// CONFIG SET to the present value still counts as a change: the file behind it may be new.
    pub volatile: bool,
    /// CONFIG REWRITE keeps a line whose value is empty, instead of removing it.
    pub keeps_empty: bool,
}

impl Parameter {
    pub(super) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            alias: None,
            kind,
            about,
            reader: None,
            apply: Apply::Nothing,
            immutable: false,
            protected: false,
            hidden: false,
            sensitive: matches!(kind, Kind::Secret(_)),
            multi: false,
            volatile: false,
            keeps_empty: false,
        }
    }

    pub(super) const fn applies(mut self, apply: Apply) -> Self {
        self.apply = apply;
        self
    }

    pub(super) const fn read_in(mut self, reader: &'static str) -> Self {
        self.reader = Some(reader);
        self
    }

    /// The log says why when it is set, in a file or by CONFIG SET.
    pub(super) const fn without_effect(self, reason: &'static str) -> Self {
        let name = self.name;
        self.applies(Apply::NoEffect(name, reason))
    }

    /// Why it has no effect; None when it has one.
    pub fn no_effect(&self) -> Option<&'static str> {
        match self.apply {
            Apply::NoEffect(_, reason) => Some(reason),
            _ => None,
        }
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }

    pub(super) const fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    pub(super) const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(super) const fn multi(mut self) -> Self {
        self.multi = true;
        self
    }

    pub(super) const fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    pub(super) const fn keeps_empty(mut self) -> Self {
        self.keeps_empty = true;
        self
    }

    /// Whether this is its name or alias, in any case.
    pub fn is_called(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
            || self.alias.is_some_and(|alias| name.eq_ignore_ascii_case(alias.as_bytes()))
    }

    /// Its name, or its alias if that is what it is called.
    pub(super) fn name_like(&self, called: &[u8]) -> &'static str {
        let alias = self.alias.filter(|alias| called.eq_ignore_ascii_case(alias.as_bytes()));
        alias.unwrap_or(self.name)
    }

    /// The value as CONFIG GET prints it.
    pub fn print(&self, config: &Config) -> Vec<u8> {
        match self.kind {
            Kind::Flag(slot) => yes_no((slot.of)(config)).into(),
            Kind::Number { notation: Notation::Octal, read, .. } => {
                format!("{:o}", read(config)).into()
            }
            Kind::Number { read, .. } => read(config).to_string().into(),
            Kind::Text(slot) => (slot.of)(config).clone().into(),
            Kind::Secret(slot) => (slot.of)(config).clone(),
            Kind::Choice { read, .. } => read(config).into(),
            Kind::Special(special) => (special.print)(config).into(),
        }
    }

    /// What follows the name in a configuration file, for each line that it needs.
    pub(super) fn file_values(&self, config: &Config) -> Vec<Vec<u8>> {
        let quoted = |bytes: &[u8]| {
            let mut out = Vec::new();
            push_quoted(&mut out, bytes);
            vec![out]
        };
        match self.kind {
            Kind::Text(slot) => quoted((slot.of)(config).as_bytes()),
            Kind::Secret(slot) => quoted((slot.of)(config)),
            Kind::Number { notation: Notation::Bytes, read, .. } => {
                vec![with_unit(read(config).unsigned_abs()).into()]
            }
            Kind::Special(special) => {
                (special.lines)(config).into_iter().map(String::into_bytes).collect()
            }
            _ => vec![self.print(config)],
        }
    }

    /// Sets the value from its arguments.
    ///
    /// # Errors
    /// The reason, in Redis's words; `config` is then as before.
    pub fn read(&self, config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
        if let Kind::Special(special) = self.kind {
            if !self.multi && args.len() != 1 {
                return Err(WRONG_NUMBER.into());
            }
            return (special.read)(config, args);
        }
        let [arg] = args else { return Err(WRONG_NUMBER.into()) };
        match self.kind {
            Kind::Flag(slot) => *(slot.of_mut)(config) = parse_yes_no(arg)?,
            Kind::Number { notation, min, max, write, .. } => {
                write(config, parse_number(arg, notation, min, max)?);
            }
            Kind::Text(slot) => *(slot.of_mut)(config) = parse_text(arg)?,
            Kind::Secret(slot) => (slot.of_mut)(config).clone_from(arg),
            Kind::Choice { names, write, .. } => {
                if !write(config, arg) {
                    return Err(not_among(names));
                }
            }
            Kind::Special(_) => {}
        }
        Ok(())
    }
}

pub(super) const WRONG_NUMBER: &str = "wrong number of arguments";

fn yes_no(value: &bool) -> &'static str {
    if *value { "yes" } else { "no" }
}

pub(super) fn parse_yes_no(arg: &[u8]) -> Result<bool, Reason> {
    if arg.eq_ignore_ascii_case(b"yes") {
        Ok(true)
    } else if arg.eq_ignore_ascii_case(b"no") {
        Ok(false)
    } else {
        Err("argument must be 'yes' or 'no'".into())
    }
}

/// A text that can be a path: UTF-8, and no zero byte, which would end it for the kernel.
pub(super) fn parse_text(arg: &[u8]) -> Result<String, Reason> {
    match str::from_utf8(arg) {
        Ok(text) if !arg.contains(&0) => Ok(text.to_owned()),
        _ => Err("argument must be UTF-8 text without zero bytes".into()),
    }
}

pub(super) fn parse_number(
    arg: &[u8],
    notation: Notation,
    min: i64,
    max: i64,
) -> Result<i64, Reason> {
    let (parsed, complaint) = match notation {
        Notation::Decimal => (parse_i64(arg), "argument couldn't be parsed into an integer"),
        Notation::Bytes => {
            (parse_bytes(arg).filter(|bytes| *bytes >= 0), "argument must be a memory value")
        }
        Notation::Octal => (parse_octal(arg), "argument couldn't be parsed as an octal number"),
    };
    match parsed {
        None => Err(complaint.into()),
        Some(value) if (min..=max).contains(&value) => Ok(value),
        Some(_) if notation == Notation::Octal => {
            Err(format!("argument must be between {min:o} and {max:o} inclusive").into())
        }
        Some(_) => Err(format!("argument must be between {min} and {max} inclusive").into()),
    }
}

fn parse_octal(arg: &[u8]) -> Option<i64> {
    i64::from_str_radix(str::from_utf8(arg).ok()?, 8).ok()
}

pub(super) fn not_among(names: &[&str]) -> Reason {
    format!("argument(s) must be one of the following: {}", names.join(", ")).into()
}
