//! Each file of `deploy/` passes its linter.

use std::fs;
use std::path::Path;
use std::process::Command;

use deploy_test::{checkov, file, linters, output, passes, printed, repository, text};

/// Checks of checkov that do not apply, each with the reason.
const CHECKOV_SKIPPED: &[&str] = &[
    // kubectl's argument names the namespace.
    "CKV_K8S_21",
    // Users build and push the image themselves: there is no digest to name, and the tag has the
    // version.
    "CKV_K8S_43",
    "CKV_K8S_15",
    // The account's key encrypts volumes.
    "CKV_AWS_189",
];

/// Checks that the program succeeds with the words and these files of `deploy/`.
fn lint(program: &Path, words: &[&str], names: &[&str]) {
    let mut command = Command::new(program);
    command.args(words).args(names.iter().map(|name| file(name)));
    assert!(passes(&mut command), "{names:?}");
}

#[test]
fn dockerfile() {
    let Some(bin) = linters() else { return };
    lint(&bin.join("hadolint"), &[], &["docker/Dockerfile"]);
}

#[test]
fn compose_file() {
    let Some(bin) = linters() else { return };
    let schema = ["--builtin-schema", "vendor.compose-spec"];
    lint(&bin.join("check-jsonschema"), &schema, &["docker/compose.yaml"]);
}

#[test]
fn manifests() {
    let Some(bin) = linters() else { return };
    lint(&bin.join("kubernetes-validate"), &["--strict"], &["kubernetes/weft.yaml"]);
}

#[test]
fn style_of_yaml() {
    let Some(bin) = linters() else { return };
    let rules = "{extends: default, rules: {document-start: disable, line-length: {max: 100}, \
                 braces: {max-spaces-inside: 1}}}";
    let names = ["docker/compose.yaml", "kubernetes/weft.yaml"];
    lint(&bin.join("yamllint"), &["--strict", "-d", rules], &names);
}

#[test]
fn shell_scripts() {
    let Some(bin) = linters() else { return };
    lint(&bin.join("shellcheck"), &[], &["install.sh", "probe", "docker/start"]);
}

#[test]
fn unit() {
    // systemd comes with the system, not from a language's registry.
    if !passes(Command::new("systemd-analyze").arg("--version")) {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "systemd-analyze is missing");
        eprintln!("skipped: systemd-analyze is missing");
        return;
    }
    // systemd-analyze requires that the program exists.
    let program = "ExecStart=/usr/local/bin/weft ";
    let with_program = text("systemd/weft.service").replace(program, "ExecStart=/bin/true ");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weft.service");
    fs::write(&path, with_program).unwrap();
    // A wrong line is only a warning: the status stays 0.
    let verify = output(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(path));
    assert_eq!((printed(&verify).as_str(), verify.status.success()), ("", true));
    // 0 is the least exposed and 10 the most; the option counts tenths.
    let words = ["security", "--offline=true", "--threshold=15", "--no-pager"];
    lint(Path::new("systemd-analyze"), &words, &["systemd/weft.service"]);
}

#[test]
fn terraform_and_exposure() {
    let Some(bin) = checkov() else { return };
    let mut command = Command::new(bin.join("python"));
    command.args(["-m", "checkov.main", "--quiet", "--compact", "--skip-download"]);
    command.args(["--output", "json", "--directory"]).arg(repository().join("deploy"));
    command.args(["--framework", "terraform", "kubernetes", "dockerfile"]);
    command.args(["--skip-check", &CHECKOV_SKIPPED.join(",")]);
    let output = output(&mut command);
    let printed = printed(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&printed);
    // One report for each kind of file.
    let reports = json.as_array().expect(&printed);
    let sum = |name: &str| -> u64 {
        reports.iter().map(|report| report["summary"][name].as_u64().expect(&printed)).sum()
    };
    assert_eq!((sum("failed"), sum("parsing_errors")), (0, 0), "{printed}");
    assert!(sum("passed") > 150, "{printed}");
}
