//! Changed keys, for clients that track keys.

/// Bytes of room kept from command to command.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Changed keys in the order of their changes. A key that changed twice may occur twice.
#[derive(Debug, Default)]
pub struct Touched {
    /// Their names, one after the other.
    names: Vec<u8>,
    /// Where each name ends, and whether a command changed the key.
    ends: Vec<(usize, bool)>,
    /// All keys have changed.
    all: bool,
}

impl Touched {
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.names.extend_from_slice(key);
        self.ends.push((self.names.len(), true));
    }

    /// Records that no command changed the last key.
    pub(crate) fn mark_last(&mut self) {
        if let Some((_, by_command)) = self.ends.last_mut() {
            *by_command = false;
        }
    }

    pub(crate) fn set_all(&mut self) {
        self.all = true;
    }

    /// Whether all keys have changed.
    pub fn are_all(&self) -> bool {
        self.all
    }

    /// The keys, each with whether a command changed it; other keys expired or were evicted.
    pub fn keys(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        let ends = self.ends.iter().zip(starts);
        ends.map(|((end, by_command), start)| (&self.names[start..*end], *by_command))
    }

    /// An empty list that keeps part of the room.
    pub(crate) fn emptied(mut self) -> Self {
        self.names.clear();
        self.ends.clear();
        self.all = false;
        self.names.shrink_to(KEPT_BYTES_MAX);
        self.ends.shrink_to(KEPT_BYTES_MAX / size_of::<(usize, bool)>());
        self
    }
}
