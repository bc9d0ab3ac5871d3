//! Random files, and files with random damage: reading them ends, returns complete commands, and
//! takes memory only for bytes that exist.

use base::random::Random;
use persist::aof::manifest::Manifest;
use persist::aof::{AofItem, AofReader, FileOrder};
use persist::check::check_aof;

use crate::damage::fixed;
use crate::view::{View, plain, sample};

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let other = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 => drop(bytes.drain(at.min(other)..at.max(other).min(at.min(other) + 30))),
            3 => {
                let end = bytes.len().min(other + 700);
                let piece = bytes[other..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.splice(at..at, b"$99999999999\r\n".iter().copied()).for_each(drop),
            5 => bytes.extend(std::iter::repeat_n(0, other % 2000)),
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
}

fn check(bytes: &[u8], order: FileOrder) -> bool {
    let mut reader = AofReader::new(View(bytes, 0), 0, order).unwrap();
    let mut returned = 0;
    let is_read = loop {
        match reader.item() {
            Ok(AofItem::Command { args, offset }) => {
                let len: usize = args.iter().map(<[u8]>::len).sum();
                assert!(args.len() > 0 && offset as usize + len < bytes.len());
                returned += len;
            }
            Ok(AofItem::Timestamp(_)) => {}
            Ok(AofItem::End(end)) => {
                assert!(end.valid_to as usize <= bytes.len());
                break true;
            }
            Err(_) => break false,
        }
    };
    assert!(returned <= bytes.len());
    let report = check_aof(&View(bytes, 0), order).unwrap();
    // The new file has no damage.
    if let Some(fix) = &report.fix {
        let again = check_aof(&View(&fixed(bytes, fix), 0), order).unwrap();
        assert!(again.is_whole() && again.commands == fix.commands, "{again:?} of {report:?}");
        assert!(fix.commands >= report.commands);
    }
    is_read
}

#[test]
fn damaged_files_are_read_or_refused() {
    let sources = [sample(6, 3, |batch| batch % 2 == 0).bytes, plain(20)];
    let (mut read, mut refused) = (0, 0);
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let mut bytes = sources[random.below(2) as usize].clone();
        damage(&mut bytes, &mut random);
        let order = [FileOrder::Last, FileOrder::Earlier][random.below(2) as usize];
        if check(&bytes, order) { read += 1 } else { refused += 1 }
    }
    assert!(read > 300 && refused > 300, "{read} read, {refused} refused");
}

#[test]
fn reading_random_bytes_ends() {
    let pieces: [&[u8]; 12] = [
        b"*",
        b"$",
        b"\r\n",
        b"1",
        b"3",
        b"#WC:",
        b"#WE:",
        b"#TS:",
        b":",
        b"MULTI",
        b"\0",
        b"*1\r\n$4\r\nEXEC\r\n",
    ];
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut bytes = Vec::new();
        for _ in 0..random.below(40) {
            bytes.extend_from_slice(pieces[random.below(12) as usize]);
        }
        check(&bytes, FileOrder::Last);
        // Parsing ends, with any result.
        let _ = Manifest::parse(&bytes);
    }
}
