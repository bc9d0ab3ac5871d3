//! Packed collections in the form of a file.
//!
//! ```text
//! listpack   bytes u32 │ elements u16 │ entries │ ff     65535 elements mean that many or more
//! intset     width u32 │ length u32 │ integers           little-endian
//! ```

use ds::intset::IntSet;
use ds::packed::Packed;

use super::ValueEncoder;
use crate::ByteSink;
use crate::rdb::length;

pub(super) const LISTPACK_END: u8 = 0xff;
/// A listpack with so many elements or more does not have their number.
const ELEMENTS_UNKNOWN: u16 = u16::MAX;
/// Larger collections are not compressed, because that takes a copy of the whole.
const COPIED_BYTES_MAX: usize = 16 << 20;
/// How much of the memory for copies is kept.
const ROOM_BYTES_MAX: usize = 1 << 20;

impl ValueEncoder {
    /// Writes a packed list as a string that is a listpack.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn packed<S: ByteSink>(&mut self, list: Packed<'_>, out: &mut S) -> Result<(), S::Error> {
        let bytes = list.listpack_bytes();
        let header = listpack_header(bytes, list.len());
        if self.compressor.is_none() || bytes > COPIED_BYTES_MAX {
            length::write(out, bytes as u64)?;
            out.put(&header)?;
            out.put(list.entries())?;
            return out.put(&[LISTPACK_END]);
        }
        self.in_room(out, |room| {
            room.extend_from_slice(&header);
            room.extend_from_slice(list.entries());
            room.push(LISTPACK_END);
        })
    }

    pub(super) fn ints<S: ByteSink>(
        &mut self,
        ints: IntSet<'_>,
        out: &mut S,
    ) -> Result<(), S::Error> {
        self.in_room(out, |room| {
            // At most 8, and at most as many as a record has bytes for.
            room.extend_from_slice(&(ints.width() as u32).to_le_bytes());
            room.extend_from_slice(&(ints.len() as u32).to_le_bytes());
            room.extend_from_slice(ints.bytes());
        })
    }

    /// Writes the string that `write` builds in the encoder's buffer.
    pub(super) fn in_room<S: ByteSink>(
        &mut self,
        out: &mut S,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), S::Error> {
        let mut room = std::mem::take(&mut self.room);
        write(&mut room);
        let result = self.string(&room, out);
        base::room::clear(&mut room, ROOM_BYTES_MAX);
        self.room = room;
        result
    }
}

/// The header of a listpack of so many bytes and elements.
pub(super) fn listpack_header(bytes: usize, elements: usize) -> [u8; 6] {
    // The records and chunks that the entries come from are below 4 GiB.
    let [a, b, c, d] = (bytes as u32).to_le_bytes();
    let [e, f] = u16::try_from(elements).unwrap_or(ELEMENTS_UNKNOWN).to_le_bytes();
    [a, b, c, d, e, f]
}
