//! The files to load, as the manifest names them.

use std::path::PathBuf;

use super::end::FileOrder;
use super::manifest::{self, Manifest, ManifestEntry};
use super::names::AofNames;
use super::step_error::AofError;
use crate::disk::{Disk, DiskError, DiskFile, read_whole};
use crate::rdb_magic::{RDB_MAGIC_BYTES_MAX, has_rdb_magic};

/// A file to load.
#[derive(Debug)]
pub struct LoadFile<F> {
    /// Its entry in the manifest.
    pub entry: ManifestEntry,
    /// Its path.
    pub path: PathBuf,
    /// The file.
    pub file: F,
    /// Its length.
    pub bytes: u64,
    /// Whether another file follows.
    pub order: FileOrder,
}

impl<F: DiskFile> LoadFile<F> {
    /// Whether it begins with an RDB file, which commands may follow.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn begins_with_rdb(&self) -> Result<bool, DiskError> {
        begins_with_rdb(&self.file)
    }
}

pub(crate) fn begins_with_rdb<F: DiskFile>(file: &F) -> Result<bool, DiskError> {
    let mut magic = [0; RDB_MAGIC_BYTES_MAX];
    let read = file.read_at(0, &mut magic)?;
    Ok(has_rdb_magic(&magic[..read]))
}

/// Reads the manifest of an append-only file. Without a manifest, the result is empty.
pub(crate) fn read_manifest<D: Disk>(disk: &D, names: &AofNames) -> Result<Manifest, AofError> {
    let path = names.path(&names.manifest());
    let file = match disk.open(&path) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(Manifest::default()),
        Err(error) => return Err(error.into()),
    };
    let text = read_whole(&file, &path, manifest::BYTES_MAX)?;
    Manifest::parse(&text).map_err(|error| AofError::Manifest(path, error))
}

/// Opens the files that a manifest names, in the order in which they are loaded.
pub(crate) fn load_files<D: Disk>(
    disk: &D,
    names: &AofNames,
    manifest: &Manifest,
) -> Result<Vec<LoadFile<D::File>>, DiskError> {
    let count = manifest.load_order().count();
    let files = manifest.load_order().enumerate().map(|(index, entry)| {
        let path = names.path(&entry.name);
        let file = disk.open(&path)?;
        let bytes = file.len()?;
        let order = if index + 1 == count { FileOrder::Last } else { FileOrder::Earlier };
        Ok(LoadFile { entry: manifest.trusted(entry), path, file, bytes, order })
    });
    files.collect()
}
