//! Names without meaning, redundant names, and names of types that occur twice.
//!
//! A banned name usually hides that the thing has no single purpose: name what it holds or does.

use std::collections::BTreeMap;

use super::Finding;
use super::rust::DeclaredName;
use super::tree::Tree;

/// Words that may not be part of the name of a file, folder, module or type.
const BANNED: &[&str] =
    &["manager", "managers", "helper", "helpers", "util", "utils", "common", "commons"];

/// Names of types that always need their module: `bench::Options`.
const SHARED: &[&str] = &["Error", "Options", "Builder"];

/// No file, folder, module or type has a name that says nothing.
pub fn banned(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if let Some(word) = banned_word(&file.path) {
            let message = format!("`{word}` in a path says nothing: name what it is for");
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    for (file, rust) in tree.rust() {
        for DeclaredName { line, name, .. } in &rust.names {
            if banned_word(name).is_some() {
                let message = format!("`{name}` says nothing: name what it holds or does");
                findings.push(Finding::new(&file.path, *line, message));
            }
        }
    }
    findings
}

/// A type has a name that no other type of the workspace has, tests left out.
pub fn types(tree: &Tree) -> Vec<Finding> {
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let types = rust.names.iter().filter(|name| name.is_type && !SHARED.contains(&&*name.name));
        for DeclaredName { line, name, .. } in types.filter(|name| !file.is_test_line(name.line)) {
            if let Some(place) = first.get(name.as_str()) {
                let message = format!("`{name}` is the name of a type in {place} too");
                findings.push(Finding::new(&file.path, *line, message).about(name));
            } else {
                first.insert(name, format!("{}:{line}", file.path));
            }
        }
    }
    findings
}

/// No accessor is called `get_x`: it is called `x`. A test may be about GET, and a method that
/// implements a trait has no choice.
pub fn getters(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for function in rust.functions.iter().filter(|f| !f.is_of_trait) {
            if let Some(rest) = function.name.strip_prefix("get_")
                && !file.is_test_line(function.line)
            {
                let message = format!("`{}` is called `{rest}` here", function.name);
                findings.push(Finding::new(&file.path, function.line, message));
            }
        }
    }
    findings
}

fn banned_word(name: &str) -> Option<&'static str> {
    let words = words(name);
    BANNED.iter().find(|banned| words.iter().any(|word| word == *banned)).copied()
}

/// The words of a path, a `snake_case` or a `CamelCase` name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && c.is_alphanumeric()
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_not_parts_of_words_are_banned() {
        assert_eq!(banned_word("crates/a/src/string_utils.rs"), Some("utils"));
        assert_eq!(banned_word("ShardManager"), Some("manager"));
        assert_eq!(banned_word("tests/common/mod.rs"), Some("common"));
        assert_eq!(banned_word("Uncommon"), None);
        assert_eq!(banned_word("crates/a/src/command.rs"), None);
    }
}
