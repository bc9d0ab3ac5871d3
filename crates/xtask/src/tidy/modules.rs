//! The modules of one Rust file: what each defines, and what it imports under which name.
//!
//! A file is one module, and more where it holds `mod name { .. }`. Items that only tests compile
//! are left out. `graph.rs` joins the modules of a crate and follows the names.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

use super::rust::{attributes, is_test_only};

/// One module of a file.
pub struct Module {
    /// Its name below the module of the file; empty for the file itself.
    pub path: Vec<String>,
    /// First and last line.
    pub lines: (usize, usize),
    /// The names that it defines.
    pub items: Vec<String>,
    /// The names that it imports.
    pub imports: Vec<Import>,
}

/// One name that a `use` brings in.
pub struct Import {
    /// The line where the `use` starts.
    pub line: usize,
    /// Under which name; none for `*` and `as _`.
    pub name: Option<String>,
    /// The path as it is written, without the `*`.
    pub path: Vec<String>,
    /// Whether it is `path::*`.
    pub is_glob: bool,
}

/// Every module of the file, the file itself first. Names that `#[macro_export]` puts at the root
/// of the crate come second.
pub fn read(file: &syn::File) -> (Vec<Module>, Vec<String>) {
    let whole = Module { path: vec![], lines: (1, usize::MAX), items: vec![], imports: vec![] };
    let mut walk = ModuleWalk { modules: vec![whole], current: 0, exported_macros: vec![] };
    walk.visit_file(file);
    (walk.modules, walk.exported_macros)
}

struct ModuleWalk {
    modules: Vec<Module>,
    /// The module whose items are visited.
    current: usize,
    exported_macros: Vec<String>,
}

impl<'ast> Visit<'ast> for ModuleWalk {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_only) {
            return;
        }
        if let Some(name) = defined_name(item) {
            self.modules[self.current].items.push(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() {
            return;
        }
        let mut path = self.modules[self.current].path.clone();
        path.push(item.ident.to_string());
        let inner = Module { path, lines: lines(item), items: vec![], imports: vec![] };
        self.modules.push(inner);
        let outer = std::mem::replace(&mut self.current, self.modules.len() - 1);
        visit::visit_item_mod(self, item);
        self.current = outer;
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let is_exported = item.attrs.iter().any(|a| a.path().is_ident("macro_export"));
        if let Some(name) = item.ident.as_ref().filter(|_| is_exported) {
            self.exported_macros.push(name.to_string());
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut imports = Vec::new();
        let line = lines(item).0;
        leaves(&item.tree, &mut Vec::new(), &mut |name, path, is_glob| {
            imports.push(Import { line, name, path, is_glob });
        });
        self.modules[self.current].imports.append(&mut imports);
    }
}

/// Takes a tree of imports apart: gives the name, the path, and whether it is a glob.
fn leaves(
    tree: &UseTree,
    path: &mut Vec<String>,
    found: &mut impl FnMut(Option<String>, Vec<String>, bool),
) {
    let with = |path: &[String], name: &syn::Ident| -> Vec<String> {
        // `a::{self}` imports `a`.
        let own = (name != "self" || path.is_empty()).then(|| name.to_string());
        path.iter().cloned().chain(own).collect()
    };
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            leaves(&part.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => {
            for part in &group.items {
                leaves(part, path, found);
            }
        }
        UseTree::Name(leaf) => {
            let path = with(path, &leaf.ident);
            found(path.last().cloned(), path, false);
        }
        UseTree::Rename(leaf) => {
            let name = Some(leaf.rename.to_string()).filter(|name| name != "_");
            found(name, with(path, &leaf.ident), false);
        }
        UseTree::Glob(_) => found(None, path.clone(), true),
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn lines(item: &impl Spanned) -> (usize, usize) {
    let span = item.span();
    (span.start().line, span.end().line)
}
