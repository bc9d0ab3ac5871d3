//! Tests of the stream, cut at every byte.

use proptest::prelude::*;

use super::*;
use crate::wire::{GETACK, PING, push_command};

/// A unit as text: kind, commands, end.
type Seen = (UnitKind, String, u64);

fn command(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    push_command(&mut out, &args);
    out
}

fn commands(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| command(line)).collect()
}

fn seen(unit: &StreamUnit<'_>) -> Seen {
    let text = |args: Args<'_>| {
        let words: Vec<_> = args.iter().map(String::from_utf8_lossy).collect();
        words.join(" ")
    };
    let commands: Vec<String> = unit.commands().map(text).collect();
    (unit.kind, commands.join("; "), unit.end)
}

/// The units that a replica reads from these parts, starting at offset 1000, their bytes, and the
/// last offset.
fn read(parts: &[&[u8]], unit_bytes_max: usize) -> Result<(Vec<Seen>, Vec<u8>, u64), BrokenStream> {
    let mut parser = StreamParser::new(1000, 1 << 20, unit_bytes_max);
    let (mut buffer, mut units, mut log) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            let taken = match parser.next_step(&buffer)? {
                StreamStep::Unit(unit) => {
                    units.push(seen(&unit));
                    log.extend_from_slice(unit.bytes);
                    unit.bytes.len()
                }
                StreamStep::KeepAlive(bytes) => bytes,
                StreamStep::Incomplete => break,
            };
            buffer.drain(..taken);
        }
    }
    Ok((units, log, parser.offset()))
}

fn whole(bytes: &[u8]) -> Vec<Seen> {
    read(&[bytes], 1 << 20).unwrap().0
}

#[test]
fn units_are_commands_and_transactions() {
    let lines = ["SELECT 0", "set a 1", "multi", "SET a 2", "SELECT 3", "SET b 2", "exec", "DEL a"];
    let bytes = commands(&lines);
    let at = |lines: &[&str]| 1000 + commands(lines).len() as u64;
    let units = whole(&bytes);
    let transaction = "multi; SET a 2; SELECT 3; SET b 2; exec".to_owned();
    assert_eq!(units[1], (UnitKind::Command, "set a 1".to_owned(), at(&lines[..2])));
    assert_eq!(units[2], (UnitKind::Transaction, transaction, at(&lines[..7])));
    assert_eq!(units[3].2, at(&lines));
}

#[test]
fn the_offset_before_getack_excludes_its_own_bytes() {
    let mut parser = StreamParser::new(1050, 1 << 20, 1 << 20);
    let bytes = [GETACK, PING, &command("ping")].concat();
    let StreamStep::Unit(unit) = parser.next_step(&bytes).unwrap() else { panic!() };
    let before = unit.end - unit.bytes.len() as u64;
    assert_eq!((unit.kind, before, unit.end), (UnitKind::GetAck, 1050, 1087));
    assert_eq!(
        whole(&bytes[37..]).iter().map(|unit| unit.0).collect::<Vec<_>>(),
        [UnitKind::Ping; 2]
    );
    // Other uses of the names are ordinary commands.
    for line in ["REPLCONF ACK 1", "PINGS", "GETACK *"] {
        assert_eq!(whole(&command(line))[0].0, UnitKind::Command, "{line}");
    }
}

#[test]
fn newlines_have_no_offset() {
    let bytes = [b"\n\n", &command("SET a 1")[..], b"\n", &command("SET a 2"), b"\n"].concat();
    let (units, log, offset) = read(&[&bytes], 1 << 20).unwrap();
    assert_eq!((units.len(), log), (2, commands(&["SET a 1", "SET a 2"])));
    assert_eq!(offset, 1000 + bytes.len() as u64 - 4);
}

#[test]
fn a_unit_that_was_cut_off_is_not_taken() {
    let first = command("SET a 1");
    let transaction = commands(&["MULTI", "SET a 2", "SET b 2", "EXEC"]);
    let bytes = [&first[..], &transaction].concat();
    for len in first.len()..bytes.len() {
        let (units, log, offset) = read(&[&bytes[..len]], 1 << 20).unwrap();
        assert_eq!((units.len(), log.len(), offset), (1, 27, 1027), "{len}");
    }
}

#[test]
fn a_long_transaction_comes_in_parts() {
    let lines = ["MULTI", "SET a 1", "SET a 2", "SET a 3", "EXEC", "SET b 1"];
    let bytes = commands(&lines);
    let wanted = |kind, text: &str, to: usize| {
        (kind, text.to_owned(), 1000 + commands(&lines[..to]).len() as u64)
    };
    let part = |is_first, is_last| UnitKind::Part { is_first, is_last };
    let units = read(&[&bytes], 50).unwrap().0;
    let in_parts = [
        wanted(part(true, false), "MULTI; SET a 1; SET a 2", 3),
        wanted(part(false, true), "SET a 3; EXEC", 5),
        wanted(UnitKind::Command, "SET b 1", 6),
    ];
    assert_eq!(units, in_parts);
    assert_eq!(read(&[&bytes], 27).unwrap().0.len(), 5);
    // The offset stays before MULTI until EXEC has arrived.
    let cut = commands(&lines[..4]);
    let mut parser = StreamParser::new(1000, 1 << 20, 1);
    let mut rest = &cut[..];
    while let StreamStep::Unit(unit) = parser.next_step(rest).unwrap() {
        rest = &rest[unit.bytes.len()..];
    }
    assert!(rest.is_empty());
    assert_eq!((parser.offset(), parser.is_within_parts()), (1000, true));
}

#[test]
fn garbage_is_an_error_with_its_offset() {
    let nested = commands(&["MULTI", "SET a 1", "MULTI"]);
    let newline = [&commands(&["MULTI", "SET a 1"])[..], b"\n"].concat();
    for (bytes, offset, reason) in [
        (&b"+OK\r\n"[..], 0, BrokenStreamReason::NoArray(b'+')),
        (b"PING\r\n", 0, BrokenStreamReason::NoArray(b'P')),
        (b"\r\n", 0, BrokenStreamReason::NoArray(b'\r')),
        (b"*0\r\n", 0, BrokenStreamReason::Empty),
        (b"*-1\r\n", 0, BrokenStreamReason::Empty),
        (b"*x\r\n", 0, BrokenStreamReason::Protocol(ProtocolError::InvalidCount)),
        (b"*1\r\n+OK\r\n", 0, BrokenStreamReason::Protocol(ProtocolError::ExpectedDollar(b'+'))),
        (b"*1\r\n$-1\r\n", 0, BrokenStreamReason::Protocol(ProtocolError::InvalidLength)),
        (b"*1\r\n$1048577\r\n", 0, BrokenStreamReason::Protocol(ProtocolError::InvalidLength)),
        (b"*1\r\n$4\r\nEXEC\r\n", 0, BrokenStreamReason::NoTransaction),
        (b"*1\r\n$7\r\nDISCARD\r\n", 0, BrokenStreamReason::NoTransaction),
        (&nested, 42, BrokenStreamReason::NestedMulti),
        (&newline, 42, BrokenStreamReason::NoArray(b'\n')),
    ] {
        let before = command("SET a 1");
        let bytes = [&before[..], bytes].concat();
        for unit_bytes_max in [1, 1 << 20] {
            let error = BrokenStream { offset: 1028 + offset, reason: reason.clone() };
            assert_eq!(read(&[&bytes], unit_bytes_max).unwrap_err(), error);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single, unit_bytes_max).unwrap_err(), error);
        }
    }
}

#[test]
fn commands_are_bounded_by_what_a_span_can_address() {
    let mut parser = StreamParser::new(0, 1 << 20, 1 << 20);
    parser.command_bytes_max = 40;
    let bytes = command("SET a 0123456789");
    let StreamStep::Unit(_) = parser.next_step(&bytes).unwrap() else { panic!() };
    let bytes = command("SET a 012345678901234");
    let error = parser.next_step(&bytes).unwrap_err();
    assert_eq!(error, BrokenStream { offset: 38, reason: BrokenStreamReason::TooLong });
}

#[test]
fn a_long_argument_waits_in_the_buffer() {
    let value = "v".repeat(100_000);
    let bytes = command(&format!("SET a {value}"));
    let (units, log, _) = read(&bytes.chunks(7_000).collect::<Vec<_>>(), 1 << 20).unwrap();
    assert_eq!((units.len(), log == bytes), (1, true));
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let write = prop_oneof!["SET [ab] [0-9]{0,9}", Just("PING".to_owned()), "DEL a{1,20}"];
    let transaction = proptest::collection::vec(write.clone(), 0..5)
        .prop_map(|lines| [vec!["MULTI".to_owned()], lines, vec!["EXEC".to_owned()]].concat());
    let unit = prop_oneof![
        write.prop_map(|line| vec![line]),
        transaction,
        Just(vec!["REPLCONF GETACK *".to_owned()]),
    ];
    proptest::collection::vec(unit, 1..6).prop_map(|units| units.concat())
}

proptest! {
    /// The units, their bytes and offsets do not depend on how the bytes arrive.
    #[test]
    fn every_split_gives_the_same_units(
        lines in lines(), unit_bytes_max in 1usize..200, at: usize, length in 1usize..20,
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let bytes = commands(&lines);
        let wanted = read(&[&bytes], unit_bytes_max).unwrap();
        prop_assert_eq!(&wanted.1, &bytes);
        prop_assert_eq!(wanted.2, 1000 + bytes.len() as u64);
        let (first, second) = bytes.split_at(at % (bytes.len() + 1));
        prop_assert_eq!(&read(&[first, second], unit_bytes_max).unwrap(), &wanted);
        let parts: Vec<&[u8]> = bytes.chunks(length).collect();
        prop_assert_eq!(&read(&parts, unit_bytes_max).unwrap(), &wanted);
    }

    #[test]
    fn no_bytes_panic(parts in proptest::collection::vec(any::<Vec<u8>>(), 0..9), max: usize) {
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let _ = read(&parts, max);
        let _ = read(&[&[&b"*2\r\n$1\r\na\r\n$1\r\n"[..]], &parts[..]].concat(), max);
    }
}
