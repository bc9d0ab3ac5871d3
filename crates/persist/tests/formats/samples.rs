//! Builds values of every form as commands build them, and describes their content.

use base::hash::KeyHasher;
use base::random::Random;
use ds::packed::Digits;
use ds::stream::{ChunkLimits, ConsumerGroup, Id, Pending};
use persist::rdb::encode::value_type;
use persist::rdb::{ValueDecoder, ValueEncoder, ValueType};
use persist::{ByteInput, Error};
use store::FieldExpiry;
use store::NewString;
use store::{
    Db, EncodingLimits, Entry, ExpiryChange, HashValue, Key, ListValue, Lookup, SetValue, Side,
    SortedSetValue, Stored, StreamValue, StringValue, Turn,
};

/// One shard's part of a database.
pub struct Keyspace {
    pub db: Db,
    pub turn: Turn,
    pub limits: EncodingLimits,
    pub random: Random,
    next_key: u32,
}

/// A value in the form of a file: its type and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub value_type: ValueType,
    pub bytes: Vec<u8>,
}

impl Keyspace {
    /// A keyspace with low limits, so that small values have all forms.
    pub fn new(seed: u64) -> Self {
        let limits = EncodingLimits {
            hash_max_listpack_entries: 8,
            hash_max_listpack_value: 30,
            list_max_listpack_size: if seed.is_multiple_of(2) { 6 } else { -1 },
            set_max_intset_entries: 8,
            set_max_listpack_entries: 12,
            set_max_listpack_value: 30,
            stream_node_max_entries: 4,
            zset_max_listpack_entries: 8,
            zset_max_listpack_value: 30,
            ..EncodingLimits::default()
        };
        let turn = Turn::alone(KeyHasher::new(seed));
        Self { db: Db::default(), turn, limits, random: Random::new(seed), next_key: 0 }
    }

    fn key(&mut self) -> Vec<u8> {
        self.next_key += 1;
        self.next_key.to_string().into_bytes()
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// A random text: an integer, a word, a run that compresses, or random bytes. Some are long.
    fn text(&mut self) -> Vec<u8> {
        let len = match self.below(30) {
            0 => self.below(6000),
            1 => self.below(200),
            _ => self.below(12),
        };
        match self.below(4) {
            0 => {
                let shift = self.below(64);
                ((self.random.next_u64() as i64) >> shift).to_string().into_bytes()
            }
            1 => (0..len).map(|_| b'a' + self.below(3) as u8).collect(),
            2 => vec![b'r'; len as usize],
            _ => (0..len).map(|_| self.random.next_u64() as u8).collect(),
        }
    }

    fn texts(&mut self, max: u64) -> Vec<Vec<u8>> {
        (0..1 + self.below(max)).map(|_| self.text()).collect()
    }

    /// Adds a value under a new key. `kind` is a number below 6.
    pub fn add(&mut self, kind: u64) -> Vec<u8> {
        let name = self.key();
        let key = self.turn.key(&name);
        let max = [4, 12, 60][self.below(3) as usize];
        match kind {
            0 => self.add_string(key),
            1 => self.add_list(key, max),
            2 => self.add_set(key, max),
            3 => self.add_sorted_set(key, max),
            4 => self.add_hash(key, max),
            _ => self.add_stream(key, max),
        }
        name
    }

    fn add_string(&mut self, key: Key<'_>) {
        let mut text = self.text();
        if self.below(5) == 0 {
            text = text.repeat(1 + 20_000 / (text.len() + 1));
        }
        let text = NewString::encode(&text, None);
        self.db.put(&mut self.turn, key, text, ExpiryChange::Clear);
    }

    fn add_list(&mut self, key: Key<'_>, max: u64) {
        let texts = self.texts(max);
        let mut edit = self.db.edit_or_create::<ListValue>(&mut self.turn, key).unwrap();
        for (at, text) in texts.iter().enumerate() {
            let side = if at % 3 == 0 { Side::Left } else { Side::Right };
            edit.push(side, std::iter::once(&text[..]), &self.limits);
        }
    }

    fn add_set(&mut self, key: Key<'_>, max: u64) {
        let mut texts = self.texts(max);
        if self.below(2) == 0 {
            texts.retain(|text| base::number::parse_i64(text).is_some());
            texts.push(b"7".to_vec());
        }
        let mut edit = self.db.edit_or_create::<SetValue>(&mut self.turn, key).unwrap();
        edit.add(texts.iter().map(Vec::as_slice), &self.limits);
    }

    fn add_sorted_set(&mut self, key: Key<'_>, max: u64) {
        let texts = self.texts(max);
        let scores: Vec<f64> = texts
            .iter()
            .map(|_| match self.below(8) {
                0 => f64::INFINITY,
                1 => f64::NEG_INFINITY,
                2 => 0.1 * self.below(100) as f64,
                3 => f64::from_bits(self.random.next_u64()),
                _ => self.below(9) as f64 - 4.0,
            })
            .map(|score| if score.is_nan() { 1e300 } else { score })
            .collect();
        let mut edit = self.db.edit_or_create::<SortedSetValue>(&mut self.turn, key).unwrap();
        for (member, score) in texts.iter().zip(scores) {
            edit.add(member, score, &self.limits);
        }
    }

    fn add_hash(&mut self, key: Key<'_>, max: u64) {
        let (fields, values) = (self.texts(max), self.texts(max));
        let expires = self.below(2) == 0;
        let times: Vec<u64> = fields.iter().map(|_| self.below(4)).collect();
        let mut edit = self.db.edit_or_create::<HashValue>(&mut self.turn, key).unwrap();
        for ((field, value), time) in fields.iter().zip(values.iter().cycle()).zip(times) {
            let lengths = [field.len(), value.len()].into_iter();
            edit.fit(&self.limits, edit.hash().len() + 1, lengths);
            edit.set(field, value, FieldExpiry::Clear, &self.limits);
            if expires && time > 0 {
                edit.set_expiry(field, Some(1_700_000_000_000 + time as i64 * 1000));
            }
        }
    }

    /// Removes the expiries of all fields, if the value is a hash.
    pub fn persist_fields(&mut self, name: &[u8]) {
        let key = self.turn.key(name);
        let fields: Vec<Vec<u8>> = self.look(name, |stored| {
            let fields = stored.view::<HashValue>().into_iter().flatten();
            fields.map(|(field, _)| field.text(&mut Digits::default()).to_vec()).collect()
        });
        if !fields.is_empty() {
            let mut edit = self.db.edit_or_create::<HashValue>(&mut self.turn, key).unwrap();
            fields.iter().for_each(|field| edit.set_expiry(field, None));
        }
    }

    fn add_stream(&mut self, key: Key<'_>, max: u64) {
        let entries: Vec<_> = (0..self.below(max)).map(|_| self.texts(4)).collect();
        let steps: Vec<_> = entries.iter().map(|_| (self.below(3), self.below(3) + 1)).collect();
        let (deleted, groups) = (self.below(3), self.below(3));
        let limits =
            ChunkLimits { bytes_max: 4096, entries_max: self.limits.stream_node_max_entries };
        let mut edit = self.db.edit_or_create::<StreamValue>(&mut self.turn, key).unwrap();
        let stream = edit.stream_mut();
        let mut ids = Vec::new();
        for (texts, (ms, seq)) in entries.iter().zip(steps) {
            let last = stream.log.last_id;
            let seq = if ms == 0 { last.seq + seq } else { seq };
            let id = Id::new(last.ms + ms, seq);
            let same = |at: usize| match at % 2 {
                0 if texts.len() % 3 > 0 => &b"field"[..],
                _ => &texts[at / 2],
            };
            stream.log.append(id, texts.len(), same, limits);
            ids.push(id);
        }
        for id in ids.iter().skip(1).step_by(3).take(deleted as usize * 3) {
            stream.log.delete(*id);
        }
        for number in 0..groups {
            let mut group = ConsumerGroup::new(stream.log.last_id, number as i64 - 1);
            for (at, id) in ids.iter().enumerate() {
                let name = format!("consumer-{}", at % 3);
                let (consumer, _) = group.find_or_add(name.as_bytes(), at as i64);
                let (delivered_ms, deliveries) = (at as i64 * 1000, at as i64 + 1);
                group.deliver(*id, Pending { consumer, delivered_ms, deliveries });
                group.consumer_mut(consumer).active_ms = at as i64 - 1;
            }
            stream.groups.add(format!("group-{number}").as_bytes(), group);
        }
    }

    /// Writes the value under a key.
    pub fn write(&mut self, name: &[u8], encoder: &mut ValueEncoder) -> Written {
        let key = self.turn.key(name);
        let stored = self.db.lookup(&mut self.turn, key, Lookup::Quiet).unwrap();
        let mut bytes = Vec::new();
        encoder.value(stored, &mut bytes).unwrap();
        Written { value_type: value_type(stored), bytes }
    }

    /// Reads a value, and stores it under a new key.
    pub fn read(&mut self, written: &Written) -> Result<Vec<u8>, Error> {
        let name = self.key();
        let hasher = self.turn.hasher;
        let mut decoder = ValueDecoder::new(&self.limits, hasher);
        let mut input = ByteInput::new(&written.bytes[..]);
        let record = decoder.value(written.value_type, &mut input)?.record(&name, None, 0);
        let key = self.turn.key(&name);
        self.db.insert(&mut self.turn, key, record);
        Ok(name)
    }

    /// Writes a value and reads it back, checks that it is the same, and removes both.
    #[track_caller]
    pub fn check_round_trip(
        &mut self,
        name: &[u8],
        encoder: &mut ValueEncoder,
        context: &dyn std::fmt::Debug,
    ) {
        let written = self.write(name, encoder);
        let again = self.read(&written).unwrap_or_else(|error| panic!("{error}: {context:?}"));
        let (old, new) = (self.look(name, contents), self.look(&again, contents));
        assert_eq!(old, new, "{context:?}");
        for name in [name, &again] {
            let key = self.turn.key(name);
            assert!(self.db.remove(&mut self.turn, key));
        }
    }

    /// Calls `look` with the value under a key, also if the key has expired.
    pub fn look<R>(&mut self, name: &[u8], look: impl FnOnce(Stored<'_>) -> R) -> R {
        let key = self.turn.key(name);
        look(self.db.lookup_even_expired(key).unwrap())
    }
}

/// The content of a value, which does not depend on its encoding.
pub fn contents(stored: Stored<'_>) -> Vec<String> {
    let text = |entry: Entry<'_>| {
        String::from_utf8_lossy(entry.text(&mut Digits::default())).into_owned()
            + &format!(" {}", entry.len())
    };
    let mut all = Vec::new();
    if let Some(string) = stored.view::<StringValue>() {
        all.push(text(Entry::Bytes(string.bytes(&mut Default::default()))));
    } else if let Some(list) = stored.view::<ListValue>() {
        return list.iter_from(0).map(text).collect();
    } else if let Some(set) = stored.view::<SetValue>() {
        all.extend(set.iter().map(text));
    } else if let Some(set) = stored.view::<SortedSetValue>() {
        let pairs = set.walk(0..set.len(), false);
        return pairs.map(|pair| format!("{} {}", text(pair.member), pair.score())).collect();
    } else if let Some(hash) = stored.view::<HashValue>() {
        for (field, value) in hash {
            all.push(format!("{} {} {:?}", text(field), text(value.entry), value.expires_at));
        }
    } else if let Some(stream) = stored.view::<StreamValue>() {
        return stream_contents(stream);
    }
    all.sort();
    all
}

fn stream_contents(stream: &ds::Stream) -> Vec<String> {
    let log = &stream.log;
    let mut all = vec![
        format!("{} entries of {}", log.len(), log.entries_added),
        format!("last {:?} deleted {:?}", log.last_id, log.max_deleted_id),
    ];
    for entry in log.range(Id::MIN, Id::MAX) {
        all.push(format!("{:?} {:?}", entry.id, entry.pairs().collect::<Vec<_>>()));
    }
    for chunk in log.chunk_refs() {
        all.push(format!("chunk {:?} {} {}", chunk.base(), chunk.live(), chunk.deleted()));
    }
    for (name, group) in stream.groups.iter() {
        all.push(format!("group {name:?} {:?} {}", group.last_id, group.entries_read));
        for consumer in group.consumers() {
            let (seen, active) = (consumer.seen_ms, consumer.active_ms);
            let ids: Vec<Id> = consumer.pending_ids(Id::MIN..=Id::MAX).collect();
            all.push(format!("consumer {:?} {seen} {active} {ids:?}", consumer.name()));
        }
        for (id, pending) in group.pending_range(Id::MIN..=Id::MAX) {
            let name = group.consumer(pending.consumer).name();
            let (at, times) = (pending.delivered_ms, pending.deliveries);
            all.push(format!("pending {id:?} {name:?} {at} {times}"));
        }
    }
    all
}
