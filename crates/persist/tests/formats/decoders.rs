//! Random damage to compressed strings, payloads of RESTORE, and manifests. The environment
//! variable `FORMAT_FUZZ_ROUNDS` sets the number of rounds. Encodings of values are damaged in
//! `encodings`, whole values in `mutations`, files in `file`, append-only files in
//! `tests/aof/random.rs`, and requests in `resp`.

use base::random::Random;
use persist::aof::manifest::{BYTES_MAX, Manifest};
use persist::aof::{FileType, LogId, ManifestEntry};
use persist::rdb::{ValueEncoder, ValueType};
use persist::{crc64, lzf, payload};

use crate::mutations::damage;
use crate::samples::{Keyspace, Written};

/// Damages seeds and decodes them. `decode` returns whether it accepted the bytes. Checks that some
/// are accepted and some refused.
pub fn fuzz(rounds: u64, seeds: &[Vec<u8>], mut decode: impl FnMut(&[u8], &mut Random) -> bool) {
    let more = std::env::var("FORMAT_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut random = Random::new(more.unwrap_or(1));
    let mut counts = [0u64; 2];
    for round in 0..more.unwrap_or(rounds) {
        let pick = |random: &mut Random| &seeds[random.below(seeds.len() as u64) as usize];
        let mut bytes = pick(&mut random).clone();
        if round >= seeds.len() as u64 {
            let other = pick(&mut random);
            damage(&mut bytes, other, &mut random);
        }
        counts[usize::from(decode(&bytes, &mut random))] += 1;
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}

/// A compressed text without the two lengths before it.
fn compressed(text: &str) -> Vec<u8> {
    let mut string = Vec::new();
    ValueEncoder::new(true).string(text.as_bytes(), &mut string).unwrap();
    assert_eq!(string[0], 0xc3, "it is compressed");
    let length_bytes = |first: u8| if first < 0x40 { 1 } else { 2 };
    let before = 1 + length_bytes(string[1]);
    string.split_off(before + length_bytes(string[before]))
}

#[test]
fn damaged_compressed_strings_have_their_length_or_are_refused() {
    let texts = [
        "abc".repeat(100),
        "x".repeat(9000),
        (0..500).map(|n| format!("{n},")).collect(),
        "a word, another word, a word again and another word".to_owned(),
    ];
    let seeds: Vec<Vec<u8>> = texts.iter().map(|text| compressed(text)).collect();
    let mut out = Vec::new();
    fuzz(40_000, &seeds, |bytes, random| {
        let text = &texts[random.below(4) as usize];
        let len = text.len() + random.below(3) as usize - 1;
        out.clear();
        let taken = lzf::decompress(bytes, len, &mut out).is_ok();
        assert!(!taken || out.len() == len);
        // Refused bytes have taken memory only for their result.
        assert!(out.len() <= len && out.capacity() <= 4 * 9000 + 300 * bytes.len());
        taken
    });
}

#[test]
fn damaged_payloads_are_refused_and_resealed_ones_are_sound() {
    let mut keyspace = Keyspace::new(7);
    let mut encoder = ValueEncoder::new(true);
    let mut seeds = Vec::new();
    for round in 0..60 {
        let name = keyspace.add(round % 6);
        let Written { value_type, bytes } = keyspace.write(&name, &mut encoder);
        let mut sealed = [&[value_type.number()], &bytes[..]].concat();
        payload::seal(&mut sealed);
        if sealed.len() < 2000 {
            seeds.push(sealed);
        }
    }
    fuzz(20_000, &seeds, |bytes, random| {
        // The checksum of Redis does not notice leading zeros.
        let rest = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
        let own: Vec<u8> = rest(bytes);
        let is_same = |seed: &Vec<u8>| own == rest(seed);
        if !seeds.iter().any(is_same) {
            assert!(payload::open(bytes).is_err(), "{bytes:?}");
        }
        // An attacker can compute the checksum, and choose the version.
        let mut resealed = bytes.to_vec();
        resealed.truncate(bytes.len().saturating_sub(8));
        if random.below(4) == 0 && resealed.len() > 2 {
            let at = resealed.len() - 2;
            resealed[at] = [11, 80, 6, 12][random.below(4) as usize];
        }
        let checksum = crc64::checksum(&resealed);
        resealed.extend_from_slice(&checksum.to_le_bytes());
        let Ok((content, version)) = payload::open(&resealed) else { return false };
        let Some((number, value)) = content.split_first() else { return false };
        let Ok(value_type) = ValueType::of(*number, version) else { return false };
        let written = Written { value_type, bytes: value.to_vec() };
        let Ok(name) = keyspace.read(&written) else { return false };
        keyspace.check_round_trip(&name, &mut encoder, &bytes);
        true
    });
}

#[test]
fn damaged_manifests_are_refused_or_written_again() {
    let entry = |name: &str, number, file_type| ManifestEntry {
        start_offset: Some(number * 100),
        ..ManifestEntry::new(name.as_bytes().to_vec(), number, file_type)
    };
    let mut manifest = Manifest {
        base: Some(entry("appendonly.aof.2.base.rdb", 2, FileType::Base)),
        incremental: vec![
            entry("appendonly.aof.3.incr.aof", 3, FileType::Incremental),
            entry("a b \"quoted\"", 4, FileType::Incremental),
        ],
        history: vec![entry("appendonly.aof.1.base.rdb", 1, FileType::History)],
        log: Some(LogId([3, 4])),
    };
    let mut seeds = vec![manifest.sealed(), manifest.write()];
    manifest.history.clear();
    seeds.push(manifest.write());
    seeds.push(b"# a comment\nfile \"\\x41\" seq 1 type b new thing\r\n".to_vec());
    fuzz(40_000, &seeds, |bytes, _| {
        assert!(bytes.len() < BYTES_MAX as usize);
        let Ok(manifest) = Manifest::parse(bytes) else { return false };
        // A manifest with a checksum is unchanged.
        assert!(manifest.log.is_none() || !bytes.ends_with(&seeds[0]) || bytes == seeds[0]);
        let written = manifest.sealed();
        let is_same = written.is_empty() || Manifest::parse(&written).as_ref() == Ok(&manifest);
        let without_log = Manifest { log: None, ..manifest.clone() };
        let is_empty = without_log.write().is_empty();
        let has_backslash = manifest.load_order().chain(&manifest.history).any(|entry| {
            // Control characters are written with one, which no name may have.
            entry.name.iter().any(|byte| byte.is_ascii_control())
        });
        assert!(is_same || is_empty || has_backslash, "{:?}", String::from_utf8_lossy(bytes));
        true
    });
}
