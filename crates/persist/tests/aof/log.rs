//! A log of numbered writes, and a driver that appends them to files as a server does and loads
//! them again.

use std::path::PathBuf;
use std::sync::OnceLock;

use base::random::Random;
use persist::aof::{
    Aof, AofBatch, AofEnd, AofError, AofItem, AofNames, AofReader, BaseFormat, Cut, NewBase,
    ReadError, push_command,
};
use persist::disk::DiskFile;

use crate::simulated_disk::{SimulatedDisk, SimulatedFile};

/// A command.
pub type Command = Vec<Vec<u8>>;

pub fn names() -> AofNames {
    AofNames { directory: PathBuf::from("appendonlydir"), file: b"appendonly.aof".to_vec() }
}

/// The commands of a write: one, or a transaction.
pub fn commands(number: u64) -> Vec<Command> {
    let set = |key: &str| {
        let len = match number % 7 {
            0 => 2000,
            1 => 0,
            other => other * 30,
        };
        let value = vec![b'a' + (number % 26) as u8; len as usize];
        vec![b"SET".to_vec(), format!("{key}:{number}").into_bytes(), value]
    };
    let word = |word: &str| vec![word.as_bytes().to_vec()];
    if number.is_multiple_of(5) {
        vec![word("MULTI"), set("one"), set("two"), word("EXEC")]
    } else {
        vec![set("key")]
    }
}

/// The bytes of a write.
pub fn bytes(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for command in commands(number) {
        let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        push_command(&mut out, &args);
    }
    out
}

/// The position in the log after the first writes.
pub fn position(writes: u64) -> u64 {
    positions()[writes as usize]
}

/// How many writes are before a position of the log.
pub fn writes_before(end: u64) -> u64 {
    positions().partition_point(|position| *position <= end) as u64 - 1
}

fn positions() -> &'static [u64] {
    const WRITES: u64 = 3000;
    static POSITIONS: OnceLock<Vec<u64>> = OnceLock::new();
    POSITIONS.get_or_init(|| {
        let lens = (1..=WRITES).map(|number| bytes(number).len() as u64);
        let sums = lens.scan(0, |sum, len| {
            *sum += len;
            Some(*sum)
        });
        std::iter::once(0).chain(sums).collect()
    })
}

/// The commands of a file, without those of an incomplete transaction, and its end.
pub fn read_file<F: DiskFile>(
    mut reader: AofReader<F>,
) -> Result<(Vec<Command>, AofEnd), ReadError> {
    let (mut all, mut open): (Vec<Command>, Option<usize>) = (Vec::new(), None);
    loop {
        match reader.item()? {
            AofItem::Command { args, .. } => {
                let command: Command = args.iter().map(<[u8]>::to_vec).collect();
                match &command[0][..] {
                    b"MULTI" => open = Some(all.len()),
                    b"EXEC" => open = None,
                    _ => {}
                }
                all.push(command);
            }
            AofItem::Timestamp(_) => {}
            AofItem::End(end) => {
                all.truncate(open.unwrap_or(all.len()));
                assert_eq!(end.commands, all.len() as u64);
                return Ok((all, end));
            }
        }
    }
}

/// Appends a log to files.
pub struct Driver {
    pub aof: Aof<SimulatedDisk>,
    /// How many writes are in the log.
    pub made: u64,
    /// How many of them were appended or are in a base.
    pub appended: u64,
    /// The position up to which commands were reported as durable.
    pub durable: u64,
    base: Option<(NewBase<SimulatedFile>, u64)>,
    seconds: i64,
}

impl Driver {
    /// Loads the files and repairs them. Returns a driver that continues them, and the commands.
    pub fn start(disk: SimulatedDisk) -> Result<(Self, Vec<Command>), StartError> {
        let mut aof = Aof::open(disk.clone(), names())?;
        aof.upgrade_single_file()?;
        let (mut all, mut log_end) = (Vec::new(), None);
        for file in aof.load_files().map_err(AofError::from)? {
            let reader = AofReader::new(file.file, 0, file.order).map_err(AofError::from)?;
            let (commands, end) = read_file(reader).map_err(StartError::Read)?;
            all.extend(commands.into_iter().filter(|command| command[0] != b"SELECT"));
            log_end = end.log_end.or(log_end);
            if let Some(repair) = end.repair {
                use persist::disk::Disk;
                let file = disk.open_to_append(&file.path).map_err(AofError::from)?;
                repair.apply(&file).map_err(AofError::from)?;
            }
        }
        let end = log_end.unwrap_or(0);
        let made = writes_before(end);
        if !aof.manifest().has_no_data() {
            aof.resume(end)?;
        }
        let driver = Self { aof, made, appended: made, durable: end, base: None, seconds: 0 };
        Ok((driver, all))
    }

    /// Appends the writes that were not appended yet.
    pub fn append(&mut self, random: &mut Random) -> Result<(), AofError> {
        if self.aof.needs_base() {
            return Err(AofError::NeedsBase);
        }
        while self.appended < self.made {
            let until = self.made.min(self.appended + 1 + random.below(4));
            let all: Vec<u8> = (self.appended + 1..=until).flat_map(bytes).collect();
            let middle = random.below(all.len() as u64 + 1) as usize;
            self.seconds += random.below(2) as i64;
            let (first, second) = all.split_at(middle);
            let unix_seconds = Some(self.seconds);
            let batch = AofBatch { parts: [first, second], end: position(until), unix_seconds };
            self.aof.append(&batch)?;
            self.appended = until;
        }
        Ok(())
    }

    pub fn sync(&mut self) -> Result<(), AofError> {
        let durable = self.aof.sync()?;
        assert!(durable >= self.durable && durable <= position(self.appended));
        self.durable = durable;
        Ok(())
    }

    /// Begins a rewrite with all writes in the base.
    pub fn begin(&mut self, random: &mut Random) -> Result<(), AofError> {
        if !self.aof.needs_base() {
            self.append(random)?;
        }
        let cut = Cut { position: position(self.made), database: self.made % 3 };
        let base = self.aof.begin_rewrite(cut, BaseFormat::Commands)?;
        self.appended = self.made;
        self.base = Some((base, self.made));
        Ok(())
    }

    /// Writes the base and ends the rewrite.
    pub fn finish(&mut self) -> Result<(), AofError> {
        let Some((mut base, writes)) = self.base.take() else { return Ok(()) };
        let written = (|| {
            for first in (1..=writes).step_by(10) {
                let some: Vec<u8> = (first..=writes.min(first + 9)).flat_map(bytes).collect();
                base.commands(&some, None)?;
            }
            base.finish()
        })();
        match written {
            Ok(base) => self.aof.finish_rewrite(base)?,
            Err(error) => {
                self.aof.abort_rewrite();
                return Err(error.into());
            }
        }
        assert!(self.aof.durable() >= self.durable);
        self.durable = self.aof.durable();
        Ok(())
    }

    /// Does one random step.
    pub fn step(&mut self, random: &mut Random) -> Result<(), AofError> {
        match random.below(12) {
            0..=4 => {
                self.made += 1 + random.below(4);
                self.append(random)
            }
            5..=6 => self.sync(),
            7..=8 if self.base.is_none() => self.begin(random),
            7..=8 => self.finish(),
            9 => self.aof.delete_history(),
            10 => {
                if random.below(3) == 0 {
                    self.aof.abort_rewrite();
                    self.base = None;
                }
                Ok(())
            }
            _ => {
                if random.below(4) == 0 && !self.aof.needs_base() {
                    self.base = None;
                    self.aof.close()?;
                    self.begin(random)?;
                }
                Ok(())
            }
        }
    }

    /// Makes all writes durable, whatever failed before.
    pub fn recover(&mut self, random: &mut Random) {
        self.aof.abort_rewrite();
        self.base = None;
        if self.aof.needs_base() || self.append(random).and_then(|()| self.sync()).is_err() {
            self.begin(random).unwrap();
            self.finish().unwrap();
            self.append(random).unwrap();
            self.sync().unwrap();
        }
        assert_eq!(self.durable, position(self.made));
    }
}

#[derive(Debug)]
#[allow(dead_code)] // They are printed.
pub enum StartError {
    Aof(AofError),
    Read(ReadError),
}

impl From<AofError> for StartError {
    fn from(error: AofError) -> Self {
        Self::Aof(error)
    }
}

/// Checks that commands are those of the first writes. Returns how many writes they are.
pub fn check_prefix(loaded: &[Command], context: &str) -> u64 {
    let (mut writes, mut at) = (0, 0);
    while at < loaded.len() {
        writes += 1;
        for command in commands(writes) {
            assert!(loaded.get(at) == Some(&command), "{context}: write {writes}");
            at += 1;
        }
    }
    writes
}
