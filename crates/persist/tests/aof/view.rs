//! Bytes as a file, and sample files.

use persist::aof::{AofBatch, AofReader, BaseFormat, Cut, FileOrder, ReadError};
use persist::disk::{DiskError, DiskFile};

use crate::log::{Command, Driver, names, read_file};
use crate::simulated_disk::SimulatedDisk;

/// A file with these bytes from a position on, which is only read from there.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(pub &'a [u8], pub u64);

impl DiskFile for View<'_> {
    fn append(&self, _: &[&[u8]]) -> Result<(), DiskError> {
        unreachable!("a reader writes nothing")
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        let rest = self.0.get((position - self.1) as usize..).unwrap_or_default();
        let len = rest.len().min(room.len());
        room[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.1 + self.0.len() as u64)
    }

    fn truncate(&self, _: u64) -> Result<(), DiskError> {
        unreachable!("a reader writes nothing")
    }

    fn sync(&self) -> Result<(), DiskError> {
        unreachable!("a reader writes nothing")
    }
}

/// Reads a file with these bytes from a position on.
pub fn read(bytes: &[u8], from: u64) -> Result<(Vec<Command>, persist::aof::AofEnd), ReadError> {
    read_file(AofReader::new(View(bytes, from), from, FileOrder::Last).unwrap())
}

/// An incremental file with batches of writes.
pub struct Sample {
    pub bytes: Vec<u8>,
    /// Where each batch begins, and the number of commands before it.
    pub batches: Vec<(usize, usize)>,
    pub commands: Vec<Command>,
}

pub fn sample(batches: u64, writes: u64, synced: impl Fn(u64) -> bool) -> Sample {
    let disk = SimulatedDisk::new(1);
    let (Driver { mut aof, .. }, _) = Driver::start(disk.clone()).unwrap();
    let cut = Cut { position: 0, database: 2 };
    let base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap().finish().unwrap();
    aof.finish_rewrite(base).unwrap();
    let path = names().directory.join("appendonly.aof.1.incr.aof");
    let mut all = Sample { bytes: Vec::new(), batches: Vec::new(), commands: Vec::new() };
    all.commands.push(vec![b"SELECT".to_vec(), b"2".to_vec()]);
    let (mut number, mut end) = (0, 0);
    for batch in 0..batches {
        all.batches.push((aof.segment_bytes() as usize, all.commands.len()));
        let mut bytes = Vec::new();
        for _ in 0..writes {
            number += 1;
            bytes.extend(crate::log::bytes(number));
            all.commands.extend(crate::log::commands(number));
        }
        end += bytes.len() as u64;
        let unix_seconds = Some(batch as i64 / 3);
        aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds }).unwrap();
        if synced(batch) {
            aof.sync().unwrap();
        }
    }
    all.batches[0].1 = 0;
    all.bytes = disk.read(path);
    all
}

/// The first writes without annotations, as another server writes them.
pub fn plain(writes: u64) -> Vec<u8> {
    (1..=writes).flat_map(crate::log::bytes).collect()
}
