//! The grammar of configuration files.
//!
//! ```text
//!   file      line, "\n" line ...
//!   line      blank | "#" anything | name argument ...
//!   argument  bare | "with \n \xff escapes" | 'with \' only'
//! ```
//!
//! Names match in any case, later lines override earlier ones, and `include` inserts other files. A
//! parameter with several arguments may have them in one, as in `bind "a b"`. This module does not
//! read files: the caller's [`Reader`] does.

use acl::{EditError, RuleContext, RuleError, User};
use base::quote::split_args;

use super::known::{DEPRECATED, REFUSED, USER, closest, is_or_resembles_secret};
use super::known_commands::KnownCommands;
use super::parameter::{Parameter, Reason};
use super::saving::PointsGiven;
use super::{Config, ConfigError, INCLUDE_DEPTH_MAX, Origin, UserLine, Warning, find};

/// An included file.
pub struct Included {
    /// Its name, for errors and to detect files that include themselves.
    pub name: String,
    /// Its content.
    pub text: Vec<u8>,
}

/// Reads the files of `include PATH`: one file, or all files that match a pattern, in order. It is
/// not an error if a pattern matches no file. An error is a reason such as
/// `No such file or directory`.
pub type Reader<'a> = dyn FnMut(&str) -> Result<Vec<Included>, String> + 'a;

const REDACTED: &str = "(redacted)";
const BAD_DIRECTIVE: &str = "Bad directive or wrong number of arguments";
const UNBALANCED: &str = "Unbalanced quotes in configuration line";

impl Config {
    /// Applies a configuration text line by line. `Config::load` calls this with the server's
    /// commands.
    ///
    /// # Errors
    /// The first line that cannot be accepted. Lines before it have taken effect.
    pub(crate) fn load_lines(
        &mut self,
        text: &[u8],
        origin: Origin,
        read: &mut Reader<'_>,
        known: KnownCommands,
    ) -> Result<Vec<Warning>, ConfigError> {
        let (open, warnings, points_loaded) = (Vec::new(), Vec::new(), false);
        let users_before = self.acl.users.len();
        let mut loader =
            Loader { config: self, read, known, open, warnings, points_loaded, users_before };
        loader.text(text, &origin)?;
        Ok(loader.warnings)
    }
}

struct Loader<'a, 'r> {
    config: &'a mut Config,
    read: &'a mut Reader<'r>,
    known: KnownCommands,
    /// The chain of included files being read, innermost last.
    open: Vec<String>,
    warnings: Vec<Warning>,
    /// A line has set save points.
    points_loaded: bool,
    /// So many of the users, which are the first ones, are those of earlier texts.
    users_before: usize,
}

/// Why a line failed: its own error, or an error in a file that it includes.
enum LineError {
    Here(Reason),
    Inside(ConfigError),
}

impl From<Reason> for LineError {
    fn from(reason: Reason) -> Self {
        Self::Here(reason)
    }
}

impl From<&'static str> for LineError {
    fn from(reason: &'static str) -> Self {
        Self::Here(reason.into())
    }
}

impl Loader<'_, '_> {
    fn text(&mut self, text: &[u8], origin: &Origin) -> Result<(), ConfigError> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            let number = index.saturating_add(1);
            match self.line(line, origin, number) {
                Ok(()) => {}
                Err(LineError::Inside(error)) => return Err(error),
                Err(LineError::Here(reason)) => {
                    return Err(ConfigError {
                        origin: origin.clone(),
                        line: number,
                        text: shown(line),
                        reason: reason.into_owned(),
                    });
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], origin: &Origin, number: usize) -> Result<(), LineError> {
        if line.first().is_none_or(|byte| *byte == b'#') {
            return Ok(());
        }
        let words = split_args(line).ok_or(UNBALANCED)?;
        let Some((name, args)) = words.split_first() else { return Ok(()) };
        if let Some(row) = find(name) {
            self.parameter(row, args)?;
            let is_default = || row.print(self.config) == row.print(&Config::default());
            if let Some(reason) = row.no_effect.filter(|_| !is_default()) {
                self.warnings.push(Warning {
                    origin: origin.clone(),
                    line: number,
                    name: row.name,
                    reason,
                });
            }
            return Ok(());
        }
        if name.eq_ignore_ascii_case(b"include") {
            return self.include(args);
        }
        if is(name, USER) {
            return Ok(self.user(args)?);
        }
        if is(name, "rename-command") {
            let [old, new] = args else { return Err(BAD_DIRECTIVE.into()) };
            return Ok(self.config.acl.renamed_commands.rename(old, new, &self.known)?);
        }
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| is(name, refused)) {
            // An empty value disables the directive.
            let nothing = matches!(args, [only] if only.is_empty());
            return if nothing { Ok(()) } else { Err((*reason).into()) };
        }
        if DEPRECATED.iter().any(|old| is(name, old)) {
            return if args.len() == 1 { Ok(()) } else { Err(BAD_DIRECTIVE.into()) };
        }
        Err(match closest(name) {
            Some(meant) => Reason::from(format!("{BAD_DIRECTIVE}. Did you mean '{meant}'?")),
            None => BAD_DIRECTIVE.into(),
        }
        .into())
    }

    fn parameter(&mut self, row: &Parameter, args: &[Vec<u8>]) -> Result<(), Reason> {
        if !self.open.is_empty() {
            self.config.from_includes.0.insert(row.name);
        }
        match args {
            [only] if row.multi && !only.is_empty() => {
                row.read(self.config, &split_args(only).ok_or(UNBALANCED)?)
            }
            _ => row.read(self.config, args),
        }
    }

    /// A user and its rules, which are checked here and applied when the server starts. The main
    /// file's line replaces that of a file that it has included before, and a line of an option
    /// that of a file.
    fn user(&mut self, args: &[Vec<u8>]) -> Result<(), Reason> {
        let Some((name, rules)) = args.split_first() else { return Err(BAD_DIRECTIVE.into()) };
        let wrong = |word: &[u8], reason: String| -> Reason {
            let word = match word.iter().any(|byte| b"<>#!".contains(byte)) {
                true => REDACTED.into(),
                false => String::from_utf8_lossy(word),
            };
            format!("Error in user declaration '{word}': {reason}").into()
        };
        // CONFIG REWRITE writes every user to the main file, those of included files and of options
        // too.
        let is_included = !self.open.is_empty();
        let users = &self.config.acl.users;
        let before = users.iter().position(|user| user.name == *name);
        let is_replaced =
            |at: usize| at < self.users_before || (!is_included && users[at].is_included);
        if before.is_some_and(|at| !is_replaced(at)) {
            return Err(wrong(name, RuleError::Duplicate.to_string()));
        }
        if acl::has_blanks(name) {
            return Err("Spaces not allowed in ACL usernames".into());
        }
        let all_channels = self.config.acl.pubsub_default.allows_all();
        let context = RuleContext { commands: self.known.for_rules, all_channels };
        User::new(name, context).edited(rules, context).map_err(|error| match error {
            EditError::Unmatched(word) => wrong(&word, "Unmatched parenthesis".to_owned()),
            EditError::Word(word, reason) => wrong(&word, reason.to_string()),
        })?;
        if is_included {
            self.config.from_includes.0.insert(USER);
        }
        if let Some(at) = before {
            self.config.acl.users.remove(at);
            self.users_before -= usize::from(at < self.users_before);
        }
        self.config.acl.users.push(UserLine {
            name: name.clone(),
            rules: rules.to_vec(),
            is_included,
        });
        Ok(())
    }

    fn include(&mut self, args: &[Vec<u8>]) -> Result<(), LineError> {
        let [path] = args else { return Err(BAD_DIRECTIVE.into()) };
        let path = self.in_directory(&String::from_utf8_lossy(path));
        if self.open.len() >= INCLUDE_DEPTH_MAX {
            return Err("files include each other too deeply".into());
        }
        let files = (self.read)(&path)
            .map_err(|reason| Reason::from(format!("can't open config file '{path}': {reason}")))?;
        // As in Redis, the save points of included files add to earlier ones, and a line after an
        // include replaces them all.
        self.points_loaded |= self.config.saving.points_given.0;
        self.config.saving.points_given = PointsGiven(self.points_loaded);
        for file in files {
            if self.open.contains(&file.name) {
                return Err(Reason::from(format!("'{}' includes itself", file.name)).into());
            }
            self.open.push(file.name.clone());
            let result = self.text(&file.text, &Origin::File(file.name));
            self.open.pop();
            result.map_err(LineError::Inside)?;
        }
        // An include at the end of an included file has begun points already.
        self.points_loaded |= self.config.saving.points_given.0;
        self.config.saving.begin_points();
        Ok(())
    }

    /// Resolves a relative path against an earlier `dir` line, to which Redis changes immediately.
    fn in_directory(&self, path: &str) -> String {
        match self.config.dir.as_str() {
            "." | "./" => path.to_owned(),
            _ if path.starts_with('/') => path.to_owned(),
            dir => format!("{}/{path}", dir.trim_end_matches('/')),
        }
    }
}

/// A line as errors show it: without the rules of a user and the value of a secret parameter, even
/// if their names are misspelled.
fn shown(line: &[u8]) -> String {
    let parts = split_args(line);
    // A misplaced quote or equals sign ends the name too.
    let mut words = line.split(|byte| byte.is_ascii_whitespace() || b"\"'=".contains(byte));
    let name = words.find(|word| !word.is_empty()).unwrap_or_default();
    let kept: &[&[u8]] = match parts.as_deref() {
        Some([_, user, ..]) if is(name, USER) => &[name, user],
        _ if line != name && is_or_resembles_secret(name) => &[name],
        _ => return String::from_utf8_lossy(line).into_owned(),
    };
    format!("{} {REDACTED}", String::from_utf8_lossy(&kept.join(&b' ')))
}

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}
