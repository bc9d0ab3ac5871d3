//! Each file is what its linter takes, and a broken one is not.

use std::fs;
use std::path::Path;
use std::process::Command;

use clients_test::Folder;
use deploy_test::{checkov, file, holds, linters, output, repository, said, text};

/// What `deploy/` has of YAML.
const YAML: [&str; 2] = ["docker/compose.yaml", "kubernetes/weft.yaml"];

/// Checks of checkov that do not apply, each with the reason.
const CHECKOV_SKIPPED: &[&str] = &[
    // The namespace is the one that kubectl is told.
    "CKV_K8S_21",
    // The image is built and pushed by who applies the manifests: there is no digest to name, and
    // its version is in its tag.
    "CKV_K8S_43",
    "CKV_K8S_15",
    // Volumes are encrypted by the account's key.
    "CKV_AWS_189",
];

/// The linter takes the file, and does not take it with `from` replaced by `to`.
fn check(name: &str, (from, to): (&str, &str), linter: impl Fn(&Path) -> Command) {
    let whole = text(name);
    let judged = output(&mut linter(&file(name)));
    assert!(judged.status.success(), "{name}:\n{}", said(&judged));
    assert!(whole.contains(from), "{name} has no {from:?}");
    let folder = Folder::new();
    let broken = folder.path().join(Path::new(name).file_name().unwrap());
    fs::write(&broken, whole.replacen(from, to, 1)).unwrap();
    let judged = output(&mut linter(&broken));
    assert!(!judged.status.success(), "{name} with {to:?} is taken:\n{}", said(&judged));
}

fn linter(program: &Path, words: &[&str], path: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(words).arg(path);
    command
}

#[test]
fn dockerfile() {
    let Some(bin) = linters() else { return };
    let hadolint = |path: &Path| linter(&bin.join("hadolint"), &[], path);
    check("docker/Dockerfile", ("cmake=3.25.*", "cmake"), hadolint);
    check("docker/Dockerfile", ("EXPOSE 6379", "EXPOSE port"), hadolint);
}

#[test]
fn compose_file() {
    let Some(bin) = linters() else { return };
    let schema = ["--builtin-schema", "vendor.compose-spec"];
    let compose = |path: &Path| linter(&bin.join("check-jsonschema"), &schema, path);
    check("docker/compose.yaml", ("    ulimits:", "    limits:"), compose);
    check("docker/compose.yaml", ("cap_drop: [ALL]", "cap_drop: ALL"), compose);
}

#[test]
fn manifests() {
    let Some(bin) = linters() else { return };
    let validate = |path: &Path| linter(&bin.join("kubernetes-validate"), &["--strict"], path);
    check("kubernetes/weft.yaml", ("livenessProbe:", "aliveProbe:"), validate);
    check("kubernetes/weft.yaml", ("replicas: 1", "replicas: one"), validate);
}

#[test]
fn style_of_yaml() {
    let Some(bin) = linters() else { return };
    let rules = "{extends: default, rules: {document-start: disable, line-length: {max: 100}, \
                 braces: {max-spaces-inside: 1}}}";
    for name in YAML {
        let yamllint =
            |path: &Path| linter(&bin.join("yamllint"), &["--strict", "-d", rules], path);
        check(name, ("name: weft\n", "name: weft\nname: weft\n"), yamllint);
    }
}

#[test]
fn shell_scripts() {
    let Some(bin) = linters() else { return };
    let shellcheck = |path: &Path| linter(&bin.join("shellcheck"), &[], path);
    check("install.sh", ("\"$program\"", "$program"), shellcheck);
    check("probe", ("for _ in \"$@\"", "for _ in $@"), shellcheck);
}

#[test]
fn unit() {
    // systemd is of the system, not of a registry of a language.
    let has = holds(Command::new("systemd-analyze").arg("--version"));
    if !has {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "systemd-analyze is missing");
        eprintln!("skipped: systemd-analyze is missing");
        return;
    }
    // It looks whether there is such a program.
    let program = "ExecStart=/usr/local/bin/weft ";
    let with_program = text("systemd/weft.service").replace(program, "ExecStart=/bin/true ");
    let folder = Folder::new();
    let verify = |text: &str| {
        let path = folder.path().join("weft.service");
        fs::write(&path, text).unwrap();
        let verify = output(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(path));
        (said(&verify).replace("weft.service", ""), verify.status.success())
    };
    assert_eq!(verify(&with_program), (String::new(), true));
    let broken = with_program.replace("Type=notify", "Type=notified");
    assert!(verify(&broken).0.contains("service type"), "{:?}", verify(&broken));
    // 0 is shut, 10 is open; the option counts tenths.
    let security = |path: &Path| {
        let words = ["security", "--offline=true", "--threshold=15", "--no-pager"];
        linter(Path::new("systemd-analyze"), &words, path)
    };
    check("systemd/weft.service", ("\nCapabilityBoundingSet=\n", "\n"), security);
}

/// What checkov says of a folder: passed, failed, and files that it could not read.
fn scan(bin: &Path, folder: &Path) -> (u64, u64, u64, String) {
    let mut command = Command::new(bin.join("python"));
    command.args(["-m", "checkov.main", "--quiet", "--compact", "--skip-download"]);
    command.args(["--output", "json", "--directory"]).arg(folder);
    command.args(["--framework", "terraform", "kubernetes", "dockerfile"]);
    command.args(["--skip-check", &CHECKOV_SKIPPED.join(",")]);
    let output = output(&mut command);
    let said = said(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    // One report for each kind of file, or one alone.
    let reports = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    let sum = |name: &str| {
        reports.iter().map(|report| report["summary"][name].as_u64().expect(&said)).sum()
    };
    (sum("passed"), sum("failed"), sum("parsing_errors"), said)
}

#[test]
fn terraform_and_what_is_exposed() {
    let Some(bin) = checkov() else { return };
    let (passed, failed, unread, said) = scan(&bin, &repository().join("deploy"));
    assert_eq!((failed, unread), (0, 0), "{said}");
    assert!(passed > 150, "{said}");
    let mut broken = text("terraform/main.tf");
    for (from, to) in [
        ("http_tokens   = \"required\"", "http_tokens   = \"optional\""),
        ("encrypted         = true", "encrypted         = false"),
    ] {
        assert!(broken.contains(from), "{from}");
        broken = broken.replace(from, to);
    }
    let folder = Folder::new();
    fs::write(folder.path().join("main.tf"), broken).unwrap();
    let (_, failed, _, said) = scan(&bin, folder.path());
    assert!(failed >= 2, "{said}");
}
