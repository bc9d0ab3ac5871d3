//! Lists without duplicates, in order of insertion and searchable by text.
//!
//! Rules come from outside and may contain very many patterns, so adding one takes constant time.

use std::collections::HashMap;

/// Items with their texts, in order of insertion.
#[derive(Clone, Debug)]
pub(crate) struct OrderedNames<T> {
    items: Vec<T>,
    places: HashMap<Box<[u8]>, usize>,
}

impl<T> Default for OrderedNames<T> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::new() }
    }
}

impl<T> OrderedNames<T> {
    /// The item of a text, created if it is missing.
    pub(crate) fn find_or_add(&mut self, text: &[u8], make: impl FnOnce() -> T) -> &mut T {
        let place = match self.places.get(text) {
            Some(place) => *place,
            None => {
                self.places.insert(text.into(), self.items.len());
                self.items.push(make());
                self.items.len() - 1
            }
        };
        &mut self.items[place]
    }

    /// Forgets all items.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The items in order.
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Whether a text has an item.
    pub(crate) fn contains(&self, text: &[u8]) -> bool {
        self.places.contains_key(text)
    }
}
