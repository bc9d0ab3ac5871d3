//! The start and the end of the process: arguments, files, errors, signals, supervisors.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

use test_support::{
    Launch, Process, READY, WAIT_MAX, eventually, free_port, in_shell, output_of, output_of_server,
    printed, request, send_signal, weft,
};

use crate::{Client, MODELS, Server, Value};

#[test]
fn options_follow_a_file_as_those_of_redis_server_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weft.conf");
    fs::write(folder.path().join("extra.conf"), "databases 7\n").unwrap();
    fs::write(
        &file,
        "# A comment\n\nio-threads 2\nrequirepass \"a b\\x41\"\nmaxmemory-policy noeviction\n\
         include extra.conf\ninclude none/*.conf\nsave 900 1\nsave 300 10\ntimeout 0\n",
    )
    .unwrap();
    let launch = Launch::weft().in_folder(folder).configured_by(&file);
    let server = launch.options(&["--io-threads", "4", "--timeout", "5"]).start();
    let mut client = server.client();
    assert_eq!(client.ask_args(&[b"AUTH", b"a bA"]).text(), "OK");
    let got = client.ask("CONFIG GET io-threads timeout databases");
    let mut pairs: Vec<String> =
        got.items().chunks(2).map(|pair| pair[0].text() + "=" + &pair[1].text()).collect();
    pairs.sort();
    assert_eq!(pairs, ["databases=7", "io-threads=4", "timeout=5"]);
}

#[test]
fn all_threads_run_on_the_processors_of_server_cpulist() {
    let allowed = Server::start(&[]).process().status_of_threads("Cpus_allowed_list");
    let first = allowed[0].split([',', '-']).next().unwrap();
    let server = Server::start(&["--io-threads", "3", "--server-cpulist", first]);
    let lists = server.process().status_of_threads("Cpus_allowed_list");
    assert!(lists.len() >= 3 && lists.iter().all(|list| list == first), "{lists:?}");
    let server = Server::start(&["--server-cpulist", "1023"]);
    server.wait_for_log("'server-cpulist' has no effect: can't run on processors 1023");
}

#[test]
fn huge_pages_are_off_unless_they_are_asked_for() {
    for (option, enabled) in [("yes", "0"), ("no", "1")] {
        let server = Server::start(&["--disable-thp", option]);
        let all = server.process().status_of_threads("THP_enabled");
        assert!(!all.is_empty() && all.iter().all(|value| value == enabled), "{option}: {all:?}");
    }
}

#[test]
fn the_score_for_a_shortage_of_memory_is_set_and_taken_back() {
    let server = Server::start(&["--oom-score-adj-values", "7 8 9"]);
    let score = || server.process().file("oom_score_adj").trim().parse::<i32>().unwrap();
    let before = score();
    let mut client = server.client();
    client.ok("CONFIG SET oom-score-adj relative");
    assert_eq!(score(), (before + 7).min(1000));
    client.ok("CONFIG SET oom-score-adj absolute");
    client.ask("CONFIG SET port nonsense oom-score-adj no");
    let absolute = before + 100;
    let values = format!("{absolute} 0 0");
    client.ask_args(&[b"CONFIG", b"SET", b"oom-score-adj-values", values.as_bytes()]);
    assert_eq!(score(), absolute.min(1000));
    client.ok("CONFIG SET oom-score-adj no");
    assert_eq!(score(), before);
    let server = Server::start(&["--oom-score-adj", "yes", "--oom-score-adj-values", "7 8 9"]);
    assert_eq!(server.process().file("oom_score_adj"), format!("{}\n", (before + 7).min(1000)));
}

#[test]
fn the_title_of_the_process_follows_the_configuration() {
    let server = Server::start(&["--io-threads", "2"]);
    let shown = |server: &Server| {
        let text = server.process().file("cmdline");
        text.trim_end_matches('\0').to_owned()
    };
    let program = env!("CARGO_BIN_EXE_weft");
    let address = server.address();
    assert_eq!(shown(&server), format!("{program} {address}"));
    let mut client = server.client();
    let set = |client: &mut Client, value: &str| {
        let reply = client.ask_args(&[b"CONFIG", b"SET", b"proc-title-template", value.as_bytes()]);
        reply.text()
    };
    assert_eq!(set(&mut client, "short {port}"), "OK");
    assert_eq!(shown(&server), format!("short {}", address.port()));
    assert!(set(&mut client, "{nosuch}").ends_with("contains unknown variables"));
    assert_eq!(set(&mut client, &format!("{{tls-port}} {}", "long ".repeat(10_000))), "OK");
    let long = shown(&server);
    assert!(long.starts_with("0 long long") && long.len() > 100, "{long}");
    // A port that cannot be bound is reset, and so is the title.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert_eq!(set(&mut client, "at {port}"), "OK");
    let refused = client.ask(&format!("CONFIG SET port {port}")).text();
    assert!(refused.starts_with("ERR CONFIG SET failed"), "{refused}");
    assert_eq!(shown(&server), format!("at {}", address.port()));
    client.ok("CONFIG SET port 0");
    assert_eq!(shown(&server), "at 0");
    let server = Server::start(&["--set-proc-title", "no"]);
    assert!(shown(&server).contains("\0--set-proc-title\0no"), "{}", shown(&server));
}

/// The socket of the system log.
struct SystemLog(UnixDatagram);

impl SystemLog {
    const PATH: &str = "/dev/log";

    /// `None` if the system has a log, or this user may not replace it.
    fn stand_in() -> Option<Self> {
        let nobody_listens = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
        if UnixDatagram::unbound().unwrap().connect(Self::PATH).is_err_and(nobody_listens) {
            let _ = fs::remove_file(Self::PATH);
        }
        let socket = UnixDatagram::bind(Self::PATH).ok()?;
        socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
        Some(Self(socket))
    }

    fn line(&self) -> String {
        let mut text = [0; 1000];
        let len = self.0.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..len]).into_owned()
    }
}

impl Drop for SystemLog {
    fn drop(&mut self) {
        let _ = fs::remove_file(Self::PATH);
    }
}

#[test]
fn the_log_goes_to_the_log_of_the_system_too() {
    let Some(system) = SystemLog::stand_in() else {
        eprintln!("skipped: {} cannot be provided", SystemLog::PATH);
        return;
    };
    let options =
        ["--syslog-enabled", "yes", "--syslog-ident", "me", "--syslog-facility", "local3"];
    let server = Server::start(&options);
    let pid = server.process().0;
    let mut line = system.line();
    while !line.ends_with("Ready to accept connections tcp") {
        line = system.line();
    }
    // Facility 19 and severity 5.
    assert!(line.starts_with("<157>") && line.contains(&format!(" me[{pid}]: ")), "{line}");
    server.signal("TERM");
    // Severity 4.
    let line = system.line();
    assert!(line.starts_with("<156>") && line.ends_with("scheduling shutdown..."), "{line}");
    assert!(server.log().contains("Ready to accept connections tcp"));
}

#[test]
fn the_environment_survives_the_title() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
    let long = "x".repeat(300);
    let options = ["--supervised", "systemd", "--proc-title-template", &long];
    let _server = Server::start_by(&options, |command| command.env("NOTIFY_SOCKET", &path));
    let mut text = [0; 100];
    let len = socket.recv(&mut text).unwrap();
    assert!(String::from_utf8_lossy(&text[..len]).contains("READY=1"));
}

#[test]
fn parameters_without_effect_are_logged_at_start_and_when_they_change() {
    let server = Server::start(&["--list-compress-depth", "1"]);
    server.wait_for_log("'list-compress-depth' has no effect: chunks of lists are not compressed");
    server.client().ok("CONFIG SET hide-user-data-from-log yes");
    server.wait_for_log("'hide-user-data-from-log' has no effect: the log never holds");
}

#[test]
fn the_version_names_the_build() {
    let output = output_of(weft().arg("--version"));
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..2], ["Weft", "server"]);
    let names: Vec<&str> = words[2..].iter().filter_map(|word| word.split('=').next()).collect();
    assert_eq!(names, ["v", "sha", "malloc", "bits", "build"], "{text}");
    let server = Server::start(&[]);
    assert!(text.contains(&format!(" build={}\n", server.info("redis_build_id"))), "{text}");
}

#[test]
fn a_file_comes_from_standard_input_too() {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let mut child = weft()
        .args(["server", "-", "--port", &port.to_string(), "--logfile", "log"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"requirepass fromstdin\nbind 127.0.0.1\n").unwrap();
    wait_for_file(&folder.path().join("log"), READY);
    let mut client = Client::tcp(([127, 0, 0, 1], port).into());
    client.ok("AUTH fromstdin");
    send_signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

fn wait_for_file(path: &Path, words: &str) -> String {
    eventually(words, || fs::read_to_string(path).is_ok_and(|text| text.contains(words)));
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_port_in_use_is_explained() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let port = server.port.to_string();
    let output = output_of_server(folder.path(), &["--port", &port, "--bind", "127.0.0.1"]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{port}: bind: Address already in use")), "{text}");
    assert!(text.contains("--port"), "{text}");
}

#[test]
fn the_log_says_why_a_file_with_data_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("dump.rdb", folder.path().join("dump.rdb")).unwrap();
    let output = output_of_server(folder.path(), &["--port", "0", "--logfile", "log"]);
    assert_eq!(output.status.code(), Some(1));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("Fatal error loading the DB: cannot open dump.rdb: "), "{log}");
}

#[test]
fn mistakes_in_a_file_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.conf");
    for (text, line, reason) in [
        ("port 6379\nnonsense 1\n", "at line 2", "nonsense"),
        ("\n\nport abc\n", "at line 3", "port"),
        ("maxclients 0\n", "at line 1", "maxclients"),
        ("requirepass \"open\n", "at line 1", "requirepass"),
        ("include missing.conf\n", "at line 1", "missing.conf"),
        ("io-threads 1000\n", "at line 1", "io-threads"),
    ] {
        fs::write(&path, text).unwrap();
        let output = output_of_server(folder.path(), &["bad.conf"]);
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text:?}: {shown}");
        for words in ["bad.conf", line, reason] {
            assert!(shown.contains(words), "{text:?}: no {words:?} in {shown}");
        }
    }
    let output = output_of_server(folder.path(), &["--nonsense", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nonsense"));
    let output = output_of_server(folder.path(), &["none.conf"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.conf"));
    let output = output_of_server(folder.path(), &["--dir", "/no/such/folder"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/folder"));
}

/// Lowers the limit of descriptors of a server.
fn with_files(files: u32, command: &mut Command) -> &mut Command {
    in_shell(command, &format!("ulimit -n {files}; exec \"$0\" \"$@\""));
    command
}

#[test]
fn too_few_descriptors_lower_the_number_of_clients() {
    let server = Server::start_by(&["--io-threads", "2"], |command| with_files(50, command));
    let log = server.log();
    assert!(log.contains("maxclients has been reduced to 14"), "{log}");
    assert!(log.contains("ulimit -n"), "{log}");
    let mut clients: Vec<Client> = (0..14).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING").text(), "PONG");
    }
    let refused = server.client().ask("GET k").text();
    assert_eq!(refused, "ERR max number of clients reached");
    let error = clients[0].ask("CONFIG SET maxclients 1000").text();
    assert!(error.contains("not able to handle the specified number of clients"), "{error}");
}

#[test]
fn hardly_any_descriptors_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port().to_string();
    let mut command = weft();
    command.args(["server", "--port", &port, "--io-threads", "1"]).current_dir(folder.path());
    let output = output_of(with_files(20, &mut command));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("ulimit -n"), "{text}");
}

#[test]
fn a_daemon_has_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let status = weft()
        .args(["server", "--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "yes"])
        .args(["--logfile", "weft.log", "--pidfile", "weft.pid", "--io-threads", "3"])
        .arg("--dir")
        .arg(folder.path())
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let log = wait_for_file(&folder.path().join("weft.log"), READY);
    assert!(log.contains("Server initialized"), "{log}");
    let pid: u32 =
        fs::read_to_string(folder.path().join("weft.pid")).unwrap().trim().parse().unwrap();
    assert!(log.contains(&format!("PID: {pid}")), "{log}");
    let mut client = Client::tcp(([127, 0, 0, 1], port).into());
    assert_eq!(client.ask("PING").text(), "PONG");
    // A thread sets its name after its start, perhaps after the server is ready.
    eventually("weft-io-2", || Process(pid).threads().contains_key("weft-io-2"));
    let dir = client.ask("CONFIG GET dir").items()[1].text();
    assert_eq!(Path::new(&dir), folder.path().canonicalize().unwrap());
    // A hang-up of the terminal has no effect, and SIGTERM ends the server.
    for ignored in ["HUP", "USR2"] {
        send_signal(pid, ignored);
        assert_eq!(client.ask("PING").text(), "PONG", "{ignored}");
    }
    send_signal(pid, "TERM");
    client.is_closed();
    let log = wait_for_file(&folder.path().join("weft.log"), "bye bye");
    assert!(log.contains("Received SIGTERM scheduling shutdown"), "{log}");
    assert!(!folder.path().join("weft.pid").exists());
}

#[test]
fn systemd_is_notified_when_the_server_is_ready() {
    for (kind, supervised) in [("path", "systemd"), ("abstract", "auto")] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let (socket, name) = match kind {
            "path" => (UnixDatagram::bind(&path).unwrap(), path.to_string_lossy().into_owned()),
            _ => {
                use std::os::linux::net::SocketAddrExt;
                let name = format!("weft-test-{}", path.display());
                let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
                (UnixDatagram::bind_addr(&address).unwrap(), format!("@{name}"))
            }
        };
        socket.set_read_timeout(Some(WAIT_MAX)).unwrap();
        let server = Server::start_by(&["--supervised", supervised], |command| {
            command.env("NOTIFY_SOCKET", &name)
        });
        let mut buffer = [0; 1000];
        let len = socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
        assert!(text.lines().any(|line| line == "READY=1"), "{text:?}");
        drop(server);
    }
}

#[test]
fn signals_end_the_server_in_order() {
    for model in MODELS {
        for name in ["TERM", "INT"] {
            let mut server = Server::start(&[model, &["--pidfile", "pid"][..]].concat());
            let pid = fs::read_to_string(server.path("pid")).unwrap();
            assert_eq!(pid.trim(), server.process().0.to_string());
            let mut clients: Vec<Client> = (0..5).map(|_| server.client()).collect();
            for client in &mut clients {
                client.ok("SET k v");
            }
            server.signal(name);
            assert_eq!(server.wait().code(), Some(0), "{model:?} {name}");
            clients.iter_mut().for_each(Client::is_closed);
            let log = server.log();
            assert!(log.contains(&format!("Received SIG{name} scheduling shutdown")), "{log}");
            assert!(log.contains("bye bye"), "{log}");
            assert!(!server.path("pid").exists());
        }
    }
}

#[test]
fn replies_in_transit_arrive_before_the_end() {
    for model in MODELS {
        let mut server = Server::start(model);
        let mut client = server.client();
        let value = vec![b'v'; 30_000_000];
        client.ask_args(&[b"SET", b"big", &value]);
        client.send_raw(&request("GET big"));
        let first = client.read();
        assert_eq!(first.bytes().map(<[u8]>::len), Some(value.len()));
        // Executed together, unlike separate requests of a pipeline.
        let requests = ["MULTI", "GET big", "INCR n", "EXEC"].map(request);
        client.send_raw(&requests.concat());
        let mut other = server.client();
        eventually("all is executed", || other.ask("GET n") == Value::bulk("1"));
        server.signal("TERM");
        assert_eq!(client.read().text(), "OK");
        (0..2).for_each(|_| assert_eq!(client.read().text(), "QUEUED"));
        let replies = client.read();
        assert!(replies.items()[0].bytes() == Some(&value[..]), "{model:?}");
        assert_eq!(replies.items()[1].int(), 1, "{model:?}");
        client.is_closed();
        assert_eq!(server.wait().code(), Some(0), "{model:?}");
    }
}

#[test]
fn shutdown_ends_the_server() {
    for model in MODELS {
        for words in ["SHUTDOWN", "SHUTDOWN NOSAVE", "shutdown now force"] {
            let mut server = Server::start(model);
            let mut other = server.client();
            other.ask("PING");
            let mut client = server.client();
            client.send(words);
            client.is_closed();
            other.is_closed();
            assert_eq!(server.wait().code(), Some(0), "{model:?} {words}");
        }
    }
}

#[test]
fn a_loaded_server_ends() {
    for model in MODELS {
        let mut server = Server::start(model);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..6)
                .map(|number| {
                    let mut client = server.client();
                    scope.spawn(move || {
                        let bytes = request(&format!("INCR n:{number}")).repeat(20);
                        let mut count = 0;
                        loop {
                            client.send_lossy(&bytes);
                            for _ in 0..20 {
                                let Ok(reply) = client.try_read() else { return count };
                                count += 1;
                                assert_eq!(reply.int(), count);
                            }
                        }
                    })
                })
                .collect();
            let mut client = server.client();
            for number in 0..6 {
                while client.ask(&format!("GET n:{number}")) == Value::NULL {}
            }
            client.send("SHUTDOWN");
            assert_eq!(server.wait().code(), Some(0), "{model:?}");
            workers.into_iter().for_each(|worker| assert!(worker.join().unwrap() > 0));
        });
    }
}

#[test]
fn commands_are_renamed_on_every_thread() {
    let mut options = vec!["--io-threads", "4", "--io-threads-always-active", "yes"];
    options.extend(["--rename-command", "GET", "fetch", "--rename-command", "config", ""]);
    let server = Server::start(&options);
    for _ in 0..4 {
        let mut client = server.client();
        client.ok("SET k v");
        client.send_raw(b"fetch k\r\nget k\r\nFETCH k\r\n");
        assert_eq!(client.read().text(), "v");
        assert!(client.read().text().starts_with("ERR unknown command 'get'"));
        assert_eq!(client.read().text(), "v");
        let refused = client.ask("CONFIG GET port").text();
        assert!(refused.starts_with("ERR unknown command 'CONFIG'"), "{refused}");
    }
}

#[test]
fn an_append_only_file_is_loaded_after_its_commands_were_renamed_or_disabled() {
    let options = ["--save", "", "--appendonly", "yes", "--rename-command", "HSET", ""];
    let renamed = ["--rename-command", "SET", "get2", "--rename-command", "EXEC", "run"];
    let options = [&options[..], &renamed, &["--rename-command", "SELECT", "choose"]].concat();
    let server = Server::start(&options);
    let mut client = server.client();
    client.ok("get2 a 1");
    client.ok("get2 expiring 2 EX 1000");
    assert_eq!(client.ask("HSETEX h EX 1000 FIELDS 1 f 3").int(), 1);
    client.ok("choose 3");
    client.ok("MULTI");
    assert_eq!(client.ask("get2 b 4").text(), "QUEUED");
    assert_eq!(client.ask("INCR counter").text(), "QUEUED");
    assert_eq!(client.ask("run").items().len(), 2);
    client.ask("BITOP DIFF c b b");
    let server = server.restart(&options);
    let mut client = server.client();
    assert_eq!(client.ask("GET a").text(), "1");
    assert_eq!(client.ask("GET expiring").text(), "2");
    assert_eq!(client.ask("HGET h f").text(), "3");
    client.ok("choose 3");
    assert_eq!(client.ask("MGET b counter").items().len(), 2);
    assert_eq!(client.ask("GET counter").text(), "1");
}

/// The append-only file has SET by its name, also where a client called it otherwise.
#[test]
fn no_command_gets_the_original_name_of_a_logged_one() {
    let folder = tempfile::tempdir().unwrap();
    let swapped = ["--rename-command", "SET", "store", "--rename-command", "DEL", "set"];
    let output = output_of_server(folder.path(), &swapped);
    assert_eq!(output.status.code(), Some(1));
    let text = printed(&output);
    let reason = "DEL cannot be renamed to SET: the append-only file and replicas know";
    assert!(text.contains(reason), "{text}");
}
