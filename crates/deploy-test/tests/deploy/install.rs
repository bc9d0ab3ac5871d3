//! The installation into a folder, and the script of Terraform's instance for its first start.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use deploy_test::{Service, file, linters, moved_copy, output, passes, printed, text};
use test_support::weft_program;

#[test]
fn installing_makes_a_configuration_for_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let install = || {
        let program = weft_program();
        let mut command = Command::new("sh");
        command.arg(file("install.sh")).arg(program).env("DESTDIR", &root);
        let output = output(&mut command);
        assert!(output.status.success(), "{}", printed(&output));
    };
    install();
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("usr/local/bin/weft"), 0o755);
    assert_eq!(mode("etc/systemd/system/weft.service"), 0o644);
    assert_eq!(mode("usr/lib/sysusers.d/weft.conf"), 0o644);
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let path = root.join("etc/weft/weft.conf");
    let moved: [(&str, &Path); 1] = [("/var/lib/weft", &data)];
    let config = moved_copy(&fs::read_to_string(&path).unwrap(), &moved, &folder, "weft.conf");
    let words = ["weft", "server"].map(str::to_owned);
    let words = [&words[..], &[config.display().to_string()]].concat();
    let mut server = Service::start(&words, &[], &[]);
    // It has as many threads as a server without a configuration.
    let auto: Vec<String> = ["weft", "server", "--save", "", "--dir"].map(str::to_owned).to_vec();
    let auto = [&auto[..], &[data.display().to_string()]].concat();
    let threads = |server: &mut Service| {
        let info = server.ask(&["INFO threads"]);
        info.lines().filter(|line| line.starts_with("io_thread_")).count()
    };
    let wanted = threads(&mut Service::start(&auto, &[], &[]));
    assert_eq!(threads(&mut server), wanted);
    assert_eq!(server.ask_loaded(&["DBSIZE"]), ":0");
    assert!(server.ask(&["INFO persistence"]).contains("aof_enabled:1"));

    // A changed configuration stays.
    fs::write(&path, "port 7000\n").unwrap();
    install();
    assert_eq!(fs::read_to_string(&path).unwrap(), "port 7000\n");
}

/// The template with its variables in place, as Terraform's `templatefile` fills it in.
fn user_data(variables: &BTreeMap<&str, String>) -> String {
    let mut rest = text("terraform/user-data.sh.tftpl");
    let mut out = String::new();
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let end = at + rest[at..].find('}').unwrap();
        let expression = rest[at + 2..end].to_owned();
        let value = match expression.strip_prefix("replace(volume_id, \"-\", \"\")") {
            Some("") => variables["volume_id"].replace('-', ""),
            _ => variables[expression.as_str()].clone(),
        };
        out.push_str(&value);
        rest = rest[end + 1..].to_owned();
    }
    assert!(!rest.contains("%{"), "a template directive is not supported here");
    out + &rest
}

#[test]
fn the_first_start_of_an_instance() {
    // main.tf gives the variables of the template.
    let main = text("terraform/main.tf");
    let (_, given) = main.split_once("user-data.sh.tftpl\", {\n").unwrap();
    let (given, _) = given.split_once("\n  }))").unwrap();
    let names: Vec<&str> =
        given.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    for name in &names {
        let from = given.lines().find(|line| line.trim().starts_with(name)).unwrap();
        let path = from.split_once("${path.module}/../").map(|(_, rest)| rest);
        let value = match path.and_then(|rest| rest.split_once('"')) {
            Some((path, _)) => text(path),
            None => format!("vol-0of{name}"),
        };
        variables.insert(name, value);
    }
    assert_eq!(variables.len(), 8, "{names:?}");
    let script = user_data(&variables);
    assert!(script.len() < 16 * 1024, "the limit of user data");
    assert!(script.contains("Elastic_Block_Store_vol0ofvolume_id'"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user-data.sh");
    fs::write(&path, &script).unwrap();
    if let Some(bin) = linters() {
        let output = output(Command::new(bin.join("shellcheck")).arg(&path));
        assert!(output.status.success(), "{}", printed(&output));
    }
    // The files that it writes equal those in `deploy/`.
    let (_, files) = script.split_once("folder=$(mktemp -d)\n").unwrap();
    let (files, _) = files.split_once("aws s3 cp").unwrap();
    let place = folder.path().join("files");
    fs::create_dir(&place).unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-euc", files]).env("folder", &place);
    assert!(passes(&mut bash), "{files}");
    for name in ["install.sh", "systemd/weft.service", "systemd/weft.sysusers"] {
        let written = fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(written.trim_end(), text(name).trim_end(), "{name}");
    }
    // The server reads a password with quotes and backslashes.
    let from = script.find("quoted=").unwrap();
    let lines: Vec<&str> = script[from..].lines().take(2).collect();
    let written = folder.path().join("password.conf");
    let lines =
        lines.join("\n").replace("/etc/weft/conf.d/password.conf", &written.display().to_string());
    let password = "p\"a\\s s$w'";
    assert!(passes(Command::new("bash").args(["-euc", &lines]).env("password", password)));
    let data = folder.path().display().to_string();
    let words = ["weft", "server", &written.display().to_string(), "--dir", &data, "--save", ""]
        .map(str::to_owned);
    let mut server = Service::start(&words, &[], &[]);
    assert_eq!(
        server.ask(&["AUTH wrong"]),
        "-WRONGPASS invalid username-password pair or user is disabled."
    );
    assert_eq!(server.ask_loaded(&["AUTH \"p\\\"a\\\\s s$w'\"", "PING"]), "+PONG");
}
