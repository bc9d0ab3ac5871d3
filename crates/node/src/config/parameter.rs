//! One parameter: its row, and how a value of each kind is read and printed.
//!
//! Constructors and modifiers of rows are `const`, and the table is one constant. Reading checks
//! all arguments before it changes the `Config`, so a refused value leaves it as it was.

use std::borrow::Cow;
use std::str;

use base::number::parse_i64;
use base::quote::push_quoted;
use base::size::parse_bytes;

use super::Config;
use super::special::with_unit;

/// Why a value was refused, in Redis's words where Redis has them.
pub type Reason = Cow<'static, str>;

/// The change that the running server must make when a parameter changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// Nothing: users of the parameter read the current configuration.
    Nothing,
    /// Log that the parameter of this name has no effect, and the reason.
    NoEffect(&'static str, &'static str),
    /// Open and close listening sockets.
    Listeners,
    /// Move the sockets of the metrics server.
    Metrics,
    /// Set up TLS again for new connections.
    Tls,
    /// Change the number of threads, or the commands they execute.
    Threads,
    /// Provide file descriptors for more clients.
    Clients,
    /// Change the settings of the log.
    Log,
    /// Change the working directory.
    Directory,
    /// Refuse writes, or allow them again, after a failed save.
    Saving,
    /// Start or stop the allocator's background thread.
    Allocator,
    /// Change the process title.
    Title,
    /// Start, stop or sync the append-only file differently.
    AppendOnly,
    /// Change the score for the kernel's OOM killer.
    OomScore,
}

/// The field of type `T` that holds a value in a `Config`.
pub struct Slot<T: 'static> {
    pub(super) of: fn(&Config) -> &T,
    pub(super) of_mut: fn(&mut Config) -> &mut T,
}

// Not derived, because the derive would require `T: Copy`.
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

/// A value with its own way of reading, printing and rewriting.
#[derive(Clone, Copy)]
pub struct Special {
    /// Prints the value for CONFIG GET.
    pub(super) print: fn(&Config) -> String,
    /// Reads arguments; changes nothing when it refuses them.
    pub(super) read: fn(&mut Config, &[Vec<u8>]) -> Result<(), Reason>,
    /// The text after the name on each line that CONFIG REWRITE writes. The number of lines does
    /// not depend on the value, so that each line can be compared with its default. `None` if there
    /// is one line with what CONFIG GET prints.
    pub(super) lines: Option<fn(&Config) -> Vec<String>>,
    /// The form of a value, for documentation.
    pub form: &'static str,
}

/// The kind of a parameter's value.
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
    /// UTF-8 text without zero bytes, often a path. Empty means not set.
    Text(Slot<String>),
    /// UTF-8 text of a certain form.
    CheckedText {
        #[doc(hidden)]
        slot: Slot<String>,
        #[doc(hidden)]
        check: fn(&str, &Config) -> Result<(), Reason>,
        /// The form of a value, for documentation.
        form: &'static str,
    },
    /// Any bytes. Empty means not set.
    Secret(Slot<Vec<u8>>),
    /// One of `names`.
    Choice {
        /// The accepted names.
        names: &'static [&'static str],
        #[doc(hidden)]
        read: fn(&Config) -> &'static str,
        #[doc(hidden)]
        write: fn(&mut Config, &[u8]) -> bool,
    },
    /// A value of its own form.
    Special(Special),
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its name, in lower case.
    pub name: &'static str,
    /// An older name that still works.
    pub alias: Option<&'static str>,
    /// The kind of its value.
    pub kind: Kind,
    /// A description of one or two sentences, with the unit.
    pub about: &'static str,
    /// The source file below `crates` that reads the field, where `cargo xtask rows` looks for it.
    /// `None` if the parameter has no effect.
    pub reader: Option<&'static str>,
    /// The change that the server makes after CONFIG SET.
    pub apply: Apply,
    /// Why it has no effect; `None` if it has one.
    pub no_effect: Option<&'static str>,
    /// CONFIG SET refuses it.
    pub immutable: bool,
    /// CONFIG SET refuses it unless `enable-protected-configs` allows it.
    pub protected: bool,
    /// It is for tests: CONFIG GET shows it only for its exact name, not for a pattern.
    pub hidden: bool,
    /// Its value must not be logged or shown to other clients.
    pub sensitive: bool,
    /// It takes any number of arguments.
    pub multi: bool,
    /// CONFIG SET to the present value counts as a change, because the named file may be new.
    pub volatile: bool,
    /// CONFIG REWRITE keeps a line whose value is empty, instead of removing it.
    pub keeps_empty: bool,
}

/// Declares modifiers of rows that set a field of the same name.
macro_rules! modifiers {
    ($($name:ident),+) => {
        impl Parameter {
            $(pub(super) const fn $name(mut self) -> Self {
                self.$name = true;
                self
            })+
        }
    };
}

modifiers!(immutable, protected, hidden, sensitive, multi, volatile, keeps_empty);

impl Parameter {
    pub(super) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self {
            name,
            alias: None,
            kind,
            about,
            reader: None,
            apply: Apply::Nothing,
            no_effect: None,
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

    /// The server logs the reason when the parameter is set in a file or by CONFIG SET.
    pub(super) const fn without_effect(mut self, reason: &'static str) -> Self {
        self.no_effect = Some(reason);
        self
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// Whether this is its name or alias, in any case.
    pub fn is_called(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name.as_bytes())
            || self.alias.is_some_and(|alias| name.eq_ignore_ascii_case(alias.as_bytes()))
    }

    /// The alias if `called` is the alias, otherwise the name.
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
            Kind::Text(slot) | Kind::CheckedText { slot, .. } => (slot.of)(config).clone().into(),
            Kind::Secret(slot) => (slot.of)(config).clone(),
            Kind::Choice { read, .. } => read(config).into(),
            Kind::Special(special) => (special.print)(config).into(),
        }
    }

    /// The text after the name on each of its lines in a configuration file.
    pub(super) fn file_values(&self, config: &Config) -> Vec<Vec<u8>> {
        let quoted = |bytes: &[u8]| {
            let mut out = Vec::new();
            push_quoted(&mut out, bytes);
            vec![out]
        };
        match self.kind {
            Kind::Text(slot) | Kind::CheckedText { slot, .. } => {
                quoted((slot.of)(config).as_bytes())
            }
            Kind::Secret(slot) => quoted((slot.of)(config)),
            Kind::Number { notation: Notation::Bytes, read, .. } => {
                vec![with_unit(read(config).unsigned_abs()).into()]
            }
            Kind::Special(Special { lines: Some(lines), .. }) => {
                lines(config).into_iter().map(String::into_bytes).collect()
            }
            Kind::Special(_) => match self.print(config) {
                empty if empty.is_empty() => vec![b"\"\"".to_vec()],
                value => vec![value],
            },
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
            Kind::CheckedText { slot, check, .. } => {
                let text = parse_text(arg)?;
                check(&text, config)?;
                *(slot.of_mut)(config) = text;
            }
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

/// Text that can be a path: UTF-8 without a zero byte, which would end a path.
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
