//! Where a report goes. A file that nobody has named is replaced only if it is a report.
//!
//! What can be known before the measurement is checked before it. A file is written under another
//! name and renamed, so that a full disk leaves the one that was there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::args::ReportArgs;
use super::write::TITLE;
use crate::Error;
use crate::page::Page;

/// Where the page goes if nobody says so.
const PAGE: &str = "weft-report.html";

/// A report says in its first bytes what it is.
const HEAD_BYTES: u64 = 1024;

/// Who may do what with a new file, less what the process's mask takes away.
const NEW_FILE_MODE: u32 = 0o666;

/// The page and the Markdown.
#[derive(Debug)]
pub(super) struct Files {
    pub page: PathBuf,
    pub markdown: PathBuf,
}

impl Files {
    /// Those of a command line, as far as it is known before the measurement that they can be
    /// written.
    ///
    /// # Errors
    /// When a folder is missing, or what is no report would be replaced.
    pub fn named(args: &ReportArgs) -> Result<Files, Error> {
        let page = args.output.clone().unwrap_or_else(|| PAGE.into());
        let markdown = args.markdown.clone().unwrap_or_else(|| page.with_extension("md"));
        check(&page, args.output.is_some(), "--output")?;
        if place(&page).is_some_and(|first| place(&markdown) == Some(first)) {
            return Err(Error::Usage(format!(
                "{} would be the page and its Markdown: name another file with --markdown",
                page.display()
            )));
        }
        check(&markdown, args.markdown.is_some(), "--markdown")?;
        Ok(Files { page, markdown })
    }

    /// Writes both, the second also if the first fails.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn write(&self, page: &Page) -> Result<(), Error> {
        let write = |path: &Path, text: String| {
            let written = replace(path, text.as_bytes());
            written.map_err(Error::io(format!("write {}", path.display())))
        };
        let first = write(&self.page, page.to_html());
        let second = write(&self.markdown, page.to_markdown());
        first.and(second)
    }
}

fn check(path: &Path, is_named: bool, option: &str) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::Usage(format!("{} is a folder", path.display())));
    }
    if !is_named && fs::symlink_metadata(path).is_ok() && !is_report(path) {
        return Err(Error::Usage(format!(
            "{} exists and is no report, so it is not replaced: name another file with {option}",
            path.display()
        )));
    }
    try_to_write(path).map_err(Error::io(format!("write {}", path.display())))
}

/// Finds out whether [`replace`] could do its work, and leaves everything as it is.
fn try_to_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        // To open a pipe is to wait for its reader.
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(_) => drop(File::options().append(true).open(path)?),
        Err(_) => {}
    }
    beside(path).map(drop)
}

/// Puts the text where the path leads. What is no regular file, such as a device, is written to.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text);
    }
    let mut file = beside(path)?;
    file.write_all(text)?;
    // A link stays one: the file that it names is replaced.
    let place = place(path).unwrap_or_else(|| path.into());
    file.persist(place).map(drop).map_err(|failed| failed.error)
}

/// A new file in the folder of another, which vanishes if it does not take that one's place.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let place = place(path).ok_or(io::ErrorKind::NotFound)?;
    let mode = fs::metadata(&place).map_or(NEW_FILE_MODE, |found| found.permissions().mode());
    let mut builder = tempfile::Builder::new();
    builder.permissions(fs::Permissions::from_mode(mode));
    builder.tempfile_in(place.parent().unwrap_or(Path::new("/")))
}

/// Where a path leads, whatever it is written like; nothing if its folder is missing.
fn place(path: &Path) -> Option<PathBuf> {
    if let Ok(place) = fs::canonicalize(path) {
        return Some(place);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

/// Whether a file was written by this command. Only regular files are looked into: a pipe would
/// have no end.
fn is_report(path: &Path) -> bool {
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    let starts = [format!("# {TITLE}"), "<!DOCTYPE html>".to_owned()];
    let [markdown, page] = starts.map(|start| head.starts_with(&start));
    read.is_ok() && (markdown || page && head.contains(&format!("<title>{TITLE}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_markdown_is_written_also_if_the_page_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (page, markdown) = (folder.path().join("gone/x.html"), folder.path().join("x.md"));
        let files = Files { page, markdown: markdown.clone() };
        assert!(files.write(&Page::new("report".to_owned())).is_err());
        assert!(fs::read_to_string(&markdown).unwrap().contains("report"));
    }

    #[test]
    fn a_link_stays_one_and_modes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }
}
