//! Compares strings with a plain vector, in every form and across every change of form.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::{Db, ExpiryChange, Key, Lookup, Turn};
use base::hash::KeyHasher;
use proptest::prelude::*;
use std::mem;

const KEY: &[u8] = b"key";

/// A database with one string under [`KEY`], and the vector it must equal.
struct StringPair {
    db: Db,
    turn: Turn,
    model: Vec<u8>,
    encoding: &'static str,
    /// Shared strings of replies that are being sent, with their bytes when they were shared.
    sent: Vec<(Arc<Vec<u8>>, Vec<u8>)>,
}

impl StringPair {
    fn new(bytes: &[u8], expires_at: ExpiryChange) -> Self {
        let turn = Turn::alone(KeyHasher::new(1));
        let (db, model, sent) = (Db::default(), Vec::new(), Vec::new());
        let mut pair = Self { db, turn, model, encoding: "", sent };
        pair.put(bytes, expires_at);
        pair
    }

    fn key(&self) -> Key<'static> {
        self.turn.key(KEY)
    }

    fn put(&mut self, bytes: &[u8], expires_at: ExpiryChange) {
        let key = self.key();
        self.db.put(&mut self.turn, key, NewString::encode(bytes, None), expires_at);
        self.model = bytes.to_vec();
        let text = std::str::from_utf8(bytes).unwrap_or("x");
        let canonical = text.parse::<i64>().is_ok_and(|value| value.to_string() == text);
        self.encoding = match bytes.len() {
            _ if canonical => "int",
            ..=44 => "embstr",
            _ => "raw",
        };
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        let key = self.key();
        let mut edit = self.db.edit::<StringValue>(&mut self.turn, key).unwrap().unwrap();
        let len = edit.write_at(offset, bytes);
        drop(edit);
        let end = offset + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[offset..end].copy_from_slice(bytes);
        self.encoding = "raw";
        assert_eq!(len, self.model.len());
    }

    fn with_bytes(&mut self, len: usize, at: usize) {
        let key = self.key();
        let mut edit = self.db.edit::<StringValue>(&mut self.turn, key).unwrap().unwrap();
        let old = edit.with_bytes(len, |bytes| bytes.get_mut(at).map(|byte| mem::replace(byte, 9)));
        drop(edit);
        self.model.resize(self.model.len().max(len), 0);
        assert_eq!(old, self.model.get_mut(at).map(|byte| mem::replace(byte, 9)));
        self.encoding = "raw";
    }

    fn splice(&mut self, start: usize, len: usize, bytes: &[u8]) {
        let start = start.min(self.model.len());
        let end = (start + len).min(self.model.len());
        let key = self.key();
        self.db
            .edit::<StringValue>(&mut self.turn, key)
            .unwrap()
            .unwrap()
            .splice(start..end, bytes);
        self.model.splice(start..end, bytes.iter().copied());
        self.encoding = "raw";
    }

    fn make_raw(&mut self) {
        let (key, changes) = (self.key(), self.turn.counters.changes);
        self.db.edit::<StringValue>(&mut self.turn, key).unwrap().unwrap().make_raw();
        assert_eq!(self.turn.counters.changes, changes);
        self.encoding = "raw";
    }

    fn set_integer(&mut self, value: i64) {
        let key = self.key();
        self.db.edit::<StringValue>(&mut self.turn, key).unwrap().unwrap().set_integer(value);
        self.model = value.to_string().into_bytes();
        self.encoding = "int";
    }

    /// Keeps a long string as a reply would until it is sent.
    fn send(&mut self) {
        let key = self.key();
        if let Some(StringRef::Shared(text)) =
            self.db.read::<StringValue>(&mut self.turn, key).unwrap()
        {
            self.sent.push((Arc::clone(text), self.model.clone()));
        }
    }

    /// Drops the replies that were being sent.
    fn sent(&mut self) {
        self.sent.clear();
    }

    fn check(&mut self) {
        let key = self.key();
        let text = self.db.read::<StringValue>(&mut self.turn, key).unwrap().unwrap();
        assert_eq!(text.len(), self.model.len());
        assert_eq!(text.bytes(&mut StringDigits::default()), self.model);
        assert_eq!(matches!(text, StringRef::Shared(_)), self.model.len() > INLINE_BYTES_MAX);
        let integer = std::str::from_utf8(&self.model).ok().and_then(|text| {
            let value = text.parse::<i64>().ok()?;
            (value.to_string() == text).then_some(value)
        });
        assert_eq!(text.integer(), integer);
        let stored = self.db.lookup(&mut self.turn, key, Lookup::Quiet).unwrap();
        assert_eq!((stored.key(), stored.encoding()), (KEY, self.encoding));
        for (shared, then) in &self.sent {
            assert!(**shared == *then, "what a reply shares has changed");
        }
    }

    /// The address of the record's bytes.
    fn address(&mut self) -> *const u8 {
        let key = self.key();
        let edit = self.db.edit::<StringValue>(&mut self.turn, key).unwrap().unwrap();
        edit.record().bytes().unwrap().as_ptr()
    }
}

#[derive(Clone, Debug)]
enum StringStep {
    Put(Vec<u8>, ExpiryChange),
    Append(Vec<u8>),
    WriteAt(usize, Vec<u8>),
    WithBytes(usize, usize),
    Splice(usize, usize, Vec<u8>),
    MakeRaw,
    SetInteger(i64),
    Send,
    Sent,
}

/// Lengths near a change of form, and ordinary ones.
fn length() -> impl Strategy<Value = usize> {
    let edge = INLINE_BYTES_MAX;
    prop_oneof![3 => 0..80usize, 1 => 40..48usize, 1 => edge - 3..edge + 4, 1 => 0..3 * edge]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => (length(), any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        1 => (-1000..1000i64).prop_map(|value| value.to_string().into_bytes()),
    ]
}

fn step() -> impl Strategy<Value = StringStep> {
    let expires_at =
        prop_oneof![Just(ExpiryChange::Clear), Just(ExpiryChange::Keep), Just(ExpiryChange::At(9))];
    prop_oneof![
        2 => (bytes(), expires_at).prop_map(|(bytes, at)| StringStep::Put(bytes, at)),
        3 => bytes().prop_map(StringStep::Append),
        3 => (length(), bytes()).prop_map(|(offset, bytes)| StringStep::WriteAt(offset, bytes)),
        2 => (length(), length()).prop_map(|(len, at)| StringStep::WithBytes(len, at)),
        2 => (length(), length(), bytes()).prop_map(|(at, n, by)| StringStep::Splice(at, n, by)),
        1 => Just(StringStep::MakeRaw),
        2 => any::<i64>().prop_map(StringStep::SetInteger),
        2 => Just(StringStep::Send),
        1 => Just(StringStep::Sent),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn equals_a_vector(
        first in bytes(),
        steps in proptest::collection::vec(step(), 1..25),
    ) {
        let mut pair = StringPair::new(&first, ExpiryChange::Clear);
        let mut expires_at = None;
        for step in steps {
            match step {
                StringStep::Put(bytes, change) => {
                    pair.put(&bytes, change);
                    expires_at = match change {
                        ExpiryChange::Clear => None,
                        ExpiryChange::Keep => expires_at,
                        ExpiryChange::At(at) => Some(at),
                    };
                }
                StringStep::Append(bytes) => pair.write_at(pair.model.len(), &bytes),
                StringStep::WriteAt(offset, bytes) => pair.write_at(offset, &bytes),
                StringStep::WithBytes(len, at) => pair.with_bytes(len, at),
                StringStep::Splice(at, len, bytes) => pair.splice(at, len, &bytes),
                StringStep::MakeRaw => pair.make_raw(),
                StringStep::SetInteger(value) => pair.set_integer(value),
                StringStep::Send => pair.send(),
                StringStep::Sent => pair.sent(),
            }
            pair.check();
            let key = pair.key();
            let stored = pair.db.lookup(&mut pair.turn, key, Lookup::Quiet).unwrap();
            prop_assert_eq!(stored.expires_at(), expires_at);
            prop_assert_eq!(pair.db.expiring_len(), usize::from(expires_at.is_some()));
        }
    }
}

#[test]
fn crosses_the_limit_of_the_record_in_both_directions() {
    for expires_at in [ExpiryChange::Clear, ExpiryChange::At(7)] {
        let mut pair = StringPair::new(b"-17", expires_at);
        for (offset, bytes) in [
            (3, &b"x"[..]),
            (INLINE_BYTES_MAX - 1, b"y"),
            (INLINE_BYTES_MAX, b"z"),
            (0, b"w"),
            (INLINE_BYTES_MAX - 1, b"abc"),
        ] {
            pair.write_at(offset, bytes);
            pair.check();
        }
        pair.send();
        pair.set_integer(i64::MIN);
        pair.check();
        pair.write_at(20, &[1; INLINE_BYTES_MAX]);
        pair.check();
        pair.put(b"short", ExpiryChange::Keep);
        pair.check();
    }
}

#[test]
fn an_integer_is_changed_in_place() {
    let mut pair = StringPair::new(b"0", ExpiryChange::Clear);
    let address = pair.address();
    for value in [1, -1, i64::MAX, i64::MIN] {
        pair.set_integer(value);
        pair.check();
        assert_eq!(pair.address(), address);
    }
    assert!(pair.turn.lazy_free.is_empty());
}

#[test]
fn growing_byte_by_byte_takes_new_room_rarely() {
    let mut pair = StringPair::new(b"", ExpiryChange::Clear);
    let (mut takes, mut last) = (0, 0);
    for _ in 0..400_000 {
        pair.write_at(pair.model.len(), b"x");
        // Compares the room and not the address: allocators grow many blocks in place.
        let key = pair.key();
        let room = pair.db.lookup(&mut pair.turn, key, Lookup::Quiet).unwrap().memory_bytes();
        takes += usize::from(room != last);
        last = room;
    }
    pair.check();
    assert!(takes < 80, "took new room {takes} times");
}

#[test]
fn room_grows_by_doubling_and_then_by_an_eighth() {
    let mib = DOUBLING_BYTES_MAX;
    assert_eq!(grown(20_000), 40_000);
    assert_eq!(grown(mib), 2 * mib);
    assert_eq!(grown(2 * mib), 3 * mib);
    assert_eq!(grown(64 * mib), 72 * mib);
    assert_eq!(grown(usize::MAX), usize::MAX);
}

#[test]
fn a_value_made_by_a_change_is_raw_and_a_long_one_is_moved() {
    let mut made = b"12".to_vec();
    assert!(matches!(NewString::edited(&mut made), NewString::Edited(b"12")));
    let mut made = vec![1; INLINE_BYTES_MAX + 1];
    let address = made.as_ptr();
    let NewString::Shared(text) = NewString::edited(&mut made) else { panic!("a long string") };
    assert_eq!(text.as_ptr(), address);
}

#[test]
fn an_existing_buffer_is_kept_and_not_copied() {
    let own = Arc::new(vec![b'1'; INLINE_BYTES_MAX + 1]);
    let NewString::Shared(text) = NewString::encode(&own, Some(&own)) else {
        panic!("a long string")
    };
    assert!(Arc::ptr_eq(&text, &own));
    let short = Arc::new(b"12".to_vec());
    assert!(matches!(NewString::encode(&short, Some(&short)), NewString::Integer(12)));
}
