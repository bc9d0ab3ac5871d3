//! `weft tune` as a program: its outputs, what it changes, and its status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use clients_test::{Folder, weft_program};
use deploy_test::{output, said};
use serde_json::Value;

fn tune(arguments: &[&str]) -> Output {
    output(Command::new(weft_program()).arg("tune").args(arguments))
}

fn state<'a>(json: &'a Value, name: &str) -> &'a str {
    let checks = json["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    check["state"].as_str().unwrap()
}

/// A host on which a few settings are told, one of them wrong.
fn host(root: &Path) {
    for (path, text) in [
        ("proc/self/status", "Cpus_allowed_list:\t0-15\n"),
        ("proc/meminfo", "MemTotal: 33554432 kB\n"),
        ("proc/sys/net/core/somaxconn", "128\n"),
        ("sys/devices/system/cpu/online", "0-15\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn settings_are_checked_applied_and_right_afterwards() {
    let folder = Folder::new();
    host(folder.path());
    let root = folder.path().display().to_string();
    let first = tune(&["--root", &root, "--json"]);
    assert_eq!(first.status.code(), Some(1), "{}", said(&first));
    let json: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(state(&json, "somaxconn"), "change");
    assert_eq!(state(&json, "overcommit"), "unknown");
    assert_eq!(json["applied"], Value::Null);
    let applied = tune(&["--root", &root, "--json", "--apply"]);
    assert!(applied.status.success(), "{}", said(&applied));
    let json: Value = serde_json::from_slice(&applied.stdout).unwrap();
    assert_eq!(state(&json, "somaxconn"), "ok");
    assert_eq!(json["applied"]["settings"][0]["error"], Value::Null);
    let kept = fs::read_to_string(folder.path().join("etc/sysctl.d/60-weft.conf")).unwrap();
    assert!(kept.ends_with("\nnet.core.somaxconn = 4096\n"), "{kept}");
    let text = tune(&["--root", &root]);
    assert!(said(&text).ends_with("\nNothing is to be changed.\n"), "{}", said(&text));
    // A higher maxclients needs more files than this process may open, wherever it runs.
    let pid = std::process::id().to_string();
    let many = tune(&["--pid", &pid, "--clients", "4000000000"]);
    assert_eq!(many.status.code(), Some(1), "{}", said(&many));
    assert!(said(&many).contains("4000000512"), "{}", said(&many));
}

#[test]
fn a_configuration_for_a_host() {
    let folder = Folder::new();
    host(folder.path());
    let root = folder.path().display().to_string();
    let config = tune(&["--root", &root, "--config"]);
    assert!(config.status.success(), "{}", said(&config));
    let text = said(&config);
    assert!(text.contains("\nio-threads 17\n") && text.contains("\nmaxmemory 24gb\n"), "{text}");
    // That of the repository is made for such a host.
    let deployed = deploy_test::text("weft.conf");
    assert!(deployed.ends_with(&text), "{text}\n{deployed}");
}

#[test]
fn what_cannot_be_is_told_with_a_status() {
    let gone = tune(&["--pid", "4000000000"]);
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(said(&gone), "there is no process 4000000000\n");
    let folder = Folder::new();
    let config = tune(&["--config", "--root", &folder.path().display().to_string()]);
    assert_eq!(config.status.code(), Some(1));
    assert_eq!(said(&config), "the host has no /proc\n");
    assert_eq!(tune(&["--config", "--apply"]).status.code(), Some(2));
}
