//! Random damage to each encoding of small values, within a string that is intact: listpacks,
//! intsets, ziplists, zipmaps. Accepted bytes are a value like any other. As in `decoders`, intact
//! seeds come first, and `FORMAT_FUZZ_ROUNDS` sets the number of rounds.

use persist::rdb::{ValueEncoder, ValueType};

use crate::decoders::fuzz;
use crate::old::{INTEGERS, ziplist};
use crate::samples::{Keyspace, Written};

/// A string of these bytes.
fn string(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    let head = match len {
        0..0x40 => vec![len as u8],
        0x40..0x4000 => vec![0x40 | (len >> 8) as u8, len as u8],
        _ => [&[0x80][..], &(len as u32).to_be_bytes()].concat(),
    };
    [&head, bytes].concat()
}

/// The bytes of a string.
fn content(string: &[u8]) -> &[u8] {
    match string[0] >> 6 {
        0 => &string[1..],
        1 => &string[2..],
        _ => &string[5..],
    }
}

/// Values of these types and kinds, as this server writes them.
fn written(types: &[ValueType], kinds: &[u64]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in 0..4 {
        let mut keyspace = Keyspace::new(seed);
        // Uncompressed, so that the damage reaches the content.
        let mut encoder = ValueEncoder::new(false);
        for kind in kinds.iter().cycle().take(60) {
            let name = keyspace.add(*kind);
            let value = keyspace.write(&name, &mut encoder);
            if types.contains(&value.value_type) && value.bytes.len() < 600 {
                seeds.push(content(&value.bytes).to_vec());
            }
        }
    }
    assert!(seeds.len() > 20, "{types:?}: {}", seeds.len());
    seeds
}

/// Damages encoded values, and reads each as a random one of the types.
fn check(seeds: &[Vec<u8>], types: &[ValueType]) {
    let mut keyspace = Keyspace::new(11);
    let mut encoder = ValueEncoder::new(true);
    for seed in seeds {
        let as_type = |value_type: &ValueType| {
            keyspace.read(&Written { value_type: *value_type, bytes: string(seed) }).is_ok()
        };
        assert!(types.iter().any(as_type), "{seed:?}");
    }
    fuzz(30_000, seeds, |bytes, random| {
        let value_type = types[random.below(types.len() as u64) as usize];
        let damaged = Written { value_type, bytes: string(bytes) };
        let Ok(name) = keyspace.read(&damaged) else { return false };
        keyspace.check_round_trip(&name, &mut encoder, &damaged);
        true
    });
}

#[test]
fn damaged_listpacks_are_refused_or_sound() {
    let types = [ValueType::HashListpack, ValueType::SetListpack, ValueType::SortedSetListpack];
    check(&written(&types, &[2, 3, 4]), &types);
}

#[test]
fn damaged_intsets_are_refused_or_sound() {
    let types = [ValueType::SetIntset];
    check(&written(&types, &[2]), &types);
}

#[test]
fn damaged_ziplists_are_refused_or_sound() {
    let words: [&[u8]; 3] = [b"\x03abc", b"\x05words", b"\x00"];
    let long = [&b"\x41\x00"[..], &[b'x'; 256]].concat();
    let longest = [&b"\x80\x00\x00\x01\x2c"[..], &[b'y'; 300]].concat();
    let mut seeds = vec![ziplist(&INTEGERS), ziplist(&words)];
    // Pairs of members with scores, or of fields with values.
    seeds.extend(INTEGERS.map(|integer| ziplist(&[words[0], integer, words[1], b"\xf2"])));
    seeds.push(ziplist(&[words[0], &long]));
    seeds.push(ziplist(&[words[0], &longest]));
    let types = [ValueType::ListZiplist, ValueType::HashZiplist, ValueType::SortedSetZiplist];
    check(&seeds, &types);
}

#[test]
fn damaged_zipmaps_are_refused_or_sound() {
    let long = [b"\x01\x01f\xfe\x00\x01\x00\x00\x00", &[b'v'; 256][..], b"\xff"].concat();
    let many: Vec<u8> = (0..20u8)
        .flat_map(|n| {
            [1, b'a' + n, 2, n % 3, b'v', b'w'].into_iter().chain(vec![b'?'; usize::from(n % 3)])
        })
        .collect();
    let seeds = [
        b"\x02\x01f\x01\x00v\x02gg\x03\x02xyz??\xff".to_vec(),
        [&[20][..], &many, &[0xff]].concat(),
        long,
    ];
    check(&seeds, &[ValueType::HashZipmap]);
}
