//! The text that a function builds. Its memory counts as if the interpreter had it already.

use super::context::{LibraryContext, Problem, Returned, one};

/// The least memory that is reserved at once.
const GROWTH_BYTES_MIN: usize = 256;
/// Room for whatever [`LibraryOutput::push_short`] appends.
const SHORT_BYTES_MAX: usize = 32;

/// A text that grows; see this module. When there is no room it stays as it is, and
/// [`LibraryOutput::check`] fails from then on.
pub struct LibraryOutput<'a> {
    context: &'a LibraryContext<'a>,
    bytes: Vec<u8>,
    is_full: bool,
}

impl<'a> LibraryOutput<'a> {
    pub fn new(context: &'a LibraryContext<'a>) -> Self {
        Self { context, bytes: Vec::new(), is_full: false }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Appends what `push` appends, a number or the like.
    pub fn push_short(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        if self.has_room(SHORT_BYTES_MAX) {
            push(&mut self.bytes);
        }
    }

    /// Appends zeros.
    pub fn pad(&mut self, len: usize) {
        if self.has_room(len) {
            self.bytes.resize(self.bytes.len() + len, 0);
        }
    }

    /// # Errors
    ///
    /// There was no room for a part of the text.
    #[inline]
    pub fn check(&self) -> Result<(), Problem> {
        if self.is_full { Err(Problem::no_memory()) } else { Ok(()) }
    }

    /// The text as the only result.
    ///
    /// # Errors
    ///
    /// As [`LibraryOutput::check`].
    pub fn into_returned(self) -> Returned {
        self.check()?;
        one(self.context.string(&self.bytes)?)
    }

    #[inline]
    fn has_room(&mut self, more: usize) -> bool {
        !self.is_full && (self.bytes.capacity() - self.bytes.len() >= more || self.grow(more))
    }

    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        let needed = self.bytes.len().saturating_add(more);
        let room = self.context.output_room(needed);
        if needed > room {
            self.is_full = true;
            return false;
        }
        let wanted = needed.max(2 * self.bytes.capacity()).max(GROWTH_BYTES_MIN).min(room);
        self.bytes.reserve_exact(wanted - self.bytes.len());
        self.context.note_output(self.bytes.capacity());
        true
    }
}
