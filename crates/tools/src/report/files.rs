//! The files of a report. A file that the command line does not name is replaced only if it is a
//! report. Errors that can be known before the measurement are found before it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::args::ReportArgs;
use super::write::TITLE;
use crate::Error;
use crate::output;
use crate::output::place;
use crate::page::PageDocument;

/// The default page.
const PAGE: &str = "weft-report.html";

/// A report can be recognized by this many bytes.
const HEAD_BYTES: u64 = 1024;

/// The page and the Markdown.
#[derive(Debug)]
pub(super) struct ReportFiles {
    pub page: PathBuf,
    pub markdown: PathBuf,
}

impl ReportFiles {
    /// The files of a command line, after a check that they can be written.
    pub fn named(args: &ReportArgs) -> Result<ReportFiles, Error> {
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
        Ok(ReportFiles { page, markdown })
    }

    /// Writes both files, the second even if the first fails.
    pub fn write(&self, page: &PageDocument) -> Result<(), Error> {
        let first = output::write(&self.page, &page.to_html());
        let second = output::write(&self.markdown, &page.to_markdown());
        first.and(second)
    }
}

fn check(path: &Path, is_named: bool, option: &str) -> Result<(), Error> {
    if !is_named && fs::symlink_metadata(path).is_ok() && !is_report(path) {
        return Err(Error::Usage(format!(
            "{} exists and is no report, so it is not replaced: name another file with {option}",
            path.display()
        )));
    }
    output::check(path)
}

/// Whether a file was written by this command. Only regular files are read, since a pipe may have
/// no end.
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
    fn the_markdown_is_written_even_if_the_page_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (page, markdown) = (folder.path().join("gone/x.html"), folder.path().join("x.md"));
        let files = ReportFiles { page, markdown: markdown.clone() };
        assert!(files.write(&PageDocument::new("report".to_owned())).is_err());
        assert!(fs::read_to_string(&markdown).unwrap().contains("report"));
    }
}
