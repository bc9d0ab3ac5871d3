//! The workflow of the hosted CI: its form, and unsafe use of untrusted input.

use std::process::Command;

use deploy_test::{linters, passes, repository};

#[test]
fn the_workflow_is_valid_and_safe() {
    let Some(bin) = linters() else { return };
    let workflow = repository().join(".github/workflows/ci.yml");
    let schema = ["--builtin-schema", "vendor.github-workflows"];
    assert!(passes(Command::new(bin.join("check-jsonschema")).args(schema).arg(&workflow)));
    let zizmor = ["--offline", "--no-progress"];
    assert!(passes(Command::new(bin.join("zizmor")).args(zizmor).arg(&workflow)));
}
