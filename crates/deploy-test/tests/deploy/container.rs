//! The command lines of the image and of the compose file, run without a container.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use deploy_test::{
    Service, file, linters, moved_copy, output, passes, printed, repository, text, yaml,
};
use serde_json::Value;
use tempfile::TempDir;

/// The arguments of an instruction of the Dockerfile in JSON form.
fn instruction(name: &str) -> Vec<String> {
    let dockerfile = text("docker/Dockerfile").replace("\\\n", " ");
    let line = dockerfile.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let from = line.find('[').unwrap();
    serde_json::from_str(&line[from..]).unwrap()
}

/// The command line that the image's entry point runs for these arguments of `docker run`.
fn started(arguments: &[String]) -> Vec<String> {
    assert_eq!(instruction("ENTRYPOINT"), ["weft-start"]);
    assert!(!text("docker/Dockerfile").lines().any(|line| line.starts_with("CMD")));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("weft");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\n' weft \"$@\"\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let run = output(Command::new(file("docker/start")).args(arguments).env("PATH", path));
    assert!(run.status.success(), "{}", printed(&run));
    printed(&run).lines().map(str::to_owned).collect()
}

/// The image's configuration with its data in a folder, and with no secrets.
fn image_configuration(folder: &TempDir) -> PathBuf {
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let moved: [(&str, &Path); 2] = [("/var/lib/weft", &data), ("/run/secrets", &data)];
    moved_copy(&text("docker/weft.conf"), &moved, folder, "weft.conf")
}

fn is_ready(server: &Service) -> bool {
    let port = server.port.to_string();
    passes(Command::new(file("probe")).arg("ready").env("PORT", port))
}

#[test]
fn options_go_behind_the_configuration_of_the_image() {
    let own = "/etc/weft/weft.conf";
    for (arguments, expected) in [
        (&[][..], &[own][..]),
        (&["--requirepass", "a b"], &[own, "--requirepass", "a b"]),
        (&[own, "--port", "1"], &[own, "--port", "1"]),
        (&["/my.conf"], &["/my.conf"]),
        (&["-"], &["-"]),
        (&["-v"], &["-v"]),
        (&["--version"], &["--version"]),
        (&["-h"], &["-h"]),
        (&["--help"], &["--help"]),
    ] {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(started(&arguments), [&["weft", "server"], expected].concat());
    }
}

#[test]
fn a_container_with_a_password_among_its_options_is_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let config = image_configuration(&folder);
    let line = started(&["--requirepass".to_owned(), "secret".to_owned()]);
    let mut server = Service::start(&line, &[("/etc/weft/weft.conf", &config)], &[]);
    assert_eq!(server.ask_loaded(&["AUTH secret", "SET k v"]), "+OK");
    assert!(is_ready(&server));
}

/// The address of a client of a published port is not that of the container.
#[test]
fn a_container_without_a_password_serves_clients_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let config = image_configuration(&folder);
    let mut server = Service::start(&started(&[]), &[("/etc/weft/weft.conf", &config)], &[]);
    assert_eq!(server.ask_loaded(&["SET k v"]), "+OK");
    assert!(is_ready(&server));
    assert_eq!(server.ask(&["CONFIG GET protected-mode"]), r#"*[$"protected-mode", $"no"]"#);
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
    assert_eq!(copied, 3);
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

    // A host with fewer processors refuses to start a container with a limit of more.
    assert!(service["cpus"].is_null() && service["deploy"].is_null());
    let line = started(&words(&service["command"]));
    let mut server = Service::start(&line, &[("/etc/weft/weft.conf", &config)], &[]);
    assert!(server.ask(&["GET k"]).starts_with("-NOAUTH"));
    assert_eq!(server.ask_loaded(&["AUTH secret", "SET k v"]), "+OK");
    assert!(server.ask(&["AUTH secret", "INFO memory"]).contains("maxmemory:3221225472"));
    assert!(server.ask(&["AUTH probe probe", "GET k"]).starts_with("-NOPERM"));

    let test = words(&service["healthcheck"]["test"]);
    assert_eq!(test[..2], ["CMD", "weft-probe"]);
    // The image has the same check.
    let dockerfile = text("docker/Dockerfile").replace("\\\n", " ");
    let check = dockerfile.lines().find(|line| line.starts_with("HEALTHCHECK")).unwrap();
    let check = check.split_once(" CMD ").unwrap().1;
    assert_eq!(serde_json::from_str::<Vec<String>>(check).unwrap(), test[1..]);
    let port = server.port.to_string();
    let probe = || passes(Command::new(file("probe")).args(&test[2..]).env("PORT", &port));
    assert!(probe());
    drop(server);
    assert!(!probe());
}
