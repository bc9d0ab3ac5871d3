//! The unit's command line, run as systemd does.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use deploy_test::{Service, moved_copy, text};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn the_server_notifies_systemd_and_keeps_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let moved = [("/var/lib/weft", data.as_path()), ("/etc/weft/conf.d", folder.path())];
    let config = moved_copy(&text("weft.conf"), &moved, &folder, "weft.configuration");
    fs::write(folder.path().join("password.conf"), "requirepass \"a b\"\n").unwrap();
    let socket = folder.path().join("notify");
    let notify = UnixDatagram::bind(&socket).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(60))).unwrap();

    let unit = text("systemd/weft.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/local/bin/weft");
    let start = || {
        let paths = [("/etc/weft/weft.conf", config.as_path())];
        let mut service = Service::start(&words, &paths, &[("NOTIFY_SOCKET", &socket)]);
        let mut message = [0; 256];
        let length = notify.recv(&mut message).expect("the server notifies systemd");
        let message = String::from_utf8_lossy(&message[..length]).into_owned();
        assert!(message.lines().any(|line| line == "READY=1"), "{message}");
        assert!(service.ask(&["GET k"]).starts_with("-NOAUTH"));
        service
    };
    let auth = "AUTH \"a b\"";
    let mut service = start();
    assert_eq!(service.ask(&[auth, "SET k v"]), "+OK");
    assert!(service.ask(&[auth, "INFO server"]).contains("process_supervised:systemd"));
    // systemd stops a unit by SIGTERM.
    let pid = Pid::from_raw(i32::try_from(service.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(service.wait().success());
    assert!(Path::new(&data).join("appendonlydir").is_dir());
    assert_eq!(start().ask(&[auth, "GET k"]), "v");
}
