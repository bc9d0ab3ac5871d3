//! A user: its flags, passwords and permissions.
//!
//! A user never changes. An edit produces another user, with all words of the change or none, which
//! then replaces it.

use std::sync::Arc;

use base::quote::{push_quoted, split_args};

use crate::arguments;
use crate::error::{EditError, RuleError};
use crate::password::PasswordDigest;
use crate::rules::{RuleContext, until_zero};
use crate::selector::Selector;

/// The user of new connections.
pub const DEFAULT_USER: &[u8] = b"default";

/// A user.
#[derive(Clone, Debug)]
pub struct User {
    name: Arc<[u8]>,
    enabled: bool,
    no_password: bool,
    skips_sanitizing: bool,
    passwords: Vec<PasswordDigest>,
    /// The first is the root selector, to which words outside of parentheses apply.
    selectors: Vec<Selector>,
    unrestricted: bool,
}

impl User {
    /// A new user without any permissions, who cannot authenticate.
    pub fn new(name: &[u8], context: RuleContext<'_>) -> Self {
        Self {
            name: name.into(),
            enabled: false,
            no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            selectors: vec![Selector::new(context.commands, context.all_channels)],
            unrestricted: false,
        }
    }

    /// The default user of a server without configuration: no password, all permissions.
    pub fn unrestricted_default(context: RuleContext<'_>) -> Self {
        let mut user = Self::new(DEFAULT_USER, context);
        user.enabled = true;
        user.no_password = true;
        user.selectors[0].reset_commands(context.commands, true);
        user.selectors[0].reset_keys(true);
        user.selectors[0].reset_channels(true);
        user.unrestricted = true;
        user
    }

    /// The user after the words of ACL SETUSER.
    ///
    /// # Errors
    /// The first wrong word.
    pub fn edited(
        &self,
        args: &[impl AsRef<[u8]>],
        context: RuleContext<'_>,
    ) -> Result<Self, EditError> {
        let words = arguments::words(args).map_err(|index| {
            let first = args.get(index).map(|arg| arg.as_ref().to_vec());
            EditError::Unmatched(first.unwrap_or_default())
        })?;
        let mut user = self.clone();
        for word in words {
            user.apply(&word, context).map_err(|error| EditError::Word(word, error))?;
        }
        user.finish();
        Ok(user)
    }

    /// The user with this single password, or open to all clients if the password is empty.
    pub fn with_password(&self, password: &[u8]) -> Self {
        let mut user = self.clone();
        user.no_password = password.is_empty();
        user.passwords.clear();
        if !password.is_empty() {
            user.passwords.push(PasswordDigest::of(password));
        }
        user
    }

    /// Takes over the identity of an earlier user with the same name.
    pub(crate) fn follow(&mut self, before: &Self) {
        self.name = Arc::clone(&before.name);
    }

    /// Its name. The user keeps the same allocation after changes.
    pub fn name(&self) -> &Arc<[u8]> {
        &self.name
    }

    /// Whether this is the user of new connections.
    pub fn is_default(&self) -> bool {
        &*self.name == DEFAULT_USER
    }

    /// Whether clients can authenticate as this user.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether every password is accepted.
    pub fn needs_no_password(&self) -> bool {
        self.no_password
    }

    /// Whether a rule allows channels.
    pub fn has_channels(&self) -> bool {
        self.selectors.iter().any(Selector::has_channels)
    }

    /// Whether another user has the same rules about channels.
    pub fn has_same_channels(&self, other: &Self) -> bool {
        let own = self.selectors.iter().map(Selector::channels);
        own.eq(other.selectors.iter().map(Selector::channels))
    }

    /// Whether nothing is forbidden.
    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted
    }

    /// Whether the password is correct. All passwords are compared, so that the time does not
    /// reveal which one matched.
    pub fn accepts(&self, password: &PasswordDigest) -> bool {
        let known = self.passwords.iter().fold(false, |known, own| known | own.is_same(password));
        self.enabled && (self.no_password || known)
    }

    /// The names of its flags, in Redis's order.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let sanitizing =
            if self.skips_sanitizing { "skip-sanitize-payload" } else { "sanitize-payload" };
        let flags = [
            Some(if self.enabled { "on" } else { "off" }),
            self.no_password.then_some("nopass"),
            Some(sanitizing),
        ];
        flags.into_iter().flatten()
    }

    /// Its passwords.
    pub fn passwords(&self) -> &[PasswordDigest] {
        &self.passwords
    }

    /// Its selectors; the first is the root selector.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// The words of ACL SETUSER that turn a new user into this one; each selector is one word.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let flags = self.flags().map(|flag| flag.as_bytes().to_vec());
        let passwords = self.passwords.iter().map(|digest| format!("#{digest}").into_bytes());
        let (root, others) = self.selectors.split_at(1);
        let root = root.iter().flat_map(Selector::words);
        flags.chain(passwords).chain(root).chain(others.iter().map(Selector::as_word)).collect()
    }

    /// The line of ACL LIST and of a file for this user.
    pub fn line(&self) -> Vec<u8> {
        [b"user ", &self.name[..], b" ", &self.words().join(&b' ')].concat()
    }

    /// The words of the configuration file's line for this user, with quotes where such a line
    /// needs them.
    pub fn config_line(&self) -> Vec<u8> {
        let mut line = b"user".to_vec();
        for word in std::iter::once(self.name.to_vec()).chain(self.words()) {
            line.push(b' ');
            match word.is_empty() || word.iter().any(|byte| b"\"'".contains(byte)) {
                true => push_quoted(&mut line, &word),
                false => line.extend(word),
            }
        }
        line
    }

    /// Applies one word. If it fails, the user may have changed.
    pub(crate) fn apply(&mut self, word: &[u8], context: RuleContext<'_>) -> Result<(), RuleError> {
        let text = until_zero(word);
        match text.to_ascii_lowercase().as_slice() {
            b"" if word.is_empty() => {}
            b"on" => self.enabled = true,
            b"off" => self.enabled = false,
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"nopass" => self.reset_passwords(true),
            b"resetpass" => self.reset_passwords(false),
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => *self = Self { name: Arc::clone(&self.name), ..Self::new(b"", context) },
            _ => {
                return match word {
                    [b'>', password @ ..] => self.add_password(PasswordDigest::of(password)),
                    [b'#', digits @ ..] => self.add_password(digest(digits)?),
                    [b'<', password @ ..] => self.remove_password(&PasswordDigest::of(password)),
                    [b'!', digits @ ..] => self.remove_password(&digest(digits)?),
                    [b'(', words @ .., b')'] => self.add_selector(words, context),
                    _ => self.selectors[0].apply(word, context.commands),
                };
            }
        }
        Ok(())
    }

    /// Computes derived fields after all words were applied.
    pub(crate) fn finish(&mut self) {
        self.unrestricted = self.selectors.iter().any(Selector::is_unrestricted);
    }

    fn reset_passwords(&mut self, none_needed: bool) {
        self.no_password = none_needed;
        self.passwords.clear();
    }

    fn add_password(&mut self, digest: PasswordDigest) -> Result<(), RuleError> {
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
        self.no_password = false;
        Ok(())
    }

    fn remove_password(&mut self, digest: &PasswordDigest) -> Result<(), RuleError> {
        let place = self.passwords.iter().position(|own| own == digest);
        self.passwords.remove(place.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    fn add_selector(&mut self, words: &[u8], context: RuleContext<'_>) -> Result<(), RuleError> {
        let mut selector = Selector::new(context.commands, context.all_channels);
        // As in Redis, words with an unclosed quote are ignored.
        for word in split_args(words).unwrap_or_default() {
            selector.apply(&word, context.commands)?;
        }
        self.selectors.push(selector);
        Ok(())
    }
}

fn digest(digits: &[u8]) -> Result<PasswordDigest, RuleError> {
    PasswordDigest::from_hex(digits).ok_or(RuleError::Digest)
}
