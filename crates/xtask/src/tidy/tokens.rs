//! Paths, read from the tokens of a file.
//!
//! The body of a macro call is tokens only, and a banned call inside `assert_eq!(..)` is banned
//! too: so this reads tokens and not syn's tree. A group of imports is taken apart: `use std::{fs,
//! io::Read}` gives `std::fs` and `std::io::Read`.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A path as written, at least one name long.
#[derive(Debug, PartialEq, Eq)]
pub struct PathUse {
    /// The line of its last name, from 1.
    pub line: usize,
    /// Its names, without generics.
    pub names: Vec<String>,
    /// Whether it calls a macro.
    pub is_macro: bool,
}

impl PathUse {
    /// Whether these names follow each other in the path.
    pub fn contains(&self, names: &[&str]) -> bool {
        self.names.windows(names.len()).any(|window| window == names)
    }
}

/// Every path in the tokens, in their order. A keyword is a path of one name.
pub fn scan(stream: TokenStream) -> Vec<PathUse> {
    let mut scan = Scan { paths: Vec::new() };
    scan.level(stream);
    scan.paths
}

struct Scan {
    paths: Vec<PathUse>,
}

impl Scan {
    /// Reads one level of brackets, and those inside it.
    fn level(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Ident(_) => self.path(&tokens, at, &[]),
                TokenTree::Group(group) => {
                    self.level(group.stream());
                    at + 1
                }
                _ => at + 1,
            };
        }
    }

    /// Reads the path that starts at `at`, and returns where it ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, prefix: &[String]) -> usize {
        let mut names = prefix.to_vec();
        let mut line = 0;
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            names.push(ident.to_string());
            line = ident.span().start().line;
            at += 1;
            if !is_separator(tokens, at) {
                break;
            }
            at += 2;
            if let Some(TokenTree::Group(group)) = tokens.get(at)
                && group.delimiter() == Delimiter::Brace
            {
                self.imports(group.stream(), &names);
                return at + 1;
            }
        }
        let is_macro = is_punct(tokens.get(at), '!') && !is_punct(tokens.get(at + 1), '=');
        self.paths.push(PathUse { line, names, is_macro });
        at
    }

    /// Reads `a, b::c, d as e` of an import, each with the prefix.
    fn imports(&mut self, stream: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for part in tokens.split(|token| is_punct(Some(token), ',')) {
            if matches!(part.first(), Some(TokenTree::Ident(_))) {
                self.path(part, 0, prefix);
            }
        }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// Whether `::` follows.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let joint =
        matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.spacing() == Spacing::Joint);
    joint && is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn read(source: &str) -> Vec<String> {
        let stream: TokenStream = source.parse().expect("the source of a test is Rust");
        let written = |path: &PathUse| {
            format!("{}{}", path.names.join("::"), if path.is_macro { "!" } else { "" })
        };
        scan(stream).iter().map(written).collect()
    }

    #[test]
    fn imports_are_taken_apart() {
        let paths = read("use std::{fs, io::{self, Read as _}, net::*};");
        assert_eq!(paths, ["use", "std::fs", "std::io::self", "std::io::Read", "std::net"]);
    }

    #[test]
    fn macro_calls_and_their_bodies_are_read() {
        let paths = read("fn f() { println!(\"std::fs\", a.b(Instant::now())); c != d }");
        assert_eq!(paths, ["fn", "f", "println!", "a", "b", "Instant::now", "c", "d"]);
    }
}
