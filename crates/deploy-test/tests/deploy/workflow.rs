//! The workflow for hosted CI: its form, and what a workflow must not trust.

use std::process::Command;

use deploy_test::{holds, linters, repository};

#[test]
fn the_workflow_is_valid_and_safe() {
    let Some(bin) = linters() else { return };
    let workflow = repository().join(".github/workflows/ci.yml");
    let schema = ["--builtin-schema", "vendor.github-workflows"];
    assert!(holds(Command::new(bin.join("check-jsonschema")).args(schema).arg(&workflow)));
    let zizmor = ["--offline", "--no-progress"];
    assert!(holds(Command::new(bin.join("zizmor")).args(zizmor).arg(&workflow)));
}
