//! The commands as rules see them: names, parents and categories, by table index.
//!
//! The table itself is on a higher layer, which builds this view once.

use std::collections::HashMap;

use command::Category;

/// One command or subcommand.
#[derive(Debug)]
pub struct IndexedCommand {
    /// Its full name in lower case: `config|get`.
    pub name: Box<str>,
    /// The index of the command whose subcommand it is.
    pub parent: Option<u16>,
    /// Its categories.
    pub categories: Category,
    subcommands: Vec<u16>,
}

/// All commands, by the indexes of the table.
#[derive(Debug, Default)]
pub struct CommandIndex {
    all: Vec<IndexedCommand>,
    by_name: HashMap<Box<[u8]>, u16>,
}

impl CommandIndex {
    /// Adds the command with the next index. A subcommand comes after its command.
    pub fn push(&mut self, name: &str, parent: Option<u16>, categories: Category) {
        let index = self.all.len() as u16;
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(usize::from(parent))) {
            parent.subcommands.push(index);
        }
        self.by_name.insert(name.as_bytes().into(), index);
        self.all.push(IndexedCommand {
            name: name.into(),
            parent,
            categories,
            subcommands: Vec::new(),
        });
    }

    /// The number of commands.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A command with its index, by a name like `get` or `config|get` in any case.
    pub fn find(&self, name: &[u8]) -> Option<(u16, &IndexedCommand)> {
        let index = *self.by_name.get(name.to_ascii_lowercase().as_slice())?;
        Some((index, &self.all[usize::from(index)]))
    }

    /// A command and its subcommands, by indexes.
    pub(crate) fn family(&self, index: u16) -> impl Iterator<Item = u16> + '_ {
        let subcommands = &self.all[usize::from(index)].subcommands;
        std::iter::once(index).chain(subcommands.iter().copied())
    }

    /// Whether a command has subcommands.
    pub(crate) fn has_subcommands(&self, index: u16) -> bool {
        !self.all[usize::from(index)].subcommands.is_empty()
    }

    /// The indexes of the commands in a category.
    pub(crate) fn of_category(&self, category: Category) -> impl Iterator<Item = u16> + '_ {
        let all = self.all.iter().zip(0..);
        all.filter(move |(command, _)| command.categories.has(category)).map(|(_, index)| index)
    }
}

/// A set of commands: one bit for each entry of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandSet(Box<[u64]>);

impl CommandSet {
    /// The set of all of this many commands, or of none.
    pub(crate) fn new(commands: usize, all: bool) -> Self {
        let word = if all { u64::MAX } else { 0 };
        Self(vec![word; commands.div_ceil(64)].into_boxed_slice())
    }

    /// Whether a command is in the set.
    #[inline]
    pub(crate) fn contains(&self, index: u16) -> bool {
        let word = self.0.get(usize::from(index / 64)).copied().unwrap_or_default();
        word >> (index % 64) & 1 != 0
    }

    /// Adds a command or removes it.
    pub(crate) fn set(&mut self, index: u16, contained: bool) {
        let Some(word) = self.0.get_mut(usize::from(index / 64)) else { return };
        let bit = 1 << (index % 64);
        *word = if contained { *word | bit } else { *word & !bit };
    }
}
