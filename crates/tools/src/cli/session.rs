//! A conversation with a server: the user, database and protocol, and how commands change them.
//!
//! A lost connection is opened again for the next command, with the same user, database and
//! protocol. Two things differ from redis-cli, because a command must not hit the wrong data: if
//! the database cannot be selected, nothing is sent; and an error reply after a refused login
//! counts as a failed command (see [`CliSession::failed`]).

use std::io::{self, Write};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::connection::{self, Caught, CliConnection, CliTarget, ConnectionFailure, CtrlC};
use super::format::{Output, Style, invalidation};
use super::output::{CliEnd, print};
use crate::client::address::ServerAddress;
use crate::client::reply::ServerReply;
use crate::printable::printable;

/// How often a cluster may redirect the same command.
const REDIRECTIONS_MAX: usize = 16;

/// Whether to speak RESP3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Two,
    /// RESP3; a server without it is refused.
    Three,
    /// RESP3 if the server speaks it.
    ThreeIfKnown,
}

/// The settings of a conversation.
#[derive(Debug)]
pub struct Terms {
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    pub protocol: Protocol,
    pub style: Style,
    /// Whether pushes are shown.
    pub shows_pushes: bool,
    /// Whether commands are read one after another, so that a lost connection is not the end.
    pub interactive: bool,
    /// Whether an error reply ends the client.
    pub errors_end: bool,
    /// Whether MOVED and ASK are followed.
    pub cluster: bool,
    /// The pause after each command.
    pub interval: Duration,
}

/// Why a connection cannot be used as intended. The reason is already printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// There is no connection.
    Unreachable,
    /// The password is wrong.
    Login,
    /// The server refuses the database or the protocol.
    Refused,
}

/// The result of sending a command.
enum CommandTurn {
    Answered,
    /// A node of a cluster redirects it to this address, and whether by ASK.
    Redirected(ServerAddress, bool),
}
#[derive(Debug)]
pub struct CliSession {
    pub terms: Terms,
    pub target: CliTarget,
    /// The connection, unless it is lost.
    pub connection: Option<CliConnection>,
    /// Ctrl-C, if it ends waits.
    pub interrupt: Option<Rc<CtrlC>>,
    /// The database that is wanted.
    db_wanted: i64,
    /// The database that is selected.
    db: i64,
    db_before_multi: i64,
    in_multi: bool,
    resp3: bool,
    /// Whether the client is subscribed.
    pub subscribed: bool,
    shuts_down: bool,
    login_refused: bool,
    /// Whether the last command did not reach the server as intended.
    pub failed: bool,
}

impl CliSession {
    /// A conversation without a connection yet.
    pub fn new(target: CliTarget, db: i64, terms: Terms) -> Self {
        Self {
            terms,
            target,
            connection: None,
            interrupt: None,
            db_wanted: db,
            db: 0,
            db_before_multi: 0,
            in_multi: false,
            resp3: false,
            subscribed: false,
            shuts_down: false,
            login_refused: false,
            failed: false,
        }
    }

    /// The prompt of a terminal.
    pub fn prompt(&self) -> String {
        if self.connection.is_none() {
            return "not connected> ".into();
        }
        let mut prompt = connection::prompt(&self.target.address);
        if self.db != 0 {
            prompt.push_str(&format!("[{}]", self.db));
        }
        if self.in_multi {
            prompt.push_str("(TX)");
        }
        if self.subscribed {
            prompt.push_str("(subscribed mode)");
        }
        prompt + "> "
    }

    /// Whether a request of the client itself cannot disturb the user's.
    pub fn is_plain(&self) -> bool {
        self.connection.is_some() && !self.in_multi && !self.subscribed && !self.login_refused
    }

    /// Opens a new connection, and prints a failure. With `quiet`, an unreachable server is not
    /// printed.
    pub fn connect(&mut self, quiet: bool) -> Result<(), Obstacle> {
        self.connection = None;
        (self.db, self.in_multi, self.subscribed, self.resp3) = (0, false, false, false);
        self.login_refused = false;
        match CliConnection::open(&self.target, self.interrupt.clone()) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => {
                if !quiet {
                    say!("{error}");
                }
                return Err(Obstacle::Unreachable);
            }
        }
        self.log_in()?;
        self.select()?;
        self.switch_protocol()
    }

    /// Sends a command that the conversation itself needs; prints a lost connection.
    fn arrange(&mut self, words: &[&[u8]]) -> Result<ServerReply, Obstacle> {
        let Some(connection) = &mut self.connection else { return Err(Obstacle::Unreachable) };
        connection.ask(words).map_err(|failure| {
            say!("Error: {failure}");
            self.connection = None;
            Obstacle::Refused
        })
    }

    fn log_in(&mut self) -> Result<(), Obstacle> {
        let Some(password) = self.terms.password.clone() else { return Ok(()) };
        let user = self.terms.user.clone();
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(user.as_deref());
        words.push(&password);
        if let ServerReply::Error(error) = self.arrange(&words)? {
            say!("AUTH failed: {}", printable(&String::from_utf8_lossy(&error)));
            self.login_refused = true;
            return Err(Obstacle::Login);
        }
        Ok(())
    }

    fn select(&mut self) -> Result<(), Obstacle> {
        let wanted = self.db_wanted;
        if wanted == self.db {
            return Ok(());
        }
        if let ServerReply::Error(error) =
            self.arrange(&[b"SELECT", wanted.to_string().as_bytes()])?
        {
            say!("SELECT {wanted} failed: {}", printable(&String::from_utf8_lossy(&error)));
            return Err(Obstacle::Refused);
        }
        self.db = wanted;
        Ok(())
    }

    fn switch_protocol(&mut self) -> Result<(), Obstacle> {
        if self.terms.protocol == Protocol::Two {
            return Ok(());
        }
        if let ServerReply::Error(error) = self.arrange(&[b"HELLO", b"3"])? {
            say!("HELLO 3 failed: {}", printable(&String::from_utf8_lossy(&error)));
            return match self.terms.protocol {
                Protocol::Three => Err(Obstacle::Refused),
                _ => Ok(()),
            };
        }
        self.resp3 = true;
        Ok(())
    }

    /// Sends a command whose reply is not shown.
    pub fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> Result<ServerReply, ConnectionFailure> {
        self.connection.as_mut().ok_or(ConnectionFailure::Closed)?.ask(words)
    }

    /// Sends a command `repeat` times and shows the replies. [`failed`](Self::failed) is set after
    /// a failure that does not end the client.
    pub fn issue(&mut self, words: &[Vec<u8>], repeat: i64) -> Result<(), CliEnd> {
        self.failed = true;
        let mut asking = false;
        for _ in 0..REDIRECTIONS_MAX {
            if self.connection.is_none() {
                match self.connect(false) {
                    Ok(()) | Err(Obstacle::Login) => {}
                    Err(_) => return Ok(()),
                }
            }
            if asking {
                let Ok(reply) = self.arrange(&[b"ASKING"]) else { return Ok(()) };
                if let ServerReply::Error(error) = reply {
                    say!("ASKING failed: {}", printable(&String::from_utf8_lossy(&error)));
                    return Ok(());
                }
            }
            match self.issue_here(words, repeat) {
                Ok(CommandTurn::Answered) => return Ok(()),
                Ok(CommandTurn::Redirected(place, asks)) => {
                    (self.target.address, asking) = (place, asks);
                    self.connection = None;
                }
                Err(CommandTrouble::End(end)) => return Err(end),
                Err(CommandTrouble::Failure(failure)) => return self.lose(failure),
            }
        }
        Err(CliEnd::failed("Error: the cluster keeps redirecting the command"))
    }

    /// Handles a lost connection: ends the client, or lets the next command open a new one.
    fn lose(&mut self, failure: ConnectionFailure) -> Result<(), CliEnd> {
        self.connection = None;
        match failure {
            ConnectionFailure::Interrupted => return Err(CliEnd::Code(1)),
            ConnectionFailure::Closed | ConnectionFailure::Io(_) if self.shuts_down => {
                (self.shuts_down, self.failed) = (false, false);
                return Ok(());
            }
            failure if !self.terms.interactive => {
                return Err(CliEnd::failed(format!("Error: {failure}")));
            }
            _ => {}
        }
        say!("Error: {failure}");
        self.subscribed = false;
        Ok(())
    }

    fn issue_here(
        &mut self,
        words: &[Vec<u8>],
        repeat: i64,
    ) -> Result<CommandTurn, CommandTrouble> {
        let name = lower(words.first());
        self.shuts_down |= name == "shutdown";
        let mut left = repeat;
        while left != 0 {
            left = left.saturating_sub(i64::from(left > 0));
            self.connection.as_mut().ok_or(ConnectionFailure::Closed)?.send(words)?;
            if name == "monitor" {
                self.follow_requests()?;
                self.failed = false;
                return Ok(CommandTurn::Answered);
            }
            let (reply, redirection) = self.take_answer(words, &name)?;
            if let Some((place, asks)) = redirection {
                return Ok(CommandTurn::Redirected(place, asks));
            }
            self.failed = self.login_refused && reply.is_error();
            self.notice(words, &name, &reply);
            if !self.terms.interval.is_zero() {
                thread::sleep(self.terms.interval);
            }
        }
        self.failed &= repeat != 0;
        Ok(CommandTurn::Answered)
    }

    /// Shows the output of MONITOR until Ctrl-C.
    fn follow_requests(&mut self) -> Result<(), CommandTrouble> {
        let _caught = self.interrupt.clone().map(Caught::begin);
        loop {
            match self.receive(true) {
                Ok(reply) => {
                    self.show(&reply, false)?;
                    if reply.is_error() {
                        return Ok(());
                    }
                }
                Err(CommandTrouble::Failure(ConnectionFailure::Interrupted)) => {
                    let _ = self.connect(false);
                    return Ok(());
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Shows the reply to a command, or the confirmations for its channels.
    fn take_answer(
        &mut self,
        words: &[Vec<u8>],
        name: &str,
    ) -> Result<(ServerReply, Option<(ServerAddress, bool)>), CommandTrouble> {
        let verbatim = is_verbatim(words, name);
        let subscribes = matches!(name, "subscribe" | "psubscribe" | "ssubscribe");
        let confirmed =
            subscribes || matches!(name, "unsubscribe" | "punsubscribe" | "sunsubscribe");
        let mut due = if confirmed { words.len().saturating_sub(1).max(1) } else { 0 };
        loop {
            let pushes_answer = due > 0 || self.subscribed;
            let reply = self.receive(pushes_answer)?;
            if let Some(redirection) = self.redirection(&reply) {
                return Ok((reply, Some(redirection)));
            }
            if self.terms.errors_end
                && !self.terms.interactive
                && let ServerReply::Error(text) = &reply
            {
                return Err(CliEnd::failed(String::from_utf8_lossy(text).into_owned()).into());
            }
            self.show(&reply, verbatim)?;
            if pushes_answer && let Some(kind) = self.message_kind(&reply) {
                if due == 0 || !kind.eq_ignore_ascii_case(name.as_bytes()) {
                    continue;
                }
                self.subscribed |= subscribes;
                due -= 1;
                if due > 0 {
                    continue;
                }
            } else if pushes_answer && matches!(reply, ServerReply::Push(_)) {
                continue;
            }
            return Ok((reply, None));
        }
    }

    /// The first word of a message or of a confirmation.
    fn message_kind<'a>(&self, reply: &'a ServerReply) -> Option<&'a [u8]> {
        let items = match reply {
            ServerReply::Push(items) if self.resp3 => items,
            ServerReply::Array(items) if !self.resp3 => items,
            _ => return None,
        };
        let kind = items.first().filter(|_| items.len() >= 3)?.text()?;
        (kind.ends_with(b"message") || kind.ends_with(b"subscribe")).then_some(kind)
    }

    /// The address of a redirection, and whether it is ASK.
    fn redirection(&self, reply: &ServerReply) -> Option<(ServerAddress, bool)> {
        let ServerReply::Error(text) = reply else { return None };
        let text = std::str::from_utf8(text).ok().filter(|_| self.terms.cluster)?;
        let mut words = text.split(' ');
        let asks = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let (slot, address) = (words.next()?, words.next()?);
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = match &self.target.address {
            // A node that does not know its own name omits it.
            ServerAddress::Tcp { host: this, .. } if host.is_empty() => this.clone(),
            _ => host.to_owned(),
        };
        if self.terms.interactive {
            let text = "-> Redirected to slot";
            let _ = writeln!(io::stdout(), "{text} [{slot}] located at {host}:{port}");
        }
        Some((ServerAddress::Tcp { host, port }, asks))
    }

    /// The next reply. Pushes before it are shown or dropped, unless `pushes_answer`.
    fn receive(&mut self, pushes_answer: bool) -> Result<ServerReply, CommandTrouble> {
        loop {
            let reply = self.connection.as_mut().ok_or(ConnectionFailure::Closed)?.receive()?;
            if pushes_answer || !matches!(reply, ServerReply::Push(_)) {
                return Ok(reply);
            }
            if self.terms.shows_pushes {
                let standard = self.terms.style.output == Output::Standard;
                match invalidation(&reply).filter(|_| standard) {
                    Some(text) => print(&text)?,
                    None => self.show(&reply, false)?,
                }
            }
        }
    }

    fn show(&self, reply: &ServerReply, verbatim: bool) -> Result<(), CliEnd> {
        print(&self.terms.style.format(reply, verbatim))
    }

    /// Shows messages while the client is subscribed.
    pub fn follow_messages(&mut self) -> Result<(), CliEnd> {
        while self.subscribed {
            let received = match &mut self.connection {
                None => Err(ConnectionFailure::Closed),
                Some(connection) => connection.receive(),
            };
            match received {
                Ok(reply) => self.show(&reply, false)?,
                Err(failure) => return Err(CliEnd::failed(format!("Error: {failure}"))),
            }
        }
        Ok(())
    }

    /// Shows the messages that have already arrived.
    pub fn show_received(&mut self) -> Result<(), CliEnd> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        match connection.received() {
            Ok(None) => Ok(()),
            Ok(Some(reply)) => {
                self.show(&reply, false)?;
                self.show_received()
            }
            Err(failure) => Err(CliEnd::failed(format!("Error: {failure}"))),
        }
    }

    /// Applies the effect of a command on the conversation.
    fn notice(&mut self, words: &[Vec<u8>], name: &str, reply: &ServerReply) {
        let refused = reply.is_error();
        match (name, words.len()) {
            ("select", 2) if !refused => {
                let db = std::str::from_utf8(&words[1]).ok().and_then(|db| db.parse().ok());
                self.db = db.unwrap_or(0);
                self.db_wanted = self.db;
            }
            ("auth", 2 | 3) => {
                self.login_refused &= refused;
                let _ = self.select();
            }
            ("multi", 1) if !refused => (self.in_multi, self.db_before_multi) = (true, self.db),
            ("exec", 1) if self.in_multi => {
                self.in_multi = false;
                if refused || *reply == ServerReply::Nil {
                    (self.db, self.db_wanted) = (self.db_before_multi, self.db_before_multi);
                }
            }
            ("discard", 1) if !refused => {
                self.in_multi = false;
                (self.db, self.db_wanted) = (self.db_before_multi, self.db_before_multi);
            }
            ("reset", 1) if !refused => {
                (self.in_multi, self.resp3, self.subscribed) = (false, false, false);
                (self.db, self.db_wanted) = (0, 0);
            }
            ("hello", _) if matches!(reply, ServerReply::Map(_)) => self.resp3 = true,
            ("hello", _) if matches!(reply, ServerReply::Array(_)) => self.resp3 = false,
            _ => {}
        }
    }
}

/// Why a command stops.
enum CommandTrouble {
    Failure(ConnectionFailure),
    End(CliEnd),
}

impl From<ConnectionFailure> for CommandTrouble {
    fn from(failure: ConnectionFailure) -> Self {
        CommandTrouble::Failure(failure)
    }
}

impl From<CliEnd> for CommandTrouble {
    fn from(end: CliEnd) -> Self {
        CommandTrouble::End(end)
    }
}

fn lower(word: Option<&Vec<u8>>) -> String {
    word.map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).unwrap_or_default()
}

/// Whether the reply is a text for people, which every form of output shows unchanged.
fn is_verbatim(words: &[Vec<u8>], name: &str) -> bool {
    let second = lower(words.get(1));
    matches!(
        (name, second.as_str(), words.len()),
        ("info" | "lolwut", ..)
            | ("debug", "htstats" | "htstats-key" | "client-eviction", _)
            | ("memory", "malloc-stats" | "doctor", _)
            | ("cluster", "nodes" | "info", 2)
            | ("client", "list" | "info", _)
            | ("latency", "graph", 3)
            | ("latency", "doctor", 2)
    )
}
