//! Lists.

use ds::packed::{Entry, Packed};
use store::{NewList, NewValue};

use super::{Rooms, ValueDecoder, encoded, listpack, read_bytes, read_len, ziplist};
use crate::rdb::encode::{PACKED_NODE, PLAIN_NODE};
use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

impl ValueDecoder<'_> {
    /// A list written element by element.
    pub(super) fn elements<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let mut list = NewList::new(self.limits);
        for _ in 0..read_len(input)? {
            list.push(encoded(string::read(input, &mut self.rooms.text)?));
        }
        Ok(list.finish())
    }

    /// A list as a ziplist. It does not become a packed list, as in Redis.
    pub(super) fn list_ziplist<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
    ) -> Result<NewValue<'_>, Error> {
        let mut list = NewList::new(self.limits);
        let bytes = read_bytes(input, &mut self.rooms.text)?;
        ziplist::read(bytes, |element| list.push(encoded(element)))?;
        match list.is_empty() {
            true => Err(Error::EmptyValue),
            false => Ok(list.unpacked()),
        }
    }

    /// A list as ziplists, or as listpacks and single elements.
    pub(super) fn quicklist<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        second: bool,
    ) -> Result<NewValue<'_>, Error> {
        let nodes = read_len(input)?;
        let Rooms { text, entries, value, .. } = &mut self.rooms;
        let mut list = NewList::new(self.limits);
        for _ in 0..nodes {
            match read_node(input, second, text, entries)? {
                ListNode::Alone(element) => list.push_as_chunk(encoded(element)),
                ListNode::Packed(node) if nodes == 1 && NewList::packs(node, self.limits) => {
                    return Ok(NewValue::packed_list(node, value));
                }
                ListNode::Packed(node) => list.push_chunk(node),
            }
        }
        // Old servers wrote empty nodes.
        match list.is_empty() {
            true => Err(Error::EmptyValue),
            false => Ok(list.finish()),
        }
    }
}

/// A part of a list.
enum ListNode<'a> {
    Packed(Packed<'a>),
    Alone(Entry<'a>),
}

/// Reads a part of a list: a ziplist, or in the second version a listpack or a single element.
fn read_node<'a, S: ByteSource>(
    input: &'a mut ByteInput<S>,
    second: bool,
    text: &'a mut Vec<u8>,
    entries: &'a mut Vec<u8>,
) -> Result<ListNode<'a>, Error> {
    if !second {
        let node = listpack::of_ziplist(read_bytes(input, text)?, entries)?;
        return Ok(ListNode::Packed(node));
    }
    match length::read(input)? {
        PACKED_NODE => listpack::open(read_bytes(input, text)?, entries).map(ListNode::Packed),
        PLAIN_NODE => match string::read(input, text)? {
            Entry::Bytes([]) => Err(Error::Corrupt("a node of a list")),
            element => Ok(ListNode::Alone(element)),
        },
        _ => Err(Error::Corrupt("the form of a node of a list")),
    }
}
