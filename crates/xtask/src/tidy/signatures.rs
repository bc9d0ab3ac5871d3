//! The names and parameters of functions.

use super::Finding;
use super::manifests;
use super::rust::{Function, Rust};
use super::tree::{File, Tree};

/// Starts of names that tell when a function runs, and not what it does.
const STEPS: &[&str] = &["run_", "call_", "execute_"];

/// No function of the product is named after its place in a chain of calls.
pub fn steps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| manifests::is_product(file)) {
        for function in product(file, rust).filter(|function| !function.is_of_trait) {
            if STEPS.iter().any(|step| function.name.starts_with(step)) {
                let message = format!("`{}`: name it after what it does", function.name);
                findings.push(Finding::new(&file.path, function.line, message));
            }
        }
    }
    findings
}

/// No function bundles parameters in a tuple, whose parts have no names where it is called.
pub fn tuples(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        for function in product(file, rust) {
            let message = || format!("`{}` takes a tuple: give its parts a type", function.path);
            let found =
                function.tuples.iter().map(|line| Finding::new(&file.path, *line, message()));
            findings.extend(found);
        }
    }
    findings
}

fn product<'t>(file: &'t File, rust: &'t Rust) -> impl Iterator<Item = &'t Function> {
    rust.functions.iter().filter(|function| !file.is_test_line(function.line))
}
