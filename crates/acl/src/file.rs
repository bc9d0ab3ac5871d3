//! The file of users: one line for each, in the form of ACL LIST.
//!
//! ```text
//!   user NAME word ...
//! ```
//!
//! Words are separated by single blanks and have no quotes. Blank lines are skipped; comments are
//! errors, since rewriting the file would lose them. Reading returns either all users of a file
//! without errors, or the errors of each line.

use crate::arguments;
use crate::error::RuleError;
use crate::rules::{RuleContext, has_blanks};
use crate::user::{DEFAULT_USER, User};
use crate::users::Users;

/// The text after the errors of a file.
const NOTHING_CHANGED: &[u8] =
    b"WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

/// The users of a file. Without a line for the default user, that user may do everything.
///
/// # Errors
/// The errors of the lines, as ACL LOAD replies them; `path` names the file there.
pub fn read(text: &[u8], path: &str, context: RuleContext<'_>) -> Result<Users, Vec<u8>> {
    let mut reading = FileReading { path, users: Users::new(context), errors: Vec::new() };
    let mut seen_default = false;
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if let Some(user) = reading.line(number + 1, line, seen_default, context) {
            seen_default |= user.is_default();
            reading.users.put(user);
        }
    }
    if reading.errors.is_empty() {
        return Ok(reading.users);
    }
    reading.errors.extend_from_slice(NOTHING_CHANGED);
    Err(reading.errors)
}

/// The text of a file with these users.
pub fn write(users: &Users) -> Vec<u8> {
    users.iter().flat_map(|user| [user.line(), b"\n".to_vec()].concat()).collect()
}

struct FileReading<'a> {
    path: &'a str,
    users: Users,
    errors: Vec<u8>,
}

impl FileReading<'_> {
    /// Records the error of a line.
    fn error(&mut self, parts: &[&[u8]]) {
        self.errors.extend(parts.concat());
    }

    /// Reads the user of a line, unless the line is blank or wrong. A user with errors in its rules
    /// counts as seen, so that a second line for it is an error too.
    fn line(
        &mut self,
        number: usize,
        line: &[u8],
        seen_default: bool,
        context: RuleContext<'_>,
    ) -> Option<User> {
        let is_space = |byte: &u8| b" \t\r\n".contains(byte);
        let start = line.iter().position(|byte| !is_space(byte))?;
        let end = line.iter().rposition(|byte| !is_space(byte))?;
        let words: Vec<&[u8]> = line[start..=end].split(|byte| *byte == b' ').collect();
        let at = format!("{}:{number}", self.path).into_bytes();
        let [b"user", name, words @ ..] = &words[..] else {
            self.error(&[&at, b" should start with user keyword followed by the username. "]);
            return None;
        };
        if has_blanks(name) {
            let invalid = b"' contains invalid characters. ";
            self.error(&[b"'", &at, b": username '", name, invalid]);
            return None;
        }
        let is_known = match *name == DEFAULT_USER {
            true => seen_default,
            false => self.users.find(name).is_some(),
        };
        if is_known {
            let found = format!("' found on line {number}. ");
            self.error(&[b"WARNING: Duplicate user '", name, found.as_bytes()]);
            return None;
        }
        let mut user = User::new(name, context);
        match arguments::words(words) {
            Ok(words) => self.apply_all(&mut user, &words, &at, context),
            Err(_) => self.error(&[&at, b": Unmatched parenthesis in selector definition."]),
        }
        user.finish();
        Some(user)
    }

    /// Applies the words for a user. Of words that are no commands only the first is reported,
    /// because the others may follow from it, and without its text, which may be a secret.
    fn apply_all(
        &mut self,
        user: &mut User,
        words: &[Vec<u8>],
        at: &[u8],
        context: RuleContext<'_>,
    ) {
        let mut is_reported = false;
        for word in words {
            let is_end = |byte: &u8| b"\t\r\n".contains(byte);
            let start = word.iter().position(|byte| !is_end(byte)).unwrap_or(word.len());
            let end = word.iter().rposition(|byte| !is_end(byte)).map_or(start, |last| last + 1);
            let word = &word[start..end];
            let Err(error) = user.apply(word, context) else { continue };
            let reason = error.to_string().into_bytes();
            if error == RuleError::Unknown {
                self.error(&[at, b": Error in applying operation '", word, b"': ", &reason, b". "]);
            } else if !is_reported {
                self.error(&[at, b": ", &reason, b". "]);
                is_reported = true;
            }
        }
    }
}
