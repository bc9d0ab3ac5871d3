//! A disk in memory that loses power and fails.
//!
//! ```text
//! names    durable │ pending: create, rename, remove, each in some directories
//! file     durable bytes │ written bytes │ the offset from which the two may differ
//! ```
//!
//! A power loss keeps any part of the pending changes: each change of a name or not, in any order;
//! each sector that is not durable as written, as it was, zeros, or garbage; and a length between
//! the durable and the written one. Bytes whose sync failed never become durable, as on Linux.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use base::random::Random;
use persist::disk::{Disk, DiskError, DiskFile, DiskOperation};

const SECTOR_BYTES: usize = 512;
/// The error of every operation without power.
const NO_POWER: ErrorKind = ErrorKind::BrokenPipe;

/// The effect of a power loss on bytes that are not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The file is in the state of some earlier moment.
    Cut,
    /// Sectors that did not reach the disk are zeros.
    Zeros,
    /// Sectors may have any content.
    Garbage,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    written: Vec<u8>,
    /// Up to this offset the two are the same.
    same: usize,
    /// Ranges whose sync failed. They never become durable.
    doubtful: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct NameChange {
    directories: Vec<PathBuf>,
    removed: Option<PathBuf>,
    added: Option<(PathBuf, usize)>,
}

/// The operations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    None,
    /// The operation with this number, from 0.
    Once(u64, ErrorKind),
    /// The operations with numbers in this range.
    Between(u64, u64, ErrorKind),
    /// All operations from this number on: the disk has no power.
    Power(u64),
}

#[derive(Clone, Debug)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending: Vec<NameChange>,
    directories: Vec<PathBuf>,
    failure: Failure,
    operations: Vec<DiskOperation>,
    random: Random,
}

/// The disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Rc<RefCell<State>>);

/// An open file of it.
#[derive(Clone, Debug)]
pub struct SimulatedFile {
    disk: SimulatedDisk,
    inode: usize,
    path: PathBuf,
    appends: bool,
}

impl SimulatedDisk {
    pub fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            directories: vec![PathBuf::new()],
            failure: Failure::None,
            operations: Vec::new(),
            random: Random::new(seed),
        })))
    }

    pub fn fail(&self, failure: Failure) {
        self.0.borrow_mut().failure = failure;
    }

    /// The operations so far.
    pub fn operations(&self) -> Vec<DiskOperation> {
        self.0.borrow().operations.clone()
    }

    /// The disk after a power loss.
    pub fn after_power_loss(&self, loss: Loss, seed: u64) -> Self {
        let mut state = self.0.borrow().clone();
        let mut random = Random::new(seed);
        let mut names = state.durable_names.clone();
        // Any of the changes may have reached the disk, in any order.
        let mut pending = std::mem::take(&mut state.pending);
        if loss == Loss::Cut {
            pending.truncate(random.below(pending.len() as u64 + 1) as usize);
        } else {
            pending.retain(|_| random.below(2) == 0);
            if pending.len() > 1 && random.below(3) == 0 {
                let (one, other) =
                    (random.below(pending.len() as u64), random.below(pending.len() as u64));
                pending.swap(one as usize, other as usize);
            }
        }
        for change in &pending {
            change.apply(&mut names);
        }
        for inode in &mut state.inodes {
            let bytes = inode.after_power_loss(loss, &mut random);
            *inode = Inode {
                same: bytes.len(),
                durable: bytes.clone(),
                written: bytes,
                doubtful: Vec::new(),
            };
        }
        state.names = names.clone();
        state.durable_names = names;
        state.failure = Failure::None;
        state.operations.clear();
        Self(Rc::new(RefCell::new(state)))
    }

    /// The disk after the process was killed: all written bytes are there.
    pub fn after_kill(&self) -> Self {
        let mut state = self.0.borrow().clone();
        state.failure = Failure::None;
        state.operations.clear();
        Self(Rc::new(RefCell::new(state)))
    }

    /// The content of a file.
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let state = self.0.borrow();
        state.inodes[state.names[path.as_ref()]].written.clone()
    }

    /// Whether there is a file.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.0.borrow().names.contains_key(path.as_ref())
    }

    /// Creates a durable file.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let inode = state.inodes.len();
        let (durable, written) = (bytes.to_vec(), bytes.to_vec());
        state.inodes.push(Inode { durable, written, same: bytes.len(), doubtful: Vec::new() });
        state.names.insert(path.as_ref().to_owned(), inode);
        state.durable_names.insert(path.as_ref().to_owned(), inode);
        let directory = path.as_ref().parent().unwrap().to_owned();
        if !state.directories.contains(&directory) {
            state.directories.push(directory);
        }
    }

    fn operation<R>(
        &self,
        operation: DiskOperation,
        path: &Path,
        run: impl FnOnce(&mut State) -> Result<R, ErrorKind>,
    ) -> Result<R, DiskError> {
        let mut state = self.0.borrow_mut();
        let result = match state.count(operation) {
            Some(kind) => Err(kind),
            None => run(&mut state),
        };
        result.map_err(|kind| error(operation, path, kind))
    }
}

fn error(operation: DiskOperation, path: &Path, kind: ErrorKind) -> DiskError {
    DiskError { operation, path: path.to_owned(), error: io::Error::from(kind) }
}

impl State {
    /// Counts an operation and says whether it fails.
    fn count(&mut self, operation: DiskOperation) -> Option<ErrorKind> {
        let number = self.operations.len() as u64;
        self.operations.push(operation);
        match self.failure {
            Failure::Once(at, kind) if at == number => Some(kind),
            Failure::Between(from, to, kind) if (from..to).contains(&number) => Some(kind),
            Failure::Power(from) if number >= from => Some(NO_POWER),
            _ => None,
        }
    }

    /// Whether the power was gone before this operation.
    fn was_off(&self) -> bool {
        matches!(self.failure, Failure::Power(from) if self.operations.len() as u64 > from + 1)
    }

    fn change(&mut self, removed: Option<&Path>, added: Option<(&Path, usize)>) {
        let parents = removed.iter().copied().chain(added.map(|(path, _)| path));
        let change = NameChange {
            directories: parents.map(|path| path.parent().unwrap().to_owned()).collect(),
            removed: removed.map(Path::to_owned),
            added: added.map(|(path, inode)| (path.to_owned(), inode)),
        };
        change.apply(&mut self.names);
        self.pending.push(change);
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        if let Some(path) = &self.removed {
            names.remove(path);
        }
        if let Some((path, inode)) = &self.added {
            names.insert(path.clone(), *inode);
        }
    }
}

impl Inode {
    fn truncate(&mut self, len: usize) {
        self.written.truncate(len);
        self.same = self.same.min(len);
        self.doubtful.retain_mut(|(from, to)| {
            *to = len.min(*to);
            *from < *to
        });
    }

    fn sync(&mut self) {
        self.durable = self.written.clone();
        self.same = self.written.len();
    }

    fn sync_failed(&mut self) {
        self.doubtful.push((self.same, self.written.len()));
    }

    fn after_power_loss(&self, loss: Loss, random: &mut Random) -> Vec<u8> {
        let (low, high) = (self.durable.len(), self.written.len());
        let (low, high) = (low.min(high).min(self.same), low.max(high));
        let doubt = self.doubtful.iter().map(|(from, _)| *from).min().unwrap_or(usize::MAX);
        let keep = low.min(doubt);
        let mut len = keep + random.below((high - keep) as u64 + 1) as usize;
        if doubt == usize::MAX && self.same == high && self.durable.len() == high {
            len = high;
        }
        if loss == Loss::Cut {
            let source = if self.written.len() >= len { &self.written } else { &self.durable };
            return source[..len].to_vec();
        }
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = bytes.len();
            let end = if at < keep { keep } else { (at / SECTOR_BYTES + 1) * SECTOR_BYTES };
            let end = end.min(len);
            let choice = if at < keep { 0 } else { random.below(4) };
            let written = self.written.get(at..end);
            match (choice, loss) {
                (0 | 1, _) if written.is_some() => bytes.extend_from_slice(written.unwrap()),
                (2, _) if self.durable.len() >= end => bytes.extend(&self.durable[at..end]),
                (3, Loss::Garbage) => {
                    bytes.extend((at..end).map(|_| random.next_u64() as u8));
                }
                _ => bytes.resize(end, 0),
            }
        }
        bytes
    }
}

impl Disk for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, path: &Path) -> Result<SimulatedFile, DiskError> {
        let inode = self.operation(DiskOperation::Create, path, |state| {
            if !state.directories.contains(&path.parent().unwrap().to_owned()) {
                return Err(ErrorKind::NotFound);
            }
            if let Some(inode) = state.names.get(path).copied() {
                state.inodes[inode].truncate(0);
                return Ok(inode);
            }
            state.inodes.push(Inode::default());
            let inode = state.inodes.len() - 1;
            state.change(None, Some((path, inode)));
            Ok(inode)
        })?;
        Ok(SimulatedFile { disk: self.clone(), inode, path: path.to_owned(), appends: true })
    }

    fn open(&self, path: &Path) -> Result<SimulatedFile, DiskError> {
        let inode = self.operation(DiskOperation::Open, path, |state| {
            state.names.get(path).copied().ok_or(ErrorKind::NotFound)
        })?;
        Ok(SimulatedFile { disk: self.clone(), inode, path: path.to_owned(), appends: false })
    }

    fn open_to_append(&self, path: &Path) -> Result<SimulatedFile, DiskError> {
        Ok(SimulatedFile { appends: true, ..self.open(path)? })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.operation(DiskOperation::Rename, from, |state| {
            let inode = *state.names.get(from).ok_or(ErrorKind::NotFound)?;
            state.change(Some(from), Some((to, inode)));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.operation(DiskOperation::Remove, path, |state| {
            if !state.names.contains_key(path) {
                return Err(ErrorKind::NotFound);
            }
            state.change(Some(path), None);
            Ok(())
        })
    }

    fn list(&self, directory: &Path) -> Result<Vec<OsString>, DiskError> {
        self.operation(DiskOperation::List, directory, |state| {
            let paths = state.names.keys().filter(|path| path.parent() == Some(directory));
            Ok(paths.map(|path| path.file_name().unwrap().to_owned()).collect())
        })
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.operation(DiskOperation::CreateDirectory, path, |state| {
            if !state.directories.contains(&path.to_owned()) {
                state.directories.push(path.to_owned());
            }
            Ok(())
        })
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.operation(DiskOperation::SyncDirectory, path, |state| {
            let concerned =
                |change: &NameChange| change.directories.iter().any(|directory| directory == path);
            let pending = std::mem::take(&mut state.pending);
            let (durable, rest) = pending.into_iter().partition(concerned);
            let durable: Vec<NameChange> = durable;
            durable.iter().for_each(|change| change.apply(&mut state.durable_names));
            state.pending = rest;
            Ok(())
        })
    }
}

impl DiskFile for SimulatedFile {
    fn append(&self, parts: &[&[u8]]) -> Result<(), DiskError> {
        let bytes = parts.concat();
        let mut state = self.disk.0.borrow_mut();
        let failure = state.count(DiskOperation::Append);
        let failure = failure.or((!self.appends).then_some(ErrorKind::PermissionDenied));
        let len = match failure {
            None => bytes.len(),
            Some(NO_POWER) if state.was_off() => 0,
            // Some bytes may be written before the failure.
            Some(_) => state.random.below(bytes.len() as u64 + 1) as usize,
        };
        state.inodes[self.inode].written.extend_from_slice(&bytes[..len]);
        failure.map_or(Ok(()), |kind| Err(error(DiskOperation::Append, &self.path, kind)))
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        self.disk.operation(DiskOperation::Read, &self.path, |state| {
            let written = &state.inodes[self.inode].written;
            let rest = written.get(position as usize..).unwrap_or_default();
            let len = rest.len().min(room.len());
            room[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        })
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.disk.operation(DiskOperation::Len, &self.path, |state| {
            Ok(state.inodes[self.inode].written.len() as u64)
        })
    }

    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        self.disk.operation(DiskOperation::Truncate, &self.path, |state| {
            state.inodes[self.inode].truncate(len as usize);
            Ok(())
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        let mut state = self.disk.0.borrow_mut();
        match state.count(DiskOperation::Sync) {
            Some(kind) => {
                if kind != NO_POWER {
                    state.inodes[self.inode].sync_failed();
                }
                Err(error(DiskOperation::Sync, &self.path, kind))
            }
            None => {
                state.inodes[self.inode].sync();
                Ok(())
            }
        }
    }
}
