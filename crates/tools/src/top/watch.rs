//! Looks at a server one after another, on its own thread, so that the screen does not wait for a
//! server that does not answer.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::host;
use super::host::HostLook;
use super::info::Info;
use crate::cli::connection::{CliConnection, CliTarget};
use crate::client::reply::ServerReply;
use crate::printable::printable_line;

/// The number of entries of the slow log.
const SLOW_ENTRIES: &str = "8";
/// The number of hot keys.
const HOT_KEYS: &str = "8";

/// The user and the password.
#[derive(Clone, Debug, Default)]
pub(super) struct Login {
    pub(super) user: Option<Vec<u8>>,
    pub(super) password: Option<Vec<u8>>,
}

/// One look at a server.
#[derive(Clone, Debug)]
pub(super) struct ServerLook {
    pub(super) at: Instant,
    pub(super) info: Info,
    /// The duration of PING.
    pub(super) ping: Duration,
    /// The kernel's figures of a server on this host.
    pub(super) host: Option<HostLook>,
    /// Newest first; `None` without the right.
    pub(super) slow: Option<Vec<SlowLogEntry>>,
    /// Hottest first; `None` if the server does not know them.
    pub(super) hot: Option<Vec<HotKeyEntry>>,
    /// The parameter, if the user may read it.
    pub(super) io_threads: Option<String>,
}

/// A command in the slow log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlowLogEntry {
    pub(super) unix_seconds: i64,
    pub(super) micros: i64,
    pub(super) words: String,
}

/// A frequently used key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HotKeyEntry {
    pub(super) db: i64,
    pub(super) key: String,
    pub(super) requests_per_second: i64,
}

/// The result of a look.
#[derive(Clone, Debug)]
pub(super) enum LookAnswer {
    Look(Box<ServerLook>),
    /// A script keeps the server busy; the text is the server's.
    Busy(String),
}

/// The looks of the other thread.
pub(super) struct ServerWatch {
    looks: Receiver<Result<LookAnswer, String>>,
    next: Sender<()>,
}

impl ServerWatch {
    /// Connects and waits for requests on a new thread.
    pub(super) fn begin(target: CliTarget, login: Login) -> Self {
        let (sender, looks) = channel();
        let (next, wanted) = channel();
        thread::spawn(move || {
            let mut connection = match connect(&target, &login) {
                Ok(connection) => connection,
                Err(reason) => return drop(sender.send(Err(reason))),
            };
            while let Ok(()) = wanted.recv() {
                let look = look(&mut connection);
                let is_over = look.is_err();
                if sender.send(look).is_err() || is_over {
                    return;
                }
            }
        });
        Self { looks, next }
    }

    /// Requests a look.
    pub(super) fn ask(&self) {
        // A thread that has ended has sent the reason.
        let _ = self.next.send(());
    }

    /// The requested look; `None` if it does not arrive within this time.
    pub(super) fn wait(&self, time: Duration) -> Option<Result<LookAnswer, String>> {
        match self.looks.recv_timeout(time) {
            Ok(look) => Some(look),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err("the server is gone".to_owned())),
        }
    }
}

fn connect(target: &CliTarget, login: &Login) -> Result<CliConnection, String> {
    let mut connection = CliConnection::open(target, None)?;
    if let Some(password) = &login.password {
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(login.user.as_deref());
        words.push(password);
        if let ServerReply::Error(error) = connection.ask(&words).map_err(lost)? {
            return Err(format!("AUTH failed: {}", String::from_utf8_lossy(&error)));
        }
    }
    // A name for CLIENT LIST.
    let _ = connection.ask(&["CLIENT", "SETNAME", "weft-top"]).map_err(lost)?;
    Ok(connection)
}

fn lost(failure: impl Display) -> String {
    format!("the server is gone: {failure}")
}

fn look(connection: &mut CliConnection) -> Result<LookAnswer, String> {
    let began = Instant::now();
    connection.ask(&["PING"]).map_err(lost)?;
    let ping = began.elapsed();
    let at = Instant::now();
    let info = match connection.ask(&["INFO", "ALL"]).map_err(lost)? {
        ServerReply::Error(error) => {
            let error = String::from_utf8_lossy(&error);
            return match error.starts_with("BUSY ") {
                true => Ok(LookAnswer::Busy(printable_line(&error))),
                false => Err(format!("the server refused INFO: {error}")),
            };
        }
        reply => Info::parse(&String::from_utf8_lossy(reply.text().unwrap_or_default())),
    };
    if info.is_empty() {
        return Err("the server does not answer INFO as Redis does".to_owned());
    }
    let pid = info.number("process_id").map(|pid| pid as u32);
    let host = pid.and_then(|pid| host::look(pid, info.or_zero("uptime_in_seconds")));
    let slow = connection.ask(&["SLOWLOG", "GET", SLOW_ENTRIES]).map_err(lost)?;
    let hot = match info.text("weft_version") {
        Some(_) => {
            connection.ask(&["WEFT", "HOTKEYS", "COUNT", HOT_KEYS]).map_err(lost).map(Some)?
        }
        None => None,
    };
    let io_threads = connection.ask(&["CONFIG", "GET", "io-threads"]).map_err(lost)?;
    Ok(LookAnswer::Look(Box::new(ServerLook {
        at,
        ping,
        host,
        slow: slow.items().map(|entries| entries.iter().filter_map(slow_command).collect()),
        hot: hot
            .and_then(|reply| reply.items().map(|keys| keys.iter().filter_map(hot_key).collect())),
        io_threads: io_threads.field("io-threads").and_then(text_of),
        info,
    })))
}

fn text_of(reply: &ServerReply) -> Option<String> {
    reply.text().map(|text| String::from_utf8_lossy(text).into_owned())
}

fn int(reply: &ServerReply) -> Option<i64> {
    if let ServerReply::Int(value) = reply { Some(*value) } else { None }
}

fn slow_command(entry: &ServerReply) -> Option<SlowLogEntry> {
    let [_, at, micros, words, ..] = entry.items()? else { return None };
    let words: Vec<String> = words.items()?.iter().filter_map(text_of).collect();
    Some(SlowLogEntry {
        unix_seconds: int(at)?,
        micros: int(micros)?,
        words: printable_line(&words.join(" ")),
    })
}

fn hot_key(entry: &ServerReply) -> Option<HotKeyEntry> {
    Some(HotKeyEntry {
        db: entry.field("db").and_then(int)?,
        key: printable_line(&entry.field("key").and_then(text_of)?),
        requests_per_second: entry.field("requests-per-second").and_then(int)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> ServerReply {
        ServerReply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn replies_become_entries() {
        let words = ServerReply::Array(vec![bulk("GET"), bulk("a\x1b[2Jb")]);
        let entry = ServerReply::Array(vec![
            ServerReply::Int(1),
            ServerReply::Int(5),
            ServerReply::Int(20),
            words,
        ]);
        let slow = SlowLogEntry { unix_seconds: 5, micros: 20, words: "GET a.[2Jb".to_owned() };
        assert_eq!(slow_command(&entry), Some(slow));
        assert_eq!(slow_command(&ServerReply::Int(1)), None);
        let entry = ServerReply::Array(vec![
            bulk("db"),
            ServerReply::Int(0),
            bulk("key"),
            bulk("k"),
            bulk("requests-per-second"),
            ServerReply::Int(9),
        ]);
        let hot = HotKeyEntry { db: 0, key: "k".to_owned(), requests_per_second: 9 };
        assert_eq!(hot_key(&entry), Some(hot));
    }
}
