//! One Rust file, reduced to the facts that the checks use.
//!
//! Items come from syn's tree (`Rust::parse`), paths from the tokens below it
//! (`tokens.rs`), because macros keep their bodies as tokens. Comments and strings are in neither,
//! so nothing here mistakes a word in a sentence for code. Names are taken as they are written:
//! renaming imports and macros that build names are not followed.

use proc_macro2::{Span, TokenStream};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta};

use super::modules::{self, Module};
use super::tokens::{self, PathUse};

/// The facts about one file.
#[derive(Default)]
pub struct Rust {
    /// Every function with a body.
    pub functions: Vec<Function>,
    /// Structs, enums, unions, traits, type aliases, and modules.
    pub names: Vec<DeclaredName>,
    /// Every path in expressions, types and imports, groups of imports taken apart.
    pub paths: Vec<PathUse>,
    /// The module that the file is, and those inside it.
    pub modules: Vec<Module>,
    /// Macros that are named at the root of the crate.
    pub exported_macros: Vec<String>,
    /// Whether the file forbids unsafe code for its whole crate.
    pub forbids_unsafe: bool,
    /// Whether `#![cfg(test)]` is at its head.
    pub whole_is_test: bool,
    /// The files declared as `#[cfg(test)] mod name;`.
    pub test_modules: Vec<String>,
    /// First and last line of each item that only tests compile.
    test_lines: Vec<(usize, usize)>,
}

/// The name of a type or module, where it is declared.
pub struct DeclaredName {
    /// From 1.
    pub line: usize,
    /// As it is written.
    pub name: String,
    /// Whether it is a type or trait, and no module.
    pub is_type: bool,
}

/// One function.
pub struct Function {
    /// The line of its signature, from 1.
    pub line: usize,
    /// Its own name.
    pub name: String,
    /// The name with its scopes, such as `Table::insert`.
    pub path: String,
    /// Lines from the signature to the closing brace, both counted.
    pub lines: usize,
    /// Whether a trait that is implemented here prescribes the name.
    pub is_of_trait: bool,
    /// The lines of its parameters that are patterns of tuples.
    pub tuples: Vec<usize>,
}

impl Rust {
    /// Reads the source.
    ///
    /// # Errors
    /// Gives `LINE: reason` where syn cannot read it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let located = |e: syn::Error| format!("{}: {e}", e.span().start().line);
        let file = syn::parse_file(text).map_err(located)?;
        let stream: TokenStream =
            text.parse().map_err(|e: proc_macro2::LexError| located(e.into()))?;
        let mut rust = Self {
            whole_is_test: file.attrs.iter().any(is_test_only),
            forbids_unsafe: file.attrs.iter().any(|a| is_list(a, "forbid", "unsafe_code")),
            ..Self::default()
        };
        let mut walk = ItemWalk { rust: &mut rust, scope: Vec::new(), in_trait_impl: false };
        walk.visit_file(&file);
        rust.paths = tokens::scan(stream);
        (rust.modules, rust.exported_macros) = modules::read(&file);
        Ok(rust)
    }

    /// The innermost module that holds the line, as its names below the file's own module.
    pub fn module_at(&self, line: usize) -> &[String] {
        let holds = |module: &&Module| (module.lines.0..=module.lines.1).contains(&line);
        let innermost = self.modules.iter().filter(holds).max_by_key(|module| module.path.len());
        innermost.map_or(&[], |module| &module.path)
    }

    /// Whether the line belongs to an item that only tests compile.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.whole_is_test || self.test_lines.iter().any(|(from, to)| (*from..=*to).contains(&line))
    }
}

/// Walks the items with the names of their scopes.
struct ItemWalk<'a> {
    rust: &'a mut Rust,
    scope: Vec<String>,
    in_trait_impl: bool,
}

impl ItemWalk<'_> {
    fn within(&mut self, name: String, of_trait: bool, inner: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_trait_impl, of_trait);
        self.scope.push(name);
        inner(self);
        self.scope.pop();
        self.in_trait_impl = outer;
    }

    fn name(&mut self, ident: &syn::Ident, is_type: bool) {
        let name = DeclaredName { line: line(ident.span()), name: ident.to_string(), is_type };
        self.rust.names.push(name);
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = line(signature.fn_token.span);
        let last = block.brace_token.span.close().end().line;
        let name = signature.ident.to_string();
        let mut path = self.scope.clone();
        path.push(name.clone());
        self.rust.functions.push(Function {
            line: first,
            name,
            path: path.join("::"),
            lines: last + 1 - first,
            is_of_trait: self.in_trait_impl,
            tuples: signature.inputs.iter().filter_map(tuple_line).collect(),
        });
    }
}

impl<'ast> Visit<'ast> for ItemWalk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_only) {
            let span = syn::spanned::Spanned::span(item);
            self.rust.test_lines.push((span.start().line, span.end().line));
            if let Item::Mod(module) = item
                && module.content.is_none()
            {
                self.rust.test_modules.push(module.ident.to_string());
            }
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.name(&item.ident, false);
        self.within(item.ident.to_string(), false, |walk| visit::visit_item_mod(walk, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        let of_trait = item.trait_.is_some();
        let name = name.unwrap_or_else(|| "impl".to_owned());
        self.within(name, of_trait, |walk| visit::visit_item_impl(walk, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident, true);
        self.within(item.ident.to_string(), false, |walk| visit::visit_item_trait(walk, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        self.within(item.sig.ident.to_string(), false, |walk| visit::visit_item_fn(walk, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.attrs.iter().any(is_test_only) {
            let span = syn::spanned::Spanned::span(item);
            self.rust.test_lines.push((span.start().line, span.end().line));
        }
        self.function(&item.sig, &item.block);
        let name = item.sig.ident.to_string();
        self.within(name, false, |walk| visit::visit_impl_item_fn(walk, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        let name = item.sig.ident.to_string();
        self.within(name, false, |walk| visit::visit_trait_item_fn(walk, item));
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident, true);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident, true);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.name(&item.ident, true);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name(&item.ident, true);
    }
}

/// The line of a parameter like `(a, b): (A, B)`.
fn tuple_line(parameter: &syn::FnArg) -> Option<usize> {
    match parameter {
        syn::FnArg::Typed(typed) => match &*typed.pat {
            syn::Pat::Tuple(tuple) => Some(line(tuple.paren_token.span.open())),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

/// The attributes of an item; empty for rare kinds of items.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether only tests or model checkers compile the item with the attribute.
pub fn is_test_only(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let Meta::List(list) = &attribute.meta else { return false };
    let condition = list.tokens.to_string();
    let words: Vec<&str> = condition.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let names_test = ["test", "loom", "shuttle"].iter().any(|word| words.contains(word));
    // `any(test, ..)` and `not(test)` may be compiled into the product too.
    let maybe_product = words.contains(&"not") || words.contains(&"any");
    list.path.is_ident("cfg") && names_test && !maybe_product
}

/// Whether the attribute is `name(.., value, ..)`.
fn is_list(attribute: &Attribute, name: &str, value: &str) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    list.path.is_ident(name) && list.tokens.clone().into_iter().any(|t| t.to_string() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_length_and_the_path_they_stand_in() -> Result<(), String> {
        let rust = Rust::parse(
            "/// Doc.\nfn one() {\n}\nimpl<T> Table<T> {\n    #[inline]\n    fn two(&self) {}\n}\n\
             impl Drop for Table {\n    fn drop(&mut self) {\n        fn three() {}\n    }\n}\n\
             trait Walks {\n    fn bare();\n    fn four() {}\n}",
        )?;
        let seen: Vec<_> = rust
            .functions
            .iter()
            .map(|f| format!("{} {} {} {}", f.line, f.path, f.lines, f.is_of_trait))
            .collect();
        let expected = [
            "2 one 2 false",
            "6 Table::two 1 false",
            "9 Table::drop 3 true",
            "10 Table::drop::three 1 false",
            "15 Walks::four 1 false",
        ];
        assert_eq!(seen, expected);
        Ok(())
    }

    #[test]
    fn lines_of_tests_and_of_the_product_are_distinguished() -> Result<(), String> {
        let rust = Rust::parse(
            "fn product() {}\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n\
             #[cfg(not(test))]\nfn real() {}\n#[cfg(any(test, feature = \"x\"))]\nfn both() {}\n\
             #[test]\nfn t() {}",
        )?;
        let tests: Vec<_> = (1..=11).filter(|line| rust.is_test_line(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 10, 11]);
        Ok(())
    }
}
