//! `weft tune` as a program: its output, its changes to the host, and its status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use deploy_test::{output, printed};
use serde_json::Value;
use test_support::weft_program;

fn tune(arguments: &[&str]) -> Output {
    output(Command::new(weft_program()).arg("tune").args(arguments))
}

fn state<'a>(json: &'a Value, name: &str) -> &'a str {
    let checks = json["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    check["state"].as_str().unwrap()
}

/// Writes the files of a host with a few known settings, one of them wrong.
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
fn settings_are_checked_and_applied() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path());
    let root = folder.path().display().to_string();
    let first = tune(&["--root", &root, "--json"]);
    assert_eq!(first.status.code(), Some(1), "{}", printed(&first));
    let json: Value = serde_json::from_slice(&first.stdout).unwrap();
    assert_eq!(state(&json, "somaxconn"), "change");
    assert_eq!(state(&json, "overcommit"), "unknown");
    assert_eq!(json["applied"], Value::Null);
    let applied = tune(&["--root", &root, "--json", "--apply"]);
    assert!(applied.status.success(), "{}", printed(&applied));
    let json: Value = serde_json::from_slice(&applied.stdout).unwrap();
    assert_eq!(state(&json, "somaxconn"), "ok");
    assert_eq!(json["applied"]["settings"][0]["error"], Value::Null);
    let kept = fs::read_to_string(folder.path().join("etc/sysctl.d/60-weft.conf")).unwrap();
    assert!(kept.ends_with("\nnet.core.somaxconn = 4096\n"), "{kept}");
    let text = tune(&["--root", &root]);
    assert!(printed(&text).ends_with("\nNothing to change.\n"), "{}", printed(&text));
    // So many clients need more files than any process may open.
    let pid = std::process::id().to_string();
    let many = tune(&["--pid", &pid, "--clients", "4000000000"]);
    assert_eq!(many.status.code(), Some(1), "{}", printed(&many));
    assert!(printed(&many).contains("4000000512"), "{}", printed(&many));
}

#[test]
fn prints_a_configuration_for_a_host() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path());
    let root = folder.path().display().to_string();
    let config = tune(&["--root", &root, "--config"]);
    assert!(config.status.success(), "{}", printed(&config));
    let text = printed(&config);
    assert!(text.contains("\nio-threads 17\n") && text.contains("\nmaxmemory 24gb\n"), "{text}");
    // The one in the repository is for such a host.
    let deployed = deploy_test::text("weft.conf");
    assert!(deployed.ends_with(&text), "{text}\n{deployed}");
}

#[test]
fn errors_set_the_status() {
    let gone = tune(&["--pid", "4000000000"]);
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(printed(&gone), "there is no process 4000000000\n");
    let folder = tempfile::tempdir().unwrap();
    let config = tune(&["--config", "--root", &folder.path().display().to_string()]);
    assert_eq!(config.status.code(), Some(1));
    assert_eq!(printed(&config), "the host has no /proc\n");
    assert_eq!(tune(&["--config", "--apply"]).status.code(), Some(2));
}
