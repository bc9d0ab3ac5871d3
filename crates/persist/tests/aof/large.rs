//! Commands and batches that are larger than a block of the file.

use persist::aof::{AofFault, AofItem, AofReader, FileOrder, ReadError, push_command};

use crate::state::{append_bytes, new_file};
use crate::view::{View, read};

fn large_commands() -> Vec<Vec<Vec<u8>>> {
    let value = |len: usize| (0..len).map(|at| ((at * 7) >> 3) as u8 | 1).collect::<Vec<u8>>();
    let mut many = vec![b"RPUSH".to_vec(), b"list".to_vec()];
    many.extend((0..60_000).map(|number: u32| number.to_string().into_bytes()));
    vec![
        vec![b"SET".to_vec(), b"a".to_vec(), value(700_000)],
        many,
        vec![b"SET".to_vec(), b"b".to_vec(), value(262_144)],
        vec![b"SET".to_vec(), b"c".to_vec(), value(3)],
    ]
}

fn bytes(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    for command in commands {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        push_command(&mut out, &args);
    }
    out
}

#[test]
fn commands_and_batches_across_blocks_are_read() {
    let commands = large_commands();
    let plain = bytes(&commands);
    let (found, end) = read(&plain, 0).unwrap();
    assert!(found == commands && end.tail.is_none());

    let (disk, mut aof, path) = new_file();
    append_bytes(&mut aof, &plain, 7);
    append_bytes(&mut aof, &plain, 9);
    let sealed = disk.read(path);
    let (found, end) = read(&sealed, 0).unwrap();
    assert!(found[..4] == commands[..] && found[4..] == commands[..]);
    assert_eq!((end.unsealed, end.tail), (0, None));

    // A changed bit in the first batch, which was durable before the second was written.
    let mut changed = sealed.clone();
    changed[500_000] ^= 64;
    match read(&changed, 0) {
        Err(ReadError::Damage(damage)) => {
            assert_eq!((damage.offset, damage.fault), (0, AofFault::Checksum));
        }
        other => panic!("{:?}", other.map(|(commands, end)| (commands.len(), end))),
    }
    // A cut within the second batch keeps its first command.
    let cut = sealed.len() / 2 + 900_000;
    let (found, end) = read(&sealed[..cut], 0).unwrap();
    assert_eq!(found.len(), 5);
    assert_eq!(end.tail.unwrap().fault, AofFault::Cut);
}

#[test]
fn a_timestamp_is_written_when_the_second_changes() {
    let (disk, mut aof, path) = new_file();
    for seconds in [5, 5, 6, 4, 7] {
        append_bytes(&mut aof, &bytes(&large_commands()[3..]), seconds);
    }
    let file = disk.read(path);
    let mut reader = AofReader::new(View(&file, 0), 0, FileOrder::Last).unwrap();
    let mut found = Vec::new();
    loop {
        match reader.item().unwrap() {
            AofItem::Timestamp(seconds) => found.push(seconds),
            AofItem::Command { .. } => found.push(0),
            AofItem::End(_) => break,
        }
    }
    assert_eq!(found, [5, 0, 0, 6, 0, 0, 7, 0]);
}
