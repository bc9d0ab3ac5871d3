//! `weft cli` in a pseudo-terminal, as a person sees it.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use test_support::{WAIT_MAX, send_signal};

use super::cli;
use crate::{Client, Server};

const SIZE: PtySize = PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 };

/// The contents of the screen, and whether the program has ended.
struct Screen {
    state: Mutex<(vt100::Parser, bool)>,
    changed: Condvar,
}

/// A program in a terminal of its own.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Screen>,
    master: Box<dyn MasterPty + Send>,
    /// The terminal's mode before the program began.
    mode: String,
}

impl Terminal {
    fn start(folder: &Path, args: &[&str]) -> Self {
        Self::run(&cli(folder), folder, args)
    }

    /// Starts a program with further arguments.
    pub fn run(program: &Command, folder: &Path, args: &[&str]) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let mut command = CommandBuilder::new(program.get_program());
        command.args(program.get_args().chain(args.iter().map(AsRef::as_ref)));
        command.cwd(folder);
        command.env("HOME", folder);
        command.env("TERM", "xterm");
        for name in ["REDISCLI_AUTH", "REDISCLI_HISTFILE", "REDISCLI_RCFILE"] {
            command.env_remove(name);
        }
        let mode = mode_of(&*pair.master);
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let [rows, columns] = [SIZE.rows, SIZE.cols].map(|size| NonZero::new(size).unwrap());
        let parser = vt100::Parser::new(rows, columns, 0);
        let screen =
            Arc::new(Screen { state: Mutex::new((parser, false)), changed: Condvar::new() });
        let (mut reader, other) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                other.state.lock().unwrap().0.process(&bytes[..count]);
                other.changed.notify_all();
            }
            other.state.lock().unwrap().1 = true;
            other.changed.notify_all();
        });
        let keys = pair.master.take_writer().unwrap();
        Self { child, keys, screen, master: pair.master, mode }
    }

    /// The lines of the screen down to the last one that is not empty.
    pub fn text(&self) -> String {
        self.screen.state.lock().unwrap().0.screen().contents()
    }

    /// Waits until the screen ends with these words.
    #[track_caller]
    fn shows(&self, words: &str) {
        let state = self.screen.state.lock().unwrap();
        let differs = |state: &mut (vt100::Parser, bool)| {
            !state.0.screen().contents().trim_end().ends_with(words.trim_end()) && !state.1
        };
        let (state, _) = self.screen.changed.wait_timeout_while(state, WAIT_MAX, differs).unwrap();
        let text = state.0.screen().contents();
        assert!(text.trim_end().ends_with(words.trim_end()), "no {words:?} at the end of:\n{text}");
    }

    /// Waits until the screen satisfies a condition.
    #[track_caller]
    pub fn waits(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let state = self.screen.state.lock().unwrap();
        let differs =
            |state: &mut (vt100::Parser, bool)| !is_so(&state.0.screen().contents()) && !state.1;
        let (state, _) = self.screen.changed.wait_timeout_while(state, WAIT_MAX, differs).unwrap();
        let text = state.0.screen().contents();
        assert!(is_so(&text), "not {what}:\n{text}");
    }

    pub fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a command and waits for its output.
    #[track_caller]
    fn enter(&mut self, line: &str, shown: &str) {
        self.type_keys(&format!("{line}\r"));
        self.shows(shown);
    }

    /// Ends the program by a signal; afterwards the terminal is as before.
    #[track_caller]
    pub fn ends_by(mut self, signal: &str, code: u32) {
        assert_ne!(mode_of(&*self.master), self.mode);
        send_signal(self.child.process_id().unwrap(), signal);
        self.ends(code);
        assert_eq!(mode_of(&*self.master), self.mode, "after SIG{signal}");
        assert!(!self.screen.state.lock().unwrap().0.screen().alternate_screen());
    }

    #[track_caller]
    pub fn ends_with(mut self, code: u32) {
        self.ends(code);
    }

    #[track_caller]
    fn ends(&mut self, code: u32) {
        let state = self.screen.state.lock().unwrap();
        let (state, timeout) =
            self.screen.changed.wait_timeout_while(state, WAIT_MAX, |state| !state.1).unwrap();
        assert!(!timeout.timed_out(), "it does not end:\n{}", state.0.screen().contents());
        drop(state);
        assert_eq!(self.child.wait().unwrap().exit_code(), code, "{}", self.text());
    }
}

/// How a terminal treats input.
fn mode_of(master: &dyn MasterPty) -> String {
    let termios = master.get_termios().unwrap();
    format!("{:?} {:?}", termios.input_flags, termios.local_flags)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const UP: &str = "\x1b[A";

/// A server, and a terminal at its prompt, without options or with `-n DB`.
fn start(args: &[&str]) -> (Server, Terminal, String) {
    let server = Server::start(&["--io-threads", "1"]);
    let port = server.port.to_string();
    let terminal = Terminal::start(server.folder(), &[&["-p", &port], args].concat());
    let prompt = format!("127.0.0.1:{port}");
    let db = args.get(1).map_or_else(String::new, |db| format!("[{db}]"));
    terminal.shows(&format!("{prompt}{db}>"));
    (server, terminal, prompt)
}

#[test]
fn replies_have_types_and_prompts_tell_the_state() {
    let (_server, mut terminal, prompt) = start(&[]);
    let plain = format!("\n{prompt}>");
    terminal.enter("set k 'a b'", &format!("OK{plain}"));
    terminal.enter("get k", &format!("\"a b\"{plain}"));
    terminal.enter("incr n", &format!("(integer) 1{plain}"));
    terminal.enter("get none", &format!("(nil){plain}"));
    terminal.enter("rpush l x y", &format!("(integer) 2{plain}"));
    terminal.enter("lrange l 0 -1", &format!("1) \"x\"\n2) \"y\"{plain}"));
    terminal.enter(
        "nonsense",
        &format!("(error) ERR unknown command 'nonsense', with args beginning with: {plain}"),
    );
    terminal.enter("\"open", &format!("Invalid argument(s){plain}"));
    terminal.enter("2 incr n", &format!("(integer) 2\n(integer) 3{plain}"));
    terminal.enter("select 3", &format!("OK\n{prompt}[3]>"));
    terminal.enter("multi", &format!("OK\n{prompt}[3](TX)>"));
    terminal.enter("set x 1", &format!("QUEUED\n{prompt}[3](TX)>"));
    terminal.enter("select 0", &format!("QUEUED\n{prompt}(TX)>"));
    terminal.enter("discard", &format!("OK\n{prompt}[3]>"));
    terminal.enter("reset", &format!("RESET{plain}"));
    terminal.enter("hello 3", &format!("# \"modules\" => (empty array){plain}"));
    terminal.enter("subscribe c", "(press Ctrl-C to quit or any key to type command)");
    terminal.type_keys(CTRL_C);
    terminal.shows(&format!("3) (integer) 1{plain}"));
    terminal.type_keys("quit\r");
    terminal.ends_with(0);
}

#[test]
fn ctrl_c_and_ctrl_d_leave_the_prompt() {
    for keys in [CTRL_C, CTRL_D] {
        let (_server, mut terminal, _) = start(&[]);
        terminal.type_keys(keys);
        terminal.ends_with(0);
    }
}

#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    for signal in ["TERM", "HUP"] {
        let (_server, terminal, _) = start(&[]);
        // The crate for terminals reports 1 for every signal.
        terminal.ends_by(signal, 1);
    }
}

#[test]
fn hints_follow_the_input() {
    let (_server, mut terminal, prompt) = start(&[]);
    let mut check = |line: &str, hint: &str| {
        terminal.type_keys(line);
        terminal.shows(&format!("{prompt}> {line}{hint}"));
        // Deletes the line.
        terminal.type_keys("\x15");
        terminal.shows(&format!("{prompt}>"));
    };
    check("get", " key");
    check("GET ", "key");
    check("get k", "");
    check("incrby k", " increment");
    check("del a", " [key ...]");
    check("lpush k a", " [element ...]");
    check("config set", " parameter value [parameter value ...]");
    check("getex k ex", " seconds");
    check("linsert l after", " pivot element");
    check(
        "geosearch g frommember m",
        " BYRADIUS radius M|KM|FT|MI|BYBOX width height M|KM|FT|MI|\
        BYPOLYGON num-vertices longitude latitude [longitude latitude ...] \
        [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
    );
    check("zadd z nx ", "[GT|LT] [CH] [INCR] score member [score member ...]");
    check("zadd z nx 1 m", " [score member ...]");
    check("get a b", "");
    check("nonsense", "");
    terminal.enter(":set nohints", &format!("{prompt}>"));
    terminal.type_keys("get ");
    terminal.enter("k", &format!("get k\n(nil)\n{prompt}>"));
}

#[test]
fn tab_completes_commands_and_topics() {
    let (_server, mut terminal, prompt) = start(&[]);
    terminal.type_keys("getr\t");
    terminal.shows(&format!("{prompt}> GETRANGE key start end"));
    terminal.type_keys("\x15config re\t");
    terminal.shows(&format!("{prompt}> CONFIG RESETSTAT"));
    terminal.type_keys("\t");
    terminal.shows(&format!("{prompt}> CONFIG REWRITE"));
    terminal.type_keys("\x15help @hyp\t");
    terminal.shows(&format!("{prompt}> help @hyperloglog"));
    terminal.type_keys("\r");
    terminal.shows(&format!("since: 2.8.9\n\n{prompt}>"));
    assert!(terminal.text().contains("PFADD key [element [element ...]]"), "{}", terminal.text());
    terminal.enter("help get", &format!("group: string\n\n{prompt}>"));
}

#[test]
fn the_history_outlives_the_client_without_passwords() {
    let (server, mut terminal, prompt) = start(&[]);
    terminal.enter("incr n", &format!("(integer) 1\n{prompt}>"));
    terminal.enter("acl setuser u on >secret", &format!("OK\n{prompt}>"));
    // The running client remembers it.
    terminal.type_keys(UP);
    terminal.shows(&format!("{prompt}> acl setuser u on >secret [rule ...]"));
    terminal.type_keys("\x15quit\r");
    terminal.ends_with(0);
    let path = server.path(".rediscli_history");
    assert_eq!(fs::read_to_string(&path).unwrap(), "incr n\nquit\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let port = server.port.to_string();
    let mut terminal = Terminal::start(server.folder(), &["-p", &port]);
    terminal.shows(&format!("{prompt}>"));
    terminal.type_keys(&format!("{UP}{UP}"));
    terminal.shows(&format!("{prompt}> incr n"));
}

#[test]
fn messages_come_until_ctrl_c_or_a_key() {
    let (server, mut terminal, prompt) = start(&[]);
    let mut client = server.client();
    let reading = "Reading messages... (press Ctrl-C to quit or any key to type command)";
    terminal.enter("subscribe c", &format!("3) (integer) 1\n{reading}"));
    client.ask("PUBLISH c hello");
    terminal.shows(&format!("3) \"hello\"\n{reading}"));
    // A key brings the prompt back, at the same position.
    terminal.type_keys("s");
    terminal.shows(&format!("{prompt}(subscribed mode)> s"));
    client.ask("PUBLISH c second");
    terminal.enter("ubscribe d", &format!("3) (integer) 2\n{reading}"));
    assert!(terminal.text().contains("3) \"second\""), "{}", terminal.text());
    terminal.type_keys(CTRL_C);
    terminal.shows(&format!("3) (integer) 2\n{prompt}>"));
    terminal.enter("ping", &format!("PONG\n{prompt}>"));
}

#[test]
fn requests_come_until_ctrl_c() {
    let (server, mut terminal, prompt) = start(&["-n", "2"]);
    let mut client: Client = server.client();
    terminal.enter("monitor", "\nOK");
    client.ask("GET seen");
    terminal.shows("\"GET\" \"seen\"");
    terminal.type_keys(CTRL_C);
    terminal.shows(&format!("\"GET\" \"seen\"\n{prompt}[2]>"));
    // The new connection has the database of the old one.
    terminal.enter("set k 1", &format!("OK\n{prompt}[2]>"));
    assert_eq!(client.ask("EXISTS k").int(), 0);
}

#[test]
fn a_lost_connection_is_opened_again() {
    let (server, mut terminal, prompt) = start(&["-n", "1"]);
    terminal.enter("set k 1", &format!("OK\n{prompt}[1]>"));
    server.client().ask("CLIENT KILL TYPE normal SKIPME yes");
    terminal.enter("get k", "Error: Server closed the connection\nnot connected>");
    terminal.enter("get k", &format!("\"1\"\n{prompt}[1]>"));
    drop(server);
    terminal.enter("get k", "not connected>");
    let refused = format!("Could not connect to Redis at {prompt}: Connection refused");
    terminal.enter("get k", &format!("{refused}\nnot connected>"));
    terminal.type_keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn a_terminal_without_a_server_has_a_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&["--io-threads", "1"]);
    let mut terminal = Terminal::start(folder.path(), &["-p", "1"]);
    terminal.shows("Could not connect to Redis at 127.0.0.1:1: Connection refused\nnot connected>");
    let prompt = format!("127.0.0.1:{}>", server.port);
    terminal.enter(&format!("connect 127.0.0.1 {}", server.port), &prompt);
    terminal.enter("ping", &format!("PONG\n{prompt}"));
    // The commands are known by now.
    terminal.type_keys("get ");
    terminal.shows(&format!("{prompt} get key"));
}

#[test]
fn pasted_lines_are_commands_of_their_own() {
    let (_server, mut terminal, prompt) = start(&[]);
    terminal.type_keys("incr n\rincr n\rblpop none 0.1\rincr n\rincr n");
    terminal.shows(&format!("(integer) 3\n{prompt}> incr n"));
    let shown = format!("{prompt}> incr n\n(integer) 2\n{prompt}> blpop none 0.1\n(nil)\n");
    assert!(terminal.text().contains(&shown), "{}", terminal.text());
}

#[test]
fn slow_commands_show_their_time() {
    let (_server, mut terminal, prompt) = start(&[]);
    terminal.enter("blpop nothing 0.6", &format!("s)\n{prompt}>"));
    let text = terminal.text();
    let line = text.lines().find(|line| line.starts_with('(') && line.ends_with("s)")).unwrap();
    let seconds: f64 = line[1..line.len() - 2].parse().unwrap();
    assert!(seconds >= 0.5, "{text}");
    // Ctrl-C does not wait for the reply.
    terminal.type_keys("blpop nothing 0\r");
    terminal.shows("blpop nothing 0");
    terminal.type_keys(CTRL_C);
    terminal.ends_with(1);
}

#[test]
fn passwords_are_not_shown() {
    let server = Server::start(&["--requirepass", "right", "--io-threads", "1"]);
    let port = server.port.to_string();
    let folder = server.folder();
    let mut terminal = Terminal::start(folder, &["-p", &port, "--askpass"]);
    terminal.shows("Please input password:");
    terminal.type_keys("right\r");
    terminal.shows(&format!("127.0.0.1:{port}>"));
    assert!(!terminal.text().contains("right"), "{}", terminal.text());
    terminal.enter("ping", &format!("PONG\n127.0.0.1:{port}>"));
}

#[test]
fn preferences_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".redisclirc"), ":set nohints\n:set wishes\n").unwrap();
    let server = Server::start(&["--io-threads", "1"]);
    let port = server.port.to_string();
    let mut terminal = Terminal::start(folder.path(), &["-p", &port]);
    let unknown = ".redisclirc: unknown redis-cli preference 'wishes'";
    terminal.shows(&format!("{unknown}\n127.0.0.1:{port}>"));
    terminal.type_keys("get ");
    terminal.shows(&format!("127.0.0.1:{port}> get"));
}
