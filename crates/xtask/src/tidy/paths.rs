//! Paths that comments and pages name.
//!
//! A path in `inline code` is checked from the root of the workspace, if it starts with one of its
//! folders; a link of Markdown from the folder of its page. `FAMILY` or `<name>` stands for any
//! name, and such a path is not checked. Neither are pictures, which are no text files.

use super::Finding;
use super::tree::{File, Tree};

/// Folders whose paths are checked.
const ROOTS: &[&str] = &["crates/", "docs/", "deploy/", ".ci/", ".github/"];

/// Ends of links that are not checked.
const PICTURES: &[&str] = &[".png", ".gif", ".svg"];

/// Every path that a comment or a page names exists.
pub fn named(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let is_page = file.path.ends_with(".md");
        let is_rust = file.path.ends_with(".rs");
        for (number, line) in file.lines() {
            let is_comment = is_rust && line.trim_start().starts_with("//");
            let mut paths = Vec::new();
            if is_page || is_comment {
                paths.extend(code(line).map(str::to_owned));
            }
            if is_page {
                paths.extend(links(line).map(|link| from_folder_of(file, link)));
            }
            for path in paths.iter().filter(|path| !exists(tree, path)) {
                let message = format!("there is no `{path}`");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

/// The paths in the inline code of a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter(|span| ROOTS.iter().any(|root| span.starts_with(root)) && is_plain(span))
}

/// Whether a path is a path and nothing else: no pattern, no place for any name, no command.
fn is_plain(path: &str) -> bool {
    let is_any = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let is_sign = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.');
    path.chars().all(is_sign) && !path.split('/').any(|part| is_any(part) && part != "README.md")
}

/// The targets of the links on a line, without those outside the repository.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.map(|target| target.split('#').next().unwrap_or_default());
    paths.filter(|path| {
        let is_picture = PICTURES.iter().any(|end| path.ends_with(end));
        !path.is_empty() && !path.contains(':') && !path.contains(' ') && !is_picture
    })
}

/// The path from the root of a link on a page.
fn from_folder_of(page: &File, link: &str) -> String {
    let mut parts: Vec<&str> = page.path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let is_below = |file: &File| {
        file.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    tree.files.iter().any(is_below)
}
