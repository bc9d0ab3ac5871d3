//! The disk of the process: the files of one directory, with every error as the system reports it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use persist::disk::{Disk, DiskError, DiskFile, DiskOperation};

use super::directory::Directory;
use super::files::{FileNumber, number_of};

/// Parts that one call of the system takes.
const PARTS_MAX: usize = 16;

/// Files whose paths are relative to a directory.
#[derive(Clone, Debug)]
pub struct RealDisk {
    directory: Directory,
}

/// An open file. Clones are the same.
#[derive(Clone, Debug)]
pub struct RealFile {
    file: Arc<File>,
    path: PathBuf,
}

fn said<R>(operation: DiskOperation, path: &Path, result: io::Result<R>) -> Result<R, DiskError> {
    result.map_err(|error| DiskError { operation, path: path.to_owned(), error })
}

impl RealDisk {
    /// The files of a directory, by an absolute path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::of(Directory::named(path.into()))
    }

    /// The files of a directory.
    pub(crate) fn of(directory: Directory) -> Self {
        Self { directory }
    }

    /// The files of the working directory of this moment, also when that changes. If the directory
    /// cannot be opened, every operation fails.
    pub(crate) fn of_working_directory() -> Self {
        Self::of(Directory::current())
    }

    /// Where a file is. Valid while this disk is known.
    ///
    /// # Errors
    /// When its directory could not be opened.
    pub fn place(&self, path: &Path) -> Result<PathBuf, DiskError> {
        said(DiskOperation::Open, Path::new("."), self.directory.place(path))
    }

    /// Whether the directory is found by its name.
    pub(crate) fn is_by_name(&self) -> bool {
        self.directory.is_by_name()
    }

    /// A place in the words of the operator.
    pub(crate) fn shown(&self, place: &Path) -> PathBuf {
        self.directory.shown(place)
    }

    fn open_with(
        &self,
        operation: DiskOperation,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<RealFile, DiskError> {
        let file = said(operation, path, options.open(self.place(path)?))?;
        Ok(RealFile { file: Arc::new(file), path: path.to_owned() })
    }
}

impl RealFile {
    /// The identity of the file.
    ///
    /// # Errors
    /// When the system does not say.
    pub(crate) fn number(&self) -> Result<FileNumber, DiskError> {
        let found = said(DiskOperation::Open, &self.path, self.file.metadata())?;
        Ok(number_of(&found))
    }

    /// Whether another name leads to the file, so that another program may rely on its bytes.
    ///
    /// # Errors
    /// When the system does not say.
    pub(crate) fn has_second_name(&self) -> Result<bool, DiskError> {
        Ok(said(DiskOperation::Open, &self.path, self.file.metadata())?.nlink() > 1)
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn create(&self, path: &Path) -> Result<RealFile, DiskError> {
        let options = &mut OpenOptions::new();
        let options = options.create(true).append(true).read(true);
        let file = self.open_with(DiskOperation::Create, path, options)?;
        said(DiskOperation::Create, path, file.file.set_len(0))?;
        Ok(file)
    }

    fn open(&self, path: &Path) -> Result<RealFile, DiskError> {
        self.open_with(DiskOperation::Open, path, OpenOptions::new().read(true))
    }

    fn open_to_append(&self, path: &Path) -> Result<RealFile, DiskError> {
        self.open_with(DiskOperation::Open, path, OpenOptions::new().read(true).append(true))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        said(DiskOperation::Rename, from, fs::rename(self.place(from)?, self.place(to)?))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        said(DiskOperation::Remove, path, fs::remove_file(self.place(path)?))
    }

    fn list(&self, directory: &Path) -> Result<Vec<OsString>, DiskError> {
        let entries = fs::read_dir(self.place(directory)?);
        let names = entries.and_then(|all| all.map(|entry| Ok(entry?.file_name())).collect());
        said(DiskOperation::List, directory, names)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        let made = match fs::create_dir(self.place(path)?) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            made => made,
        };
        said(DiskOperation::CreateDirectory, path, made)
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        let synced = File::open(self.place(path)?).and_then(|directory| directory.sync_all());
        said(DiskOperation::SyncDirectory, path, synced)
    }
}

impl DiskFile for RealFile {
    fn append(&self, parts: &[&[u8]]) -> Result<(), DiskError> {
        let appended = parts.chunks(PARTS_MAX).try_for_each(|parts| append(&self.file, parts));
        said(DiskOperation::Append, &self.path, appended)
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        let mut read = 0;
        while read < room.len() {
            match self.file.read_at(&mut room[read..], position + read as u64) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                more => match said(DiskOperation::Read, &self.path, more)? {
                    0 => break,
                    more => read += more,
                },
            }
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(said(DiskOperation::Len, &self.path, self.file.metadata())?.len())
    }

    fn stored_bytes(&self) -> Result<u64, DiskError> {
        let found = said(DiskOperation::Len, &self.path, self.file.metadata())?;
        // As the system counts them, whatever the file system's own blocks are.
        Ok(found.blocks().saturating_mul(512))
    }

    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        said(DiskOperation::Truncate, &self.path, self.file.set_len(len))
    }

    fn sync(&self) -> Result<(), DiskError> {
        // The length as well, as far as it is needed to read the bytes.
        said(DiskOperation::Sync, &self.path, self.file.sync_data())
    }
}

/// Appends a few parts, with one call of the system where that takes all of them.
fn append(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices = [IoSlice::new(&[]); PARTS_MAX];
    for (slice, part) in slices.iter_mut().zip(parts) {
        *slice = IoSlice::new(part);
    }
    let mut rest = &mut slices[..parts.len()];
    // Empty parts are skipped first.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_are_what_was_appended_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::new(folder.path());
        let (first, second) = (Path::new("first"), Path::new("second"));
        let file = disk.create(first).unwrap();
        let parts: Vec<Vec<u8>> = (0..3 * PARTS_MAX).map(|at| vec![at as u8; at % 5]).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        file.append(&parts).unwrap();
        file.append(&[&[], b"end", &[]]).unwrap();
        let whole = [parts.concat(), b"end".to_vec()].concat();
        file.sync().unwrap();
        disk.rename(first, second).unwrap();
        disk.sync_directory(Path::new("")).unwrap();
        assert!(disk.open(first).unwrap_err().is_not_found());
        let file = disk.open_to_append(second).unwrap();
        let mut room = vec![0; whole.len() + 1];
        assert_eq!(file.read_at(2, &mut room).unwrap(), whole.len() - 2);
        assert_eq!(room[..whole.len() - 2], whole[2..]);
        file.truncate(4).unwrap();
        file.append(&[b"x"]).unwrap();
        assert_eq!(fs::read(folder.path().join("second")).unwrap(), [&whole[..4], b"x"].concat());
        assert_eq!(disk.list(Path::new("")).unwrap(), ["second"]);
        assert!(disk.create(second).unwrap().is_empty().unwrap(), "it becomes empty");
        disk.remove(second).unwrap();
        for _ in 0..2 {
            disk.create_directory(Path::new("folder")).unwrap();
        }
        let error = disk.create(Path::new("nosuch/file")).unwrap_err();
        let text = "cannot create nosuch/file: No such file or directory (os error 2)";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn nothing_is_done_by_the_name_of_a_directory_that_could_not_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "kept").unwrap();
        for number in [2, 13, 23, 24] {
            let error = io::Error::from_raw_os_error(number);
            let text = format!("cannot open .: {error}");
            let disk = RealDisk::of(Directory::failed(folder.path().to_owned(), error));
            let (file, other) = (Path::new("file"), Path::new("other"));
            let tried = [
                disk.create(file).map(drop),
                disk.open(file).map(drop),
                disk.open_to_append(file).map(drop),
                disk.rename(file, other),
                disk.remove(file),
                disk.list(Path::new("")).map(drop),
                disk.create_directory(other),
                disk.sync_directory(Path::new("")),
                disk.place(file).map(drop),
            ];
            for error in tried.map(Result::unwrap_err) {
                assert_eq!(error.to_string(), text);
                assert!(!error.is_not_found(), "there may be such a file");
            }
            assert!(!disk.is_by_name());
        }
        assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"kept");
        assert!(!folder.path().join("other").exists());
    }
}
