//! A second SIGINT ends the server at once with status 1, whatever the main thread does.

use std::io::{Read, Write};
use std::process::Stdio;

use test_support::{Killed, Process, encode, eventually, request, send_signal, weft};

use crate::{Client, Server};

const DEBUG: &[&str] = &["--enable-debug-command", "yes"];
const FIRST: &str = "Received SIGINT scheduling shutdown";
const AGAIN: &str = "Received SIGINT again, exiting at once";
/// Keeps the main thread from reading signals for more than a minute.
const LONG: &[u8] = b"redis.call('SET', 'a', '1') redis.log(redis.LOG_WARNING, 'it runs')
    local t = os.clock() while os.clock() - t < 100 do end";

/// Names of the files in the folder of a server.
fn names(server: &Server) -> Vec<String> {
    let files = std::fs::read_dir(server.folder()).unwrap();
    files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

fn is_saving(server: &Server) -> bool {
    names(server).iter().any(|name| name.starts_with("temp-"))
}

/// Interrupts a server twice while its main thread does not read signals.
#[track_caller]
fn interrupt_twice(server: &mut Server) {
    server.signal("INT");
    server.wait_for_log(FIRST);
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(1), "{}", server.log());
    let log = server.log();
    assert!(log.contains(AGAIN) && !log.contains("bye bye"), "{log}");
    assert!(!is_saving(server), "{:?}", names(server));
}

/// A server with a dump, whose next save takes minutes, and the bytes of the dump.
fn saves_slowly(threads: &str) -> (Server, Client, Vec<u8>) {
    let options = [&["--save", "3600 1", "--io-threads", threads], DEBUG].concat();
    let server = Server::start(&options);
    let mut client = server.client();
    (0..20).for_each(|n| client.ok(&format!("SET key:{n} v")));
    client.ok("SAVE");
    let dump = std::fs::read(server.path("dump.rdb")).unwrap();
    client.ok("SET late 1");
    client.ok("CONFIG SET rdb-key-save-delay 10000000");
    (server, client, dump)
}

#[test]
fn a_save_ends_and_leaves_the_old_file() {
    for threads in ["1", "3"] {
        for command in ["SAVE", "DEBUG RELOAD", "WEFT BACKUP copy.rdb"] {
            let (mut server, mut client, dump) = saves_slowly(threads);
            client.send(command);
            eventually("it saves", || is_saving(&server));
            interrupt_twice(&mut server);
            assert_eq!(std::fs::read(server.path("dump.rdb")).unwrap(), dump, "{command}");
            assert!(!names(&server).contains(&"copy.rdb".to_owned()));
        }
    }
}

#[test]
fn the_last_save_ends() {
    let (mut server, _client, dump) = saves_slowly("2");
    server.signal("INT");
    server.wait_for_log("Saving the final RDB snapshot before exiting.");
    eventually("it saves", || is_saving(&server));
    interrupt_twice(&mut server);
    assert_eq!(std::fs::read(server.path("dump.rdb")).unwrap(), dump);
}

#[test]
fn acknowledged_writes_survive_a_double_interrupt() {
    let options = [&["--appendonly", "yes"], DEBUG].concat();
    for requests in [
        [request("MULTI"), request("DEBUG LOG now"), request("DEBUG SLEEP 100"), request("EXEC")],
        [
            request("MULTI"),
            request("DEBUG LOG now"),
            encode(&[b"EVAL", LONG, b"0"]),
            request("EXEC"),
        ],
    ] {
        let mut server = Server::start(&options);
        let mut client = server.client();
        client.ok("SET kept 1");
        client.send_raw(&requests.concat());
        server.wait_for_log("now");
        interrupt_twice(&mut server);
        let server = Server::start_in(server.into_folder(), &options);
        let keys = server.client().ask("KEYS *");
        assert_eq!(keys.items().len(), 1, "{keys:?}");
    }
}

#[test]
fn a_busy_script_that_has_written_is_interrupted() {
    let mut server = Server::start(&["--io-threads", "2", "--busy-reply-threshold", "30"]);
    let mut client = server.client();
    let script = b"redis.call('SET', 'a', '1') while true do end";
    client.send_raw(&encode(&[b"EVAL", script, b"0"]));
    let mut other = server.client();
    eventually("it runs for too long", || other.ask("PING").text().starts_with("BUSY"));
    interrupt_twice(&mut server);
}

/// The default size of a pipe.
const PIPE_BYTES: usize = 1 << 16;
/// Room for the beginning of a report of SIGALRM, but not for its function names.
const ROOM_BYTES: usize = 1 << 10;
/// The longest piece that a report is written in.
const PIECE_BYTES: usize = 256;

#[test]
fn an_unread_report_does_not_block_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = weft();
    command.args(["server", "--port", "0", "--save", "", "--always-show-logo", "yes"]);
    command.current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(Stdio::null());
    let mut child = Killed(command.spawn().unwrap());
    drop(command);
    let unread = || rustix::io::ioctl_fionread(&reader).unwrap() as usize;
    let mut said = Vec::new();
    eventually("it is ready, and the pipe is empty", || {
        let mut room = vec![0; unread()];
        (&reader).read_exact(&mut room).unwrap();
        said.extend_from_slice(&room);
        room.is_empty() && said.ends_with(b"Ctrl-C.\n\n")
    });
    writer.write_all(&[b'.'; PIPE_BYTES - ROOM_BYTES]).unwrap();
    let id = child.0.id();
    send_signal(id, "ALRM");
    eventually("the next piece of it has no room", || unread() + PIECE_BYTES > PIPE_BYTES);
    send_signal(id, "INT");
    let status = |field: &str| {
        let status = Process(id).file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    // Two pending signals count as one. SIGINT is the second bit.
    eventually("the first is heard", || status("ShdPnd:") & 2 == 0);
    send_signal(id, "INT");
    let mut ended = None;
    eventually("it ends", || {
        ended = child.0.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(1));
}
