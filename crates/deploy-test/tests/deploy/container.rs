//! The command lines of the image and of the compose file, run without a container.

use std::fs;
use std::path::Path;
use std::process::Command;

use deploy_test::{Service, file, linters, moved_copy, passes, repository, text, yaml};
use serde_json::Value;

/// The arguments of an instruction of the Dockerfile in JSON form.
fn instruction(name: &str) -> Vec<String> {
    let dockerfile = text("docker/Dockerfile").replace("\\\n", " ");
    let line = dockerfile.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let from = line.find('[').unwrap();
    serde_json::from_str(&line[from..]).unwrap()
}

fn words(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn the_files_that_the_image_copies_exist() {
    let dockerfile = text("docker/Dockerfile");
    let ignored = text("docker/Dockerfile.dockerignore");
    let mut copied = 0;
    for line in dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let (from, _) = line.split_once(' ').unwrap();
        if from.starts_with("--from=") || from == "." {
            continue;
        }
        copied += 1;
        assert!(repository().join(from).is_file(), "{from}");
        assert!(ignored.lines().any(|line| line == format!("!{from}")), "{from} is ignored");
    }
    assert_eq!(copied, 2);
    // The paths that are not ignored exist.
    for path in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
        assert!(repository().join(path).exists(), "{path}");
    }
    let toolchain = fs::read_to_string(repository().join("rust-toolchain.toml")).unwrap();
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
    let version = channel.trim_matches('"').split('.').take(2).collect::<Vec<_>>().join(".");
    assert!(dockerfile.contains(&format!("FROM rust:{version}-bookworm")), "{channel}");
}

#[test]
fn a_compose_service_is_healthy_while_it_runs() {
    let Some(bin) = linters() else { return };
    let compose = &yaml(&bin, &file("docker/compose.yaml"))[0];
    let service = &compose["services"]["weft"];
    assert_eq!(service["build"]["dockerfile"], "deploy/docker/Dockerfile");
    let folder = tempfile::tempdir().unwrap();
    let (data, secrets) = (folder.path().join("data"), folder.path().join("secrets"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&secrets).unwrap();
    let target = service["secrets"][0]["target"].as_str().unwrap();
    fs::write(secrets.join(target), "requirepass secret\n").unwrap();
    let moved: [(&str, &Path); 2] = [("/var/lib/weft", &data), ("/run/secrets", &secrets)];
    let config = moved_copy(&text("docker/weft.conf"), &moved, &folder, "weft.conf");

    let mut line = instruction("ENTRYPOINT");
    line.extend(words(&service["command"]));
    assert!(words(&service["command"])[..1] == instruction("CMD")[..]);
    let mut server = Service::start(&line, &[("/etc/weft/weft.conf", &config)], &[]);
    assert!(server.ask(&["GET k"]).starts_with("-NOAUTH"));
    assert_eq!(server.ask_loaded(&["AUTH secret", "SET k v"]), "+OK");
    assert!(server.ask(&["AUTH secret", "INFO memory"]).contains("maxmemory:3221225472"));
    assert!(server.ask(&["AUTH probe probe", "GET k"]).starts_with("-NOPERM"));

    let test = words(&service["healthcheck"]["test"]);
    assert_eq!(test[0], "CMD");
    // The image has the same check.
    let dockerfile = text("docker/Dockerfile").replace("\\\n", " ");
    let check = dockerfile.lines().find(|line| line.starts_with("HEALTHCHECK")).unwrap();
    let check = check.split_once(" CMD ").unwrap().1;
    assert_eq!(serde_json::from_str::<Vec<String>>(check).unwrap(), test[1..]);
    assert_eq!(test[1], "weft-probe");
    let port = server.port.to_string();
    let probe = || passes(Command::new(file("probe")).args(&test[2..]).env("PORT", &port));
    assert!(probe());
    drop(server);
    assert!(!probe());
}
