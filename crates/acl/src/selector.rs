//! A selector: the commands, keys and channels that one set of rules allows together.
//!
//! ```text
//!   commands   a bit for each entry of the table, and first arguments of commands without the bit
//!   rules      the words that produced them, in order, as ACL LIST shows them
//!   keys       all, or patterns with their access
//!   channels   all, or patterns
//! ```
//!
//! Applying the words to a new selector reproduces the bits. A later rule about the same command or
//! category replaces the earlier one; a rule that changes nothing stays, because commands added
//! later may give it a meaning.

use std::collections::BTreeMap;
use std::ops::Bound;

use base::quote::push_quoted;

use crate::commands::{CommandIndex, CommandSet};
use crate::ordered::OrderedNames;
use crate::pattern::{AclPattern, KeyAccess, PatternName};

/// A pattern of keys, and the access to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    pub(crate) pattern: AclPattern,
    pub(crate) access: KeyAccess,
}

/// The words of rules about commands, each found by its text in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandRules {
    /// By text: the position in the order, and whether the rule allows or forbids.
    rules: BTreeMap<Box<[u8]>, (u64, bool)>,
    next: u64,
}

impl CommandRules {
    /// Appends a rule. Replaces a rule with the same text, and removes those about subcommands and
    /// first arguments of its command.
    pub(crate) fn add(&mut self, text: &[u8], allowed: bool) {
        let text: Box<[u8]> = text.to_ascii_lowercase().into();
        // In ASCII `}` follows `|`, so the range is all texts that begin with `text|`.
        let (from, to) = ([&text[..], b"|"].concat(), [&text[..], b"}"].concat());
        let about = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let void: Vec<_> =
            self.rules.range::<[u8], _>(about).map(|(text, _)| text.clone()).collect();
        for text in void {
            self.rules.remove(&text);
        }
        self.rules.insert(text, (self.next, allowed));
        self.next += 1;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The words in order, each with its sign.
    fn words(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_by_key(|(_, (place, _))| *place);
        let sign = |allowed| if allowed { b"+" } else { b"-" };
        rules.into_iter().map(move |(text, (_, allowed))| [&sign(*allowed)[..], text].concat())
    }
}

/// A set of rules.
#[derive(Clone, Debug)]
pub struct Selector {
    pub(crate) commands: CommandSet,
    /// Every command is allowed, because no rule has removed one.
    pub(crate) all_commands: bool,
    /// The rules about commands start from all of them, and not from none.
    pub(crate) begins_with_all: bool,
    /// The first arguments that are allowed for commands outside of the set.
    pub(crate) first_args: BTreeMap<u16, OrderedNames<Box<[u8]>>>,
    pub(crate) rules: CommandRules,
    pub(crate) all_keys: bool,
    pub(crate) keys: OrderedNames<KeyPattern>,
    pub(crate) all_channels: bool,
    pub(crate) channels: OrderedNames<AclPattern>,
}

impl Selector {
    /// A selector that allows no command and no key, and all channels if `all_channels`.
    pub(crate) fn new(commands: &CommandIndex, all_channels: bool) -> Self {
        Self {
            commands: CommandSet::new(commands.len(), false),
            all_commands: false,
            begins_with_all: false,
            first_args: BTreeMap::new(),
            rules: CommandRules::default(),
            all_keys: false,
            keys: OrderedNames::default(),
            all_channels,
            channels: OrderedNames::default(),
        }
    }

    /// Whether it allows everything.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// The rules about channels: whether all are allowed, or else the patterns.
    pub(crate) fn channels(&self) -> (bool, &[AclPattern]) {
        (self.all_channels, self.channels.items())
    }

    /// Whether a rule allows channels.
    pub(crate) fn has_channels(&self) -> bool {
        self.all_channels || !self.channels.items().is_empty()
    }

    /// Whether a key may be accessed.
    pub(crate) fn allows_key(&self, key: &[u8], access: KeyAccess) -> bool {
        let name = PatternName::new(key);
        self.all_keys
            || self
                .keys
                .items()
                .iter()
                .any(|key| key.pattern.matches(name) && key.access.covers(access))
    }

    /// Whether every key may be accessed, whatever its name.
    pub(crate) fn allows_any_key(&self, access: KeyAccess) -> bool {
        let is_star = |key: &KeyPattern| key.pattern.text() == b"*" && key.access.covers(access);
        self.all_keys || self.keys.items().iter().any(is_star)
    }

    /// Whether a channel may be used, or all channels that a pattern matches.
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        let name = PatternName::new(channel);
        self.all_channels
            || match is_pattern {
                // Overlaps of two patterns are not computed: the same pattern must be allowed.
                true => self.channels.contains(channel),
                false => self.channels.items().iter().any(|pattern| pattern.matches(name)),
            }
    }

    /// The rules about commands, as ACL GETUSER shows them.
    pub fn commands_text(&self) -> Vec<u8> {
        let mut text = if self.begins_with_all { b"+@all" } else { b"-@all" }.to_vec();
        for word in self.rules.words() {
            text.push(b' ');
            text.extend(word);
        }
        text
    }

    /// The patterns of keys, as ACL GETUSER shows them.
    pub fn keys_text(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let patterns = self.keys.items();
        let sign = |key: &KeyPattern| match key.access {
            KeyAccess::READ => "%R~",
            KeyAccess::WRITE => "%W~",
            // `~*` would override the other patterns, or be refused after them.
            _ if key.pattern.text() == b"*" && patterns.len() > 1 => "%RW~",
            _ => "~",
        };
        let word = |key| [sign(key).as_bytes(), key.pattern.text()].concat();
        patterns.iter().map(word).collect::<Vec<_>>().join(&b' ')
    }

    /// The patterns of channels, as ACL GETUSER shows them.
    pub fn channels_text(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let patterns = self.channels.items().iter();
        let words: Vec<Vec<u8>> = patterns.map(|pattern| [b"&", pattern.text()].concat()).collect();
        words.join(&b' ')
    }

    /// The words that turn a new selector into this one, as ACL LIST shows them.
    pub(crate) fn words(&self) -> Vec<Vec<u8>> {
        let mut texts = vec![self.keys_text()];
        if !self.all_channels {
            texts.push(b"resetchannels".to_vec());
        }
        texts.extend([self.channels_text(), self.commands_text()]);
        let words = texts.iter().flat_map(|text| text.split(|byte| *byte == b' '));
        words.filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// The word of ACL SETUSER that produces this selector. Only inside a selector, words may be
    /// quoted; they are if they would be misread otherwise.
    pub(crate) fn as_word(&self) -> Vec<u8> {
        let mut text = b"(".to_vec();
        for (at, word) in self.words().iter().enumerate() {
            if at > 0 {
                text.push(b' ');
            }
            match word.ends_with(b")") || word.iter().any(|byte| b"\"'".contains(byte)) {
                true => push_quoted(&mut text, word),
                false => text.extend_from_slice(word),
            }
        }
        text.push(b')');
        text
    }
}
