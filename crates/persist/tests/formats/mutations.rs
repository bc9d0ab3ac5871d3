//! Random damage to values: reading them ends in an error or in a sound value, never in a panic,
//! and takes memory only for bytes that exist. A failure names its seed.

use base::random::Random;
use persist::rdb::{ValueEncoder, ValueType};

use crate::samples::{Keyspace, Written};

/// Damages bytes in one to four places.
pub fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                // A part of another value.
                let from = random.below(other.len() as u64 + 1) as usize;
                let len = (random.below(20) as usize).min(other.len() - from);
                bytes.splice(at..at, other[from..from + len].iter().copied());
            }
            4 => {
                // A large number, or a small negative one.
                let value = [u64::MAX, 1 << 31, 1 << 63, u64::MAX - 1][random.below(4) as usize];
                let len = bytes.len().min(at + 8) - at.min(bytes.len());
                bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
            }
            _ if at < bytes.len() => {
                let bit = 1 << random.below(8);
                bytes[at] =
                    if random.below(2) == 0 { bytes[at] ^ bit } else { random.next_u64() as u8 };
            }
            _ => {}
        }
    }
}

/// Values in every form that this server writes, and in old forms.
fn corpus(keyspace: &mut Keyspace, encoder: &mut ValueEncoder) -> Vec<Written> {
    let mut all: Vec<Written> = (0..120)
        .map(|round| {
            let name = keyspace.add(round % 6);
            keyspace.write(&name, encoder)
        })
        .collect();
    let old: [(ValueType, &[u8]); 8] = [
        (ValueType::List, b"\x03\x01a\xc0\x05\x01b"),
        (ValueType::SortedSet, b"\x02\x01a\x031.5\x01b\xfe"),
        (ValueType::HashZipmap, b"\x11\x02\x01f\x01\x00v\x02gg\x03\x02xyz??\xff"),
        (
            ValueType::ListZiplist,
            b"\x15\x15\0\0\0\x0d\0\0\0\x03\0\0\x01a\x03\xf5\x02\xc0\x07\x07\xff",
        ),
        (ValueType::HashZiplist, b"\x10\x10\0\0\0\x0d\0\0\0\x02\0\0\x01a\x03\xf5\xff"),
        (ValueType::SortedSetZiplist, b"\x10\x10\0\0\0\x0d\0\0\0\x02\0\0\x01a\x03\xf5\xff"),
        (ValueType::HashExpiringPreview, b"\x02\x00\x01a\x01x\x43\xe8\x01b\x01y"),
        (ValueType::HashExpiringValkey, b"\x01\x01a\x01x\xff\xff\xff\xff\xff\xff\xff\xff"),
    ];
    all.extend(old.map(|(value_type, bytes)| Written { value_type, bytes: bytes.to_vec() }));
    all
}

#[test]
fn damaged_values_are_refused_or_sound() {
    let (mut refused, mut sound) = (0, 0);
    for seed in 0..12 {
        let mut keyspace = Keyspace::new(seed);
        // Uncompressed, so that the damage reaches the content.
        let mut encoder = ValueEncoder::new(seed % 4 == 0);
        let corpus = corpus(&mut keyspace, &mut encoder);
        let mut random = Random::new(seed);
        for round in 0..4000 {
            let pick = |random: &mut Random| random.below(corpus.len() as u64) as usize;
            let mut damaged = corpus[pick(&mut random)].clone();
            if damaged.bytes.len() > 3000 {
                continue;
            }
            if random.below(20) == 0 {
                damaged.value_type = corpus[pick(&mut random)].value_type;
            }
            damage(&mut damaged.bytes, &corpus[pick(&mut random)].bytes, &mut random);
            let Ok(name) = keyspace.read(&damaged) else {
                refused += 1;
                continue;
            };
            sound += 1;
            keyspace.check_round_trip(&name, &mut encoder, &(seed, round));
        }
    }
    assert!(refused > 10_000 && sound > 3_000, "{refused} refused, {sound} sound");
}

#[test]
fn announced_lengths_take_no_memory() {
    // A length of 2^32 - 1, or of 3 GB for a string, and nothing after it.
    let many = b"\x80\xff\xff\xff\xff";
    let long = b"\x01\x80\xbf\xef\xff\xff";
    let compressed = b"\xc3\x80\x80\0\0\0\x80\xbf\xef\xff\xff";
    for number in 0..=25 {
        let Ok(value_type) = ValueType::of(number, 12) else { continue };
        for bytes in
            [&many[..], &long[..], &compressed[..], &b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"[..]]
        {
            if value_type == ValueType::String && bytes == long {
                // A string of one byte.
                continue;
            }
            let mut keyspace = Keyspace::new(1);
            let written = Written { value_type, bytes: bytes.to_vec() };
            assert!(keyspace.read(&written).is_err(), "{value_type:?} {bytes:?}");
        }
    }
}
