//! The text files that are committed, or could be.
//!
//! Git lists them, so that build output and ignored files are never read. Each Rust file is parsed
//! once, before the checks. Paths are relative to the workspace root and have `/` between their
//! parts. Binary files are left out.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::Failure;

use super::rust::Rust;

/// Every file of the project.
pub struct Tree {
    /// In the order of their paths.
    pub files: Vec<File>,
}

/// One text file.
pub struct File {
    /// From the workspace root, such as `crates/base/src/lib.rs`.
    pub path: String,
    /// The whole of it.
    pub text: String,
    /// The facts about it, if it is Rust.
    pub rust: Option<Rust>,
    /// Whether only tests, benches, examples or fuzzers run it.
    pub is_test: bool,
}

/// Folders whose Rust files are never part of a shipped crate.
const TEST_FOLDERS: &[&str] = &["tests", "benches", "examples", "fuzz"];

impl Tree {
    /// Reads the files that git tracks in the workspace, and those that it does not ignore.
    ///
    /// # Errors
    /// Fails when git does not answer, or a Rust file does not parse.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let mut sources = Vec::new();
        for path in listed(root)? {
            // Git also lists removed files until the removal is committed, and links to folders.
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                sources.push((path, text));
            }
        }
        Self::of(sources)
    }

    /// Builds the tree from paths and texts.
    ///
    /// # Errors
    /// Names the Rust file that does not parse, and the line.
    pub fn of(sources: Vec<(String, String)>) -> Result<Self, Failure> {
        let mut files = Vec::new();
        for (path, text) in sources {
            let rust = match path.ends_with(".rs") {
                true => Some(Rust::parse(&text).map_err(|e| format!("{path}:{e}"))?),
                false => None,
            };
            let is_test = in_test_folder(&path) || rust.as_ref().is_some_and(|r| r.whole_is_test);
            files.push(File { path, text, rust, is_test });
        }
        mark_test_modules(&mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The file at this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files that are not generated.
    pub fn rust(&self) -> impl Iterator<Item = (&File, &Rust)> {
        let rust = self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)));
        rust.filter(|(file, _)| !file.is_generated())
    }
}

impl File {
    /// The lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The folder under `crates/` this file belongs to.
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the compiler starts at this file: a library, a binary, or a build script.
    pub fn is_crate_root(&self) -> bool {
        let Some((_, inside)) =
            self.path.strip_prefix("crates/").and_then(|path| path.split_once('/'))
        else {
            return false;
        };
        matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs")
            || inside.strip_prefix("src/bin/").is_some_and(|bin| !bin.contains('/'))
    }

    /// Whether the first line marks the file as written by a program.
    pub fn is_generated(&self) -> bool {
        self.text.lines().next().is_some_and(|line| line.contains("@generated"))
    }

    /// Whether only tests run the code on this line.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.rust.as_ref().is_some_and(|rust| rust.is_test_line(line))
    }

    /// Whether a package manager wrote the file to pin versions.
    pub fn is_lock(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".lock") || matches!(name, "package-lock.json" | "go.sum")
    }
}

/// The paths git tracks, and those it would add.
fn listed(root: &Path) -> Result<BTreeSet<String>, Failure> {
    let output = Command::new("git")
        // In a container, the clone may belong to another user; reading its index is harmless.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("tidy asks git for the list of files, and git did not start: {e}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("tidy asks git for the list of files, and git refused: {reason}"));
    }
    let paths = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

fn in_test_folder(path: &str) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    let name = folders.pop().unwrap_or_default();
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    folders.iter().any(|folder| TEST_FOLDERS.contains(folder))
        || stem == "tests"
        || stem.ends_with("_tests")
}

/// Marks files that are declared as `#[cfg(test)] mod name;`, since they do not show it themselves.
fn mark_test_modules(files: &mut [File]) {
    let mut marked = BTreeSet::new();
    for file in files.iter() {
        let Some(rust) = &file.rust else { continue };
        let folder = module_folder(&file.path);
        for module in &rust.test_modules {
            marked.insert(format!("{folder}/{module}.rs"));
            marked.insert(format!("{folder}/{module}/mod.rs"));
        }
    }
    for file in files {
        file.is_test |= marked.contains(&file.path);
    }
}

/// Where the modules declared in a file live.
fn module_folder(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match path.rsplit('/').next() {
        Some("lib.rs" | "main.rs" | "mod.rs") => folder,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Result<Tree, Failure> {
        Tree::of(files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect())
    }

    #[test]
    fn test_code_is_known_by_folder_by_name_and_by_declaration() -> Result<(), Failure> {
        let tree = tree(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod model;\nmod plain;"),
            ("crates/a/src/model.rs", "fn f() {}"),
            ("crates/a/src/plain.rs", "#[cfg(all(test, unix))]\nmod fakes;"),
            ("crates/a/src/plain/fakes.rs", "fn f() {}"),
            ("crates/a/src/plain/tests.rs", "fn f() {}"),
            ("crates/a/tests/all.rs", "fn f() {}"),
            ("crates/a/src/whole.rs", "#![cfg(test)]\nfn f() {}"),
        ])?;
        let tests: Vec<_> = tree.files.iter().filter(|f| f.is_test).map(|f| &f.path[9..]).collect();
        let expected = [
            "src/model.rs",
            "src/plain/fakes.rs",
            "src/plain/tests.rs",
            "src/whole.rs",
            "tests/all.rs",
        ];
        assert_eq!(tests, expected);
        Ok(())
    }

    #[test]
    fn a_file_that_does_not_parse_is_named_with_its_line() {
        let failure = tree(&[("crates/a/src/lib.rs", "//! A.\n\nfn (")]).err();
        assert!(failure.is_some_and(|f| f.starts_with("crates/a/src/lib.rs:3: ")));
    }

    #[test]
    fn crate_roots_are_libraries_binaries_and_build_scripts() -> Result<(), Failure> {
        let tree = tree(&[
            ("crates/a/build.rs", ""),
            ("crates/a/src/bin/one.rs", ""),
            ("crates/a/src/bin/two/part.rs", ""),
            ("crates/a/src/inner/main.rs", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/main.rs", ""),
        ])?;
        let roots: Vec<_> =
            tree.files.iter().filter(|f| f.is_crate_root()).map(|f| &f.path[9..]).collect();
        assert_eq!(roots, ["build.rs", "src/bin/one.rs", "src/lib.rs", "src/main.rs"]);
        Ok(())
    }
}
