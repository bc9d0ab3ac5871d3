//! Where a report goes. A file that nobody has named is replaced only if it is a report.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::args::ReportArgs;
use super::write::TITLE;
use crate::Error;
use crate::page::Page;

/// Where the page goes if nobody says so.
const PAGE: &str = "weft-report.html";

/// A report says in its first bytes what it is.
const HEAD_BYTES: u64 = 1024;

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
        if page == markdown {
            return Err(Error::Usage(format!(
                "{} would be the page and its Markdown: name another file with --markdown",
                page.display()
            )));
        }
        check(&markdown, args.markdown.is_some(), "--markdown")?;
        Ok(Files { page, markdown })
    }

    /// Writes both.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn write(&self, page: &Page) -> Result<(), Error> {
        let write = |path: &Path, text: String| {
            fs::write(path, text).map_err(Error::io(format!("write {}", path.display())))
        };
        write(&self.page, page.to_html())?;
        write(&self.markdown, page.to_markdown())
    }
}

fn check(path: &Path, is_named: bool, option: &str) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found = fs::metadata(folder.unwrap_or(Path::new("."))).map(drop);
    found.map_err(Error::io(format!("write {}", path.display())))?;
    if path.is_dir() {
        return Err(Error::Usage(format!("{} is a folder", path.display())));
    }
    if is_named || !path.exists() || is_report(path) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} exists and is no report, so it is not replaced: name another file with {option}",
        path.display()
    )))
}

/// Whether a file was written by this command.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    let starts = [format!("# {TITLE}"), "<!DOCTYPE html>".to_owned()];
    let [markdown, page] = starts.map(|start| head.starts_with(&start));
    read.is_ok() && (markdown || page && head.contains(&format!("<title>{TITLE}")))
}
