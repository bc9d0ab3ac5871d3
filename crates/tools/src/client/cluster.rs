//! The nodes of a cluster with their slots, from CLUSTER SLOTS, and the slot of a key.
//!
//! Every connection under load belongs to one node and sends only requests for its slots, so none
//! is redirected. If the cluster moves a slot meanwhile, the reply is MOVED, an error like any
//! other. Format: the pages of CLUSTER SLOTS and of the cluster specification in the Redis
//! documentation.

use super::address::ServerAddress;
use super::reply::{ReplyReader, ServerReply};
use super::session::{ServerEndpoint, ServerSession};
use crate::Error;

/// The number of slots of a cluster.
const SLOTS: usize = 16_384;

/// Bits in a word of a set of slots.
const WORD_BITS: usize = 64;

/// The polynomial of CRC16-CCITT (XMODEM).
const POLYNOMIAL: u16 = 0x1021;

const CRC16: [u16; 256] = crc16_table();

/// A set of slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotSet(Vec<u64>);

impl SlotSet {
    fn none() -> SlotSet {
        SlotSet(vec![0; SLOTS / WORD_BITS])
    }

    fn insert(&mut self, slot: usize) {
        self.0[slot / WORD_BITS] |= 1 << (slot % WORD_BITS);
    }

    fn contains(&self, slot: usize) -> bool {
        self.0[slot / WORD_BITS] & 1 << (slot % WORD_BITS) != 0
    }

    /// Whether the slot of a key is one of them.
    #[inline]
    pub fn own(&self, key: &[u8]) -> bool {
        self.contains(slot(key))
    }
}

/// A server, and its slots if it is a node of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterNode {
    /// How to reach it.
    pub endpoint: ServerEndpoint,
    /// The slots that it owns; `None` without a cluster.
    pub slots: Option<SlotSet>,
}

impl ClusterNode {
    /// A server without a cluster.
    pub fn single(endpoint: &ServerEndpoint) -> ClusterNode {
        ClusterNode { endpoint: endpoint.clone(), slots: None }
    }
}

/// Asks a node for all nodes that own slots.
///
/// # Errors
/// The node refuses, or a slot has no owner.
pub fn discover(endpoint: &ServerEndpoint) -> Result<Vec<ClusterNode>, Error> {
    let mut session = ServerSession::open(endpoint)?;
    let raw = session.ask("CLUSTER SLOTS", &["CLUSTER", "SLOTS"])?;
    let mut parser = ReplyReader::default();
    parser.push(raw);
    let reply = parser.reply().map_err(|error| Error::Protocol(error.to_string()))?;
    let nodes = reply.as_ref().and_then(|reply| nodes(reply, endpoint));
    let nodes = nodes.ok_or_else(|| Error::Protocol("CLUSTER SLOTS has another form".into()))?;
    let owned =
        |slot| nodes.iter().any(|node| node.slots.as_ref().is_some_and(|s| s.contains(slot)));
    match (0..SLOTS).find(|slot| !owned(*slot)) {
        None => Ok(nodes),
        Some(slot) => Err(Error::Usage(format!("no node of the cluster owns slot {slot}"))),
    }
}

/// The nodes of a reply to CLUSTER SLOTS, in the order of their first slot.
fn nodes(reply: &ServerReply, seed: &ServerEndpoint) -> Option<Vec<ClusterNode>> {
    let mut nodes: Vec<ClusterNode> = Vec::new();
    for range in reply.items()? {
        let [ServerReply::Int(first), ServerReply::Int(last), owner, ..] = range.items()? else {
            return None;
        };
        let [host, ServerReply::Int(port), ..] = owner.items()? else { return None };
        let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
        let port = u16::try_from(*port).ok()?;
        // A node that does not know its own address has that of the connection.
        let host = match (host.text().filter(|host| !host.is_empty()), &seed.address) {
            (Some(host), _) => String::from_utf8_lossy(host).into_owned(),
            (None, ServerAddress::Tcp { host, .. }) => host.clone(),
            (None, ServerAddress::Unix(_)) => "127.0.0.1".into(),
        };
        let address = ServerAddress::Tcp { host, port };
        let at = nodes.iter().position(|node| node.endpoint.address == address);
        let at = at.unwrap_or_else(|| {
            let endpoint = ServerEndpoint { address, ..seed.clone() };
            nodes.push(ClusterNode { endpoint, slots: Some(SlotSet::none()) });
            nodes.len() - 1
        });
        let slots = nodes[at].slots.get_or_insert_with(SlotSet::none);
        (first..=last).take_while(|slot| *slot < SLOTS).for_each(|slot| slots.insert(slot));
    }
    Some(nodes)
}

/// The slot of a key: of the text between the first `{` and the next `}`, unless it is empty.
pub fn slot(key: &[u8]) -> usize {
    let tag = memchr::memchr(b'{', key).and_then(|open| {
        let rest = &key[open + 1..];
        memchr::memchr(b'}', rest).filter(|len| *len > 0).map(|len| &rest[..len])
    });
    let crc = tag
        .unwrap_or(key)
        .iter()
        .fold(0u16, |crc, byte| crc << 8 ^ CRC16[usize::from(crc >> 8 ^ u16::from(*byte))]);
    usize::from(crc) % SLOTS
}

const fn crc16_table() -> [u16; 256] {
    let (mut table, mut index) = ([0; 256], 0);
    while index < 256 {
        let (mut crc, mut bit) = ((index as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // The check value of CRC16-XMODEM is 0x31C3.
        let cases: [(&str, usize); 6] = [
            ("123456789", 0x31C3),
            ("", 0),
            ("{user1000}.following", slot(b"user1000")),
            ("foo{{bar}}zap", slot(b"{bar")),
            ("foo{bar}{zap}", slot(b"bar")),
            ("foo{", slot_of_whole(b"foo{")),
        ];
        cases
            .iter()
            .for_each(|(key, expected)| assert_eq!(slot(key.as_bytes()), *expected, "{key}"));
        assert_eq!(slot(b"foo{}{bar}"), slot_of_whole(b"foo{}{bar}"));
    }

    /// Bit by bit, as in the specification.
    fn slot_of_whole(key: &[u8]) -> usize {
        let mut crc = 0u16;
        for byte in key {
            crc ^= u16::from(*byte) << 8;
            for _ in 0..8 {
                crc = if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
            }
        }
        usize::from(crc) % SLOTS
    }

    #[test]
    fn nodes_have_the_slots_of_the_reply() {
        let text = b"*3\r\n*3\r\n:0\r\n:99\r\n*3\r\n$0\r\n\r\n:7001\r\n$1\r\na\r\n\
            *4\r\n:100\r\n:16000\r\n*3\r\n$8\r\n10.0.0.2\r\n:7002\r\n$1\r\nb\r\n\
            *3\r\n$8\r\n10.0.0.9\r\n:7009\r\n$1\r\nr\r\n\
            *3\r\n:16001\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$1\r\na\r\n";
        let mut parser = ReplyReader::default();
        parser.push(text);
        let nodes = nodes(&parser.reply().unwrap().unwrap(), &ServerEndpoint::local(7001)).unwrap();
        let addresses: Vec<String> = nodes.iter().map(|n| n.endpoint.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:7001", "10.0.0.2:7002"]);
        let owner = |slot| {
            nodes.iter().position(|node| node.slots.as_ref().unwrap().contains(slot)).unwrap()
        };
        assert_eq!([0, 99, 100, 16000, 16001, 16383].map(owner), [0, 0, 1, 1, 0, 0]);
    }
}
