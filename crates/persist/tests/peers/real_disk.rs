//! A folder as a disk.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use persist::disk::{Disk, DiskError, DiskFile, DiskOperation};

#[derive(Clone, Debug)]
pub struct RealDisk(pub PathBuf);

#[derive(Clone, Debug)]
pub struct RealFile(Arc<File>, PathBuf);

fn said<R>(operation: DiskOperation, path: &Path, result: io::Result<R>) -> Result<R, DiskError> {
    result.map_err(|error| DiskError { operation, path: path.to_owned(), error })
}

impl RealDisk {
    fn open_with(
        &self,
        operation: DiskOperation,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<RealFile, DiskError> {
        let file = said(operation, path, options.open(self.0.join(path)))?;
        Ok(RealFile(Arc::new(file), path.to_owned()))
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn create(&self, path: &Path) -> Result<RealFile, DiskError> {
        let file = self.open_with(
            DiskOperation::Create,
            path,
            OpenOptions::new().create(true).append(true).read(true),
        )?;
        file.truncate(0)?;
        Ok(file)
    }

    fn open(&self, path: &Path) -> Result<RealFile, DiskError> {
        self.open_with(DiskOperation::Open, path, OpenOptions::new().read(true))
    }

    fn open_to_append(&self, path: &Path) -> Result<RealFile, DiskError> {
        self.open_with(DiskOperation::Open, path, OpenOptions::new().read(true).append(true))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        said(DiskOperation::Rename, from, fs::rename(self.0.join(from), self.0.join(to)))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        said(DiskOperation::Remove, path, fs::remove_file(self.0.join(path)))
    }

    fn list(&self, directory: &Path) -> Result<Vec<OsString>, DiskError> {
        let entries = fs::read_dir(self.0.join(directory));
        let names = entries.and_then(|all| all.map(|entry| Ok(entry?.file_name())).collect());
        said(DiskOperation::List, directory, names)
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        said(DiskOperation::CreateDirectory, path, fs::create_dir_all(self.0.join(path)))
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        let synced = File::open(self.0.join(path)).and_then(|directory| directory.sync_all());
        said(DiskOperation::SyncDirectory, path, synced)
    }
}

impl DiskFile for RealFile {
    fn append(&self, parts: &[&[u8]]) -> Result<(), DiskError> {
        let written = parts.iter().try_for_each(|part| (&*self.0).write_all(part));
        said(DiskOperation::Append, &self.1, written)
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        let mut read = 0;
        while read < room.len() {
            let more = self.0.read_at(&mut room[read..], position + read as u64);
            match said(DiskOperation::Read, &self.1, more)? {
                0 => break,
                more => read += more,
            }
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(said(DiskOperation::Len, &self.1, self.0.metadata())?.len())
    }

    fn truncate(&self, len: u64) -> Result<(), DiskError> {
        said(DiskOperation::Truncate, &self.1, self.0.set_len(len))
    }

    fn sync(&self) -> Result<(), DiskError> {
        said(DiskOperation::Sync, &self.1, self.0.sync_all())
    }
}
