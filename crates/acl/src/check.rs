//! Whether a user may run a request.
//!
//! One selector must allow all of it: the command, each key with the command's access to it, and
//! each channel. The command's row gives the keys and their access, by the same parse that decides
//! which shards are locked.

use command::{Access, Flags, Spec};
use resp::Args;

use crate::pattern::KeyAccess;
use crate::selector::Selector;
use crate::user::User;

/// A request to check.
#[derive(Clone, Copy)]
pub struct AccessRequest<'a> {
    /// The command's index in the table.
    pub index: u16,
    /// The command's row.
    pub spec: &'static Spec,
    /// The arguments, the command's name included.
    pub args: &'a Args<'a>,
    /// The channels among the arguments.
    pub channels: &'a [CheckedChannel],
}

/// A channel, or a pattern of channels, in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedChannel {
    /// Index of its argument.
    pub at: usize,
    /// Whether it is a pattern, as in PSUBSCRIBE.
    pub is_pattern: bool,
}

/// The denied part of a request. If each selector denies another part, the greatest in this order
/// is reported: it comes closest to being allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    /// The command itself.
    Command,
    /// The key at this argument.
    Key(usize),
    /// The channel at this argument.
    Channel(usize),
    /// This option, which reaches keys that the request does not name.
    Option(&'static str),
}

impl User {
    /// Whether the user may run a request.
    ///
    /// # Errors
    /// The denied part of the request.
    pub fn check(&self, request: &AccessRequest<'_>) -> Result<(), Denied> {
        if self.is_unrestricted() {
            return Ok(());
        }
        let mut denied = Denied::Command;
        for selector in self.selectors() {
            match selector.check(request) {
                Ok(()) => return self.check_option(request),
                Err(other) => denied = denied.max(other),
            }
        }
        Err(denied)
    }

    /// An allowed request may still have an option that reads arbitrary keys. Then one of the
    /// selectors that allow the request must allow reading all keys.
    #[inline]
    fn check_option(&self, request: &AccessRequest<'_>) -> Result<(), Denied> {
        let mut words = request.spec.keys.iter().filter_map(|key| key.pattern_word(request.args));
        let Some(word) = words.next() else { return Ok(()) };
        let allows = |selector: &Selector| {
            selector.allows_any_key(KeyAccess::READ) && selector.check(request).is_ok()
        };
        if self.selectors().iter().any(allows) { Ok(()) } else { Err(Denied::Option(word)) }
    }

    /// Whether the user may use a channel, or all channels that a pattern matches.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.selectors().iter().any(|selector| selector.allows_channel(channel, is_pattern))
    }
}

impl Selector {
    fn check(&self, request: &AccessRequest<'_>) -> Result<(), Denied> {
        let is_allowed = self.all_commands
            || self.commands.contains(request.index)
            || request.spec.flags.has(Flags::NO_AUTH);
        if !is_allowed && !self.allows_first_arg(request) {
            return Err(Denied::Command);
        }
        if !self.all_keys {
            self.check_keys(request)?;
        }
        for channel in request.channels {
            if !self.allows_channel(request.args.text(channel.at), channel.is_pattern) {
                return Err(Denied::Channel(channel.at));
            }
        }
        Ok(())
    }

    #[cold]
    fn allows_first_arg(&self, request: &AccessRequest<'_>) -> bool {
        let known = self.first_args.get(&request.index);
        known.zip(request.args.at(1)).is_some_and(|(known, first)| {
            known.items().iter().any(|arg| arg.eq_ignore_ascii_case(first))
        })
    }

    #[inline]
    fn check_keys(&self, request: &AccessRequest<'_>) -> Result<(), Denied> {
        for spec in request.spec.keys {
            let access = needed(spec.access_in(request.args));
            let allowed = |at: &usize| self.allows_key(request.args.text(*at), access);
            let denied = match spec.only() {
                // The usual case: one key at a known position.
                Some(at) => Some(at).filter(|at| *at < request.args.len() && !allowed(at)),
                None => spec.positions(request.args).find(|at| !allowed(at)),
            };
            if let Some(at) = denied {
                // The command itself refuses such a request, whatever its keys are, and explains
                // why.
                let is_refused = request.spec.keys.iter().any(|spec| spec.miscounts(request.args));
                return if is_refused { Ok(()) } else { Err(Denied::Key(at)) };
            }
        }
        Ok(())
    }
}

/// The access to a key that a user needs for a command with this access. Commands that only reveal
/// whether a key exists need no more than the key.
fn needed(access: Access) -> KeyAccess {
    let read = if access.has(Access::ACCESS) { KeyAccess::READ } else { KeyAccess::NONE };
    let changes = [Access::INSERT, Access::UPDATE, Access::DELETE];
    match changes.into_iter().any(|change| access.has(change)) {
        true => read.with(KeyAccess::WRITE),
        false => read,
    }
}
