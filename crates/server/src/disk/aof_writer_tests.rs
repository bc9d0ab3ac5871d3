//! The writer of the log on a simulated disk, as the log's thread calls it: with an error at every
//! operation, a power loss at every operation, and a kill at every operation.
//!
//! Required: bytes reported as durable survive a power loss; bytes that the files lack after a kill
//! are still in the ring; and some turns after the disk works again everything is durable and no
//! write is refused.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../../persist/tests/aof/simulated_disk.rs"]
#[allow(dead_code)] // Other tests use the rest.
mod simulated_disk;

use std::io::ErrorKind;
use std::path::Path;

use base::random::Random;
use persist::aof::{
    Aof, AofItem, AofNames, AofReader, BaseFormat, Cut, NewBase, PendingSync, TriedSync,
    push_command,
};
use persist::disk::Disk;

use self::simulated_disk::{Failure, Loss, SimulatedDisk, SimulatedFile};
use super::aof_writer::AofWriter;
use crate::log::ring_reader::LogSource;

const BEGIN: u64 = 1000;
const TURNS: u64 = 30;

fn names() -> AofNames {
    AofNames { directory: Path::new("appendonlydir").to_owned(), file: b"appendonly.aof".to_vec() }
}

fn bytes(write: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let value = [b'a' + (write % 26) as u8; 700];
    push_command(&mut out, &[b"SET", format!("{write:08}").as_bytes(), &value]);
    out
}

/// The position of the log after the first writes.
fn position(writes: u64) -> u64 {
    BEGIN + writes * bytes(0).len() as u64
}

fn writes_before(position: u64) -> u64 {
    position.saturating_sub(BEGIN) / bytes(0).len() as u64
}

/// The part of the log in memory.
#[derive(Default)]
struct Ring {
    made: u64,
    released: u64,
    /// Writes that are shown at once.
    shown: u64,
}

impl LogSource for Ring {
    fn readable_until(&self) -> u64 {
        position(self.made)
    }

    fn with_bytes(&mut self, from: u64, until: u64, look: &mut dyn FnMut([&[u8]; 2], u64)) {
        assert!(from >= self.released, "it is no longer in memory");
        let first = writes_before(from);
        let last = writes_before(until).min(first + self.shown.max(1));
        let all: Vec<u8> = (first + 1..=last).flat_map(bytes).collect();
        let (start, rest) = all.split_at(all.len() / 3);
        look([start, rest], position(last));
    }

    fn release(&mut self, until: u64) {
        self.released = self.released.max(until);
    }
}

/// The log's thread without its clock and threads.
struct Server {
    writer: AofWriter<SimulatedDisk>,
    ring: Ring,
    always: bool,
    pending: Option<PendingSync<SimulatedFile>>,
    base: Option<(NewBase<SimulatedFile>, u64)>,
    /// Up to where everything was called durable.
    durable: u64,
    failures: u64,
}

impl Server {
    /// Begins a file, and its first base.
    fn start(disk: &SimulatedDisk, always: bool) -> Option<Self> {
        let aof = Aof::open(disk.clone(), names()).ok()?;
        let writer = AofWriter::without_base(aof, BEGIN);
        let ring = Ring { released: BEGIN, ..Ring::default() };
        let mut server =
            Self { writer, ring, always, pending: None, base: None, durable: 0, failures: 0 };
        server.begin_rewrite();
        server.finish_rewrite();
        (!server.writer.aof.needs_base()).then_some(server)
    }

    fn begin_rewrite(&mut self) {
        let cut = Cut { position: position(self.ring.made), database: 0 };
        let _ = self.writer.write(&mut self.ring, cut.position, None);
        if let Ok(base) = self.writer.begin_rewrite(cut, BaseFormat::Commands) {
            self.base = Some((base, self.ring.made));
        }
    }

    fn finish_rewrite(&mut self) {
        let Some((mut base, writes)) = self.base.take() else { return };
        let all: Vec<u8> = (1..=writes).flat_map(bytes).collect();
        let written = match all.is_empty() {
            true => base.finish(),
            false => base.commands(&all, None).and_then(|()| base.finish()),
        };
        if written.map(|base| self.writer.finish_rewrite(base).is_ok()).unwrap_or(false) {
            let _ = self.writer.aof.delete_history();
        } else {
            self.writer.aof.abort_rewrite();
        }
    }

    fn finish_sync(&mut self) {
        if let Some(pending) = self.pending.take() {
            let tried: TriedSync = pending.sync();
            self.writer.finish_sync(tried);
        }
    }

    /// A turn of the thread; `wants_base` asks for a rewrite.
    fn turn(&mut self, wants_base: bool, ends: bool) {
        let until = self.ring.readable_until();
        let _ = self.writer.write(&mut self.ring, until, None);
        self.ring.release(self.writer.kept());
        if ends {
            self.finish_sync();
            self.finish_rewrite();
        }
        if self.writer.has_unsynced()
            && !self.writer.aof.needs_base()
            && !self.writer.aof.is_syncing()
        {
            match self.always {
                true => self.writer.sync(),
                false => self.pending = self.writer.begin_sync(),
            }
        }
        let is_due = wants_base || self.writer.aof.needs_base();
        if is_due && self.base.is_none() && !self.writer.aof.is_syncing() {
            self.begin_rewrite();
        }
        self.ring.release(self.writer.kept());
        let synced = self.writer.progress().synced.unwrap_or(0);
        assert!(synced <= position(self.ring.made));
        self.durable = self.durable.max(synced);
        self.failures += u64::from(self.writer.failure().is_some());
    }

    /// Runs as a server that refuses writes while the disk fails, except those in progress.
    fn run(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        for _ in 0..TURNS {
            let writes = match self.writer.failure() {
                None => random.below(4),
                Some(_) => random.below(2),
            };
            self.ring.made += writes;
            self.ring.shown = random.below(3);
            self.turn(random.below(9) == 0, random.below(2) == 0);
        }
    }
}

/// The writes in the files, all from the first one on, and no others.
fn load(disk: &SimulatedDisk, context: &str) -> u64 {
    let Ok(aof) = Aof::open(disk.clone(), names()) else { panic!("{context}") };
    let mut writes = 0;
    for file in aof.load_files().unwrap_or_else(|error| panic!("{context}: {error}")) {
        let mut reader = AofReader::new(file.file, 0, file.order).unwrap();
        loop {
            match reader.item().unwrap_or_else(|error| panic!("{context}: {error}")) {
                AofItem::Command { args, .. } if args.name() == b"SELECT" => {}
                AofItem::Command { args, .. } => {
                    writes += 1;
                    assert_eq!(args.text(1), format!("{writes:08}").as_bytes(), "{context}");
                }
                AofItem::Timestamp(_) => {}
                AofItem::End(end) => {
                    if let Some(repair) = end.repair {
                        repair.apply(&disk.open_to_append(&file.path).unwrap()).unwrap();
                    }
                    break;
                }
            }
        }
    }
    writes
}

/// The guarantees after any end of the process or the machine.
fn check_ends(disk: &SimulatedDisk, server: &Server, seed: u64, context: &str) {
    for loss in [Loss::Cut, Loss::Zeros] {
        let writes = load(&disk.after_power_loss(loss, seed), context);
        assert!(writes >= writes_before(server.durable), "{context}, {loss:?}: {writes}");
    }
    let writes = load(&disk.after_kill(), context);
    let released = writes_before(server.ring.released);
    assert!(writes >= released, "{context}: killed, {writes} of {released}");
}

fn operations_of(always: bool, seed: u64) -> u64 {
    let disk = SimulatedDisk::new(seed);
    let mut server = Server::start(&disk, always).unwrap();
    server.run(seed);
    assert_eq!(server.failures, 0);
    disk.operations().len() as u64
}

#[test]
fn a_power_loss_or_a_kill_at_every_operation_loses_nothing() {
    for (always, seed) in [(true, 1), (false, 2), (false, 3)] {
        for at in 0..operations_of(always, seed) {
            let disk = SimulatedDisk::new(seed);
            disk.fail(Failure::Power(at));
            let Some(mut server) = Server::start(&disk, always) else { continue };
            server.run(seed);
            check_ends(&disk, &server, at, &format!("seed {seed}, operation {at}"));
        }
    }
}

fn check_errors(failure: impl Fn(u64) -> Failure) {
    let mut failed = 0;
    for (always, seed) in [(true, 4), (false, 5), (false, 6)] {
        for at in 0..operations_of(always, seed) {
            let disk = SimulatedDisk::new(seed);
            disk.fail(failure(at));
            let Some(mut server) = Server::start(&disk, always) else { continue };
            server.run(seed);
            failed += u64::from(server.failures > 0);
            let context = format!("seed {seed}, {:?}", failure(at));
            check_ends(&disk, &server, at, &context);
            disk.fail(Failure::None);
            // A base that is being written may fail, another one, a sync, and one to see it.
            (0..6).for_each(|_| server.turn(false, true));
            assert!(server.writer.failure().is_none(), "{context}");
            assert_eq!(server.durable, position(server.ring.made), "{context}");
            assert_eq!(load(&disk.after_power_loss(Loss::Zeros, at), &context), server.ring.made);
        }
    }
    assert!(failed > 40, "{failed}");
}

#[test]
fn one_error_at_every_operation_is_recovered_from() {
    check_errors(|at| Failure::Once(at, ErrorKind::Other));
}

#[test]
fn a_disk_that_is_full_for_a_while_is_recovered_from() {
    check_errors(|at| Failure::Between(at, at + 15, ErrorKind::StorageFull));
}
