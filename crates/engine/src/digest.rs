//! Digests of values and of all data, as DEBUG shows them to compare servers. They equal those of
//! Redis.
//!
//! A digest is 20 bytes, initially zero. Data are either *joined*, by exclusive or with their
//! SHA-1, so that order does not matter, or *chained*, by hashing the digest again afterwards, so
//! that it does. The encoding of a value does not matter.

use base::number::DoubleText;
use ds::stream::Id;
use sha1::{Digest as _, Sha1};
use store::{
    Digits, Entry, HashValue, ListValue, SetValue, SortedSetValue, Stored, StreamValue, StringValue,
};

/// The digest of some data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetDigest([u8; DatasetDigest::BYTES]);

impl DatasetDigest {
    /// Its length.
    pub const BYTES: usize = 20;

    /// Its bytes. They are all zeros for no data.
    pub fn bytes(self) -> [u8; Self::BYTES] {
        self.0
    }

    /// The digest with these bytes, or `None` if they are all zeros or of another length.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.try_into().ok()?;
        Some(Self(bytes)).filter(|digest| *digest != Self::default())
    }

    /// Adds data whose order does not matter.
    pub fn join(&mut self, data: &[u8]) {
        let hash = Sha1::digest(data);
        self.0.iter_mut().zip(hash).for_each(|(own, other)| *own ^= other);
    }

    /// Adds data in order, after all data added before.
    pub fn chain(&mut self, data: &[u8]) {
        self.join(data);
        self.0 = Sha1::digest(self.0).into();
    }

    /// Adds another digest, in no order.
    pub fn join_digest(&mut self, other: Self) {
        self.join(&other.0);
    }

    /// Adds the data joined to another digest, to which nothing was chained.
    pub fn merge(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own ^= other);
    }

    /// Adds a value, without its key.
    pub fn chain_value(&mut self, stored: Stored<'_>) {
        let type_number: u32 = match stored.kind().type_name() {
            "string" => 0,
            "list" => 1,
            "set" => 2,
            "zset" => 3,
            "hash" => 4,
            _ => 6,
        };
        self.chain(&type_number.to_be_bytes());
        if let Some(text) = stored.view::<StringValue>() {
            self.chain(text.bytes(&mut Default::default()));
        } else if let Some(list) = stored.view::<ListValue>() {
            list.iter_from(0).for_each(|element| self.chain_entry(element));
        } else if let Some(set) = stored.view::<SetValue>() {
            set.iter().for_each(|member| self.join(member.text(&mut Digits::default())));
        } else if let Some(set) = stored.view::<SortedSetValue>() {
            for pair in set.walk(0..set.len(), false) {
                let mut own = Self::default();
                own.chain_entry(pair.member);
                own.chain(DoubleText::shortest(pair.score()).as_bytes());
                self.join_digest(own);
            }
        } else if let Some(hash) = stored.view::<HashValue>() {
            for (field, value) in hash.iter() {
                let mut own = Self::default();
                own.chain_entry(field);
                own.chain_entry(value.entry);
                if value.expires_at.is_some() {
                    own.join(b"!!hexpire!!");
                }
                self.join_digest(own);
            }
        } else if let Some(stream) = stored.view::<StreamValue>() {
            for entry in stream.log.range(Id::MIN, Id::MAX) {
                self.chain(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (field, value) in entry.pairs() {
                    self.chain_entry(field);
                    self.chain_entry(value);
                }
            }
        }
        if stored.expires_at().is_some() {
            self.join(b"!!expire!!");
        }
    }

    fn chain_entry(&mut self, entry: Entry<'_>) {
        self.chain(entry.text(&mut Digits::default()));
    }

    /// Forty hexadecimal digits.
    pub fn text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
