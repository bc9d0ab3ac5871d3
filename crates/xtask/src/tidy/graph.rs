//! Which file of a crate uses which other file.
//!
//! ```text
//! use super::Table;     ->  net/mod.rs: pub use table::Table;   ->  net/table.rs
//! use crate::net;  net::open(..)  ->  net/mod.rs: pub use socket::open;  ->  net/socket.rs
//! ```
//!
//! Each path is followed through imports and exports to the file that defines its item, and counts
//! as a use of that file. So `mod name;`, an export, and an import of a module are no uses; paths
//! through them are. A module file (`mod.rs`, `lib.rs`, or `net.rs` next to `net/`) may use the
//! files below it: that does not count, because the file represents its folder and lists the
//! contents. Files below use items that the module file defines, and that counts.
//!
//! Code for tests is left out. Calls of methods name no file and are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Import, Module};
use super::rust::Rust;
use super::tree::{File, Tree};

/// The files of a crate and their uses of each other.
pub struct Graph<'t> {
    /// The name of the crate's folder.
    pub crate_name: &'t str,
    /// In the order of their paths.
    pub files: Vec<&'t File>,
    /// Of each pair of files the first use.
    pub uses: Vec<Use>,
}

/// One file uses another one.
pub struct Use {
    /// The index of the file that uses.
    pub from: usize,
    /// The index of the file that is used.
    pub to: usize,
    /// Where, from 1.
    pub line: usize,
}

/// The longest chain of imports: names of a longer one go round in a circle.
const STEPS_MAX: u32 = 32;

type Path = Vec<String>;

/// The graph of every crate.
pub fn graphs(tree: &Tree) -> Vec<Graph<'_>> {
    let mut crates: BTreeMap<&str, Vec<(&File, &Rust)>> = BTreeMap::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !file.is_test) {
        if let Some((name, inside)) = source(file)
            && !inside.starts_with("bin/")
        {
            crates.entry(name).or_default().push((file, rust));
        }
    }
    crates.into_iter().map(|(name, files)| graph(name, &files)).collect()
}

/// The crate of a file below `src/`, and its path from there.
pub fn source(file: &File) -> Option<(&str, &str)> {
    file.path.strip_prefix("crates/")?.split_once("/src/")
}

impl Graph<'_> {
    /// The path of a file from `src/`.
    pub fn path(&self, index: usize) -> &str {
        source(self.files[index]).map_or("", |(_, inside)| inside)
    }

    /// Each set of two or more files that use each other, directly or through others of the set.
    pub fn cycles(&self) -> Vec<Vec<usize>> {
        let count = self.files.len();
        let reached: Vec<BTreeSet<usize>> = (0..count).map(|from| self.reached(from)).collect();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for at in 0..count {
            let back = |other: &usize| reached[*other].contains(&at);
            let cycle: Vec<usize> = reached[at].iter().copied().filter(back).collect();
            if cycle.len() > 1 && seen.insert(cycle.clone()) {
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The files that are used from this one on, over any number of steps.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let next = self.uses.iter().filter(|edge| edge.from == at).map(|edge| edge.to);
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    }
}

fn graph<'t>(crate_name: &'t str, sources: &[(&'t File, &'t Rust)]) -> Graph<'t> {
    let names = ModuleNames::of(sources);
    let mut first: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (from, (file, rust)) in sources.iter().enumerate() {
        let own = module_path(file);
        let mut found = |to: Option<usize>, line: usize| {
            let is_below = |to: &usize| module_path(sources[*to].0).starts_with(&own);
            if let Some(to) = to.filter(|to| !is_below(to) && !file.is_test_line(line)) {
                let known = first.entry((from, to)).or_insert(line);
                *known = line.min(*known);
            }
        };
        for path in rust.paths.iter().filter(|path| path.names.len() > 1) {
            let place = [own.as_slice(), rust.module_at(path.line)].concat();
            found(names.file(&place, &path.names), path.line);
        }
        for module in &rust.modules {
            let place = [own.clone(), module.path.clone()].concat();
            for glob in module.imports.iter().filter(|import| import.is_glob) {
                found(names.glob(&place, &glob.path), glob.line);
            }
        }
    }
    let uses = first.into_iter().map(|((from, to), line)| Use { from, to, line }).collect();
    Graph { crate_name, files: sources.iter().map(|(file, _)| *file).collect(), uses }
}

/// The path of a file's module: `["net", "table"]` for `src/net/table.rs`.
fn module_path(file: &File) -> Path {
    let inside = source(file).map_or("", |(_, inside)| inside);
    let mut parts: Path = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_root = parts.len() == 1 && ["lib", "main"].contains(&parts[0].as_str());
    if is_root || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// All modules of a crate by their paths. The root may have two files, `lib.rs` and `main.rs`.
struct ModuleNames<'t> {
    modules: BTreeMap<Path, Vec<(usize, &'t Module)>>,
    /// The file of each macro that is named at the root wherever it is defined.
    macros: BTreeMap<&'t str, usize>,
}

/// The target of a path.
enum PathTarget {
    /// An item of this file.
    Item(usize),
    /// The module with this path.
    Module(Path),
}

impl<'t> ModuleNames<'t> {
    fn of(sources: &[(&'t File, &'t Rust)]) -> Self {
        let mut names = Self { modules: BTreeMap::new(), macros: BTreeMap::new() };
        for (index, (file, rust)) in sources.iter().enumerate() {
            for module in &rust.modules {
                let path = [module_path(file), module.path.clone()].concat();
                for above in 0..path.len() {
                    names.modules.entry(path[..above].to_vec()).or_default();
                }
                names.modules.entry(path).or_default().push((index, module));
            }
            names.macros.extend(rust.exported_macros.iter().map(|name| (name.as_str(), index)));
        }
        names
    }

    /// The file that defines what the path names in this module, if it is of this crate.
    fn file(&self, place: &[String], path: &[String]) -> Option<usize> {
        match self.named(place, path, 0)? {
            PathTarget::Item(file) => Some(file),
            PathTarget::Module(_) => None,
        }
    }

    /// The file whose names `path::*` imports.
    fn glob(&self, place: &[String], path: &[String]) -> Option<usize> {
        match self.named(place, path, 0)? {
            PathTarget::Item(file) => Some(file),
            PathTarget::Module(module) => self.modules.get(&module)?.first().map(|(file, _)| *file),
        }
    }

    fn named(&self, place: &[String], path: &[String], steps: u32) -> Option<PathTarget> {
        if steps > STEPS_MAX {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.inside(vec![], rest, steps + 1),
            "self" => self.inside(place.to_vec(), rest, steps + 1),
            "super" => self.inside(place.split_last()?.1.to_vec(), rest, steps + 1),
            name => self.local(place, name, path, steps + 1),
        }
    }

    /// Follows a path that starts with a name that the module defines or imports.
    fn local(
        &self,
        place: &[String],
        name: &str,
        path: &[String],
        steps: u32,
    ) -> Option<PathTarget> {
        let modules = self.modules.get(place)?;
        let is_item = modules.iter().any(|(_, module)| module.items.iter().any(|i| i == name));
        let is_child = self.modules.contains_key(&[place, &[name.to_owned()]].concat());
        let imports = || modules.iter().flat_map(|(_, module)| &module.imports);
        let is_import = imports().any(|import| import.name.as_deref() == Some(name));
        if is_item || is_child || is_import {
            return self.inside(place.to_vec(), path, steps);
        }
        let globs = imports().filter(|import| import.is_glob);
        globs.into_iter().find_map(|glob| self.through_glob(place, glob, path, steps))
    }

    /// Follows a path inside a module.
    fn inside(&self, module: Path, path: &[String], steps: u32) -> Option<PathTarget> {
        if steps > STEPS_MAX {
            return None;
        }
        let Some((name, rest)) = path.split_first() else {
            return Some(PathTarget::Module(module));
        };
        if name == "super" {
            return self.inside(module.split_last()?.1.to_vec(), rest, steps + 1);
        }
        let parts = self.modules.get(&module)?;
        let child = [module.as_slice(), std::slice::from_ref(name)].concat();
        if !rest.is_empty() && self.modules.contains_key(&child) {
            return self.inside(child, rest, steps + 1);
        }
        if let Some((file, _)) = parts.iter().find(|(_, part)| part.items.contains(name)) {
            return Some(PathTarget::Item(*file));
        }
        let imports = || parts.iter().flat_map(|(_, part)| &part.imports);
        if let Some(import) = imports().find(|import| import.name.as_ref() == Some(name)) {
            let path = [import.path.as_slice(), rest].concat();
            // `use lock::lock`: the first name is not the one that this imports.
            return match import.path.first() == Some(name) {
                true if self.modules.contains_key(&child) => {
                    self.inside(child, &path[1..], steps + 1)
                }
                true => None,
                false => self.named(&module, &path, steps + 1),
            };
        }
        if self.modules.contains_key(&child) {
            return Some(PathTarget::Module(child));
        }
        let mut globs = imports().filter(|import| import.is_glob);
        if let Some(named) = globs.find_map(|glob| self.through_glob(&module, glob, path, steps)) {
            return Some(named);
        }
        let exported = self.macros.get(name.as_str()).filter(|_| module.is_empty());
        // A macro of the module makes the names that are not found.
        exported.or(parts.first().map(|(file, _)| file)).map(|file| PathTarget::Item(*file))
    }

    /// Follows a path into what `glob` imports, if its first name is there.
    fn through_glob(
        &self,
        place: &[String],
        glob: &Import,
        path: &[String],
        steps: u32,
    ) -> Option<PathTarget> {
        let PathTarget::Module(module) = self.named(place, &glob.path, steps + 1)? else {
            return None;
        };
        let name = path.first()?;
        let parts = self.modules.get(&module)?;
        let has = |part: &Module| {
            part.items.contains(name) || part.imports.iter().any(|i| i.name.as_ref() == Some(name))
        };
        let is_there = parts.iter().any(|(_, part)| has(part));
        is_there.then(|| self.inside(module, path, steps + 1))?
    }
}
