//! Walks over the keys with SCAN, and pipelined requests for the keys of a step.

use std::thread;
use std::time::Duration;

use super::lost;
use crate::cli::options::Options;
use crate::cli::output::CliEnd;
use crate::cli::session::CliSession;
use crate::client::reply::ServerReply;

/// Requests that are sent before their replies are read.
const PIPELINE_MAX: usize = 1000;
pub struct KeyWalk {
    cursor: Vec<u8>,
    arguments: Vec<Vec<u8>>,
    pause: Duration,
    /// The steps between two pauses.
    pause_steps: u64,
    steps: u64,
}

impl KeyWalk {
    /// A walk that pauses every `pause_steps`, if the options have an interval.
    pub fn new(options: &Options, pause_steps: u64) -> KeyWalk {
        let mut arguments = Vec::new();
        if let Some(pattern) = options.pattern() {
            arguments.extend([b"MATCH".to_vec(), pattern]);
        }
        arguments.extend([b"COUNT".to_vec(), options.modes.count.to_string().into_bytes()]);
        if let Some(key_type) = &options.modes.key_type {
            arguments.extend([b"TYPE".to_vec(), key_type.clone().into_bytes()]);
        }
        let pause = options.interval.unwrap_or_default();
        KeyWalk { cursor: b"0".to_vec(), arguments, pause, pause_steps, steps: 0 }
    }

    /// The keys of the next step; `None` after the last.
    pub fn step(&mut self, session: &mut CliSession) -> Result<Option<Vec<Vec<u8>>>, CliEnd> {
        if self.steps > 0 && self.cursor == b"0" {
            return Ok(None);
        }
        if self.steps > 0 && self.steps.is_multiple_of(self.pause_steps) && !self.pause.is_zero() {
            thread::sleep(self.pause);
        }
        self.steps += 1;
        let mut words = vec![b"SCAN".to_vec(), self.cursor.clone()];
        words.extend(self.arguments.iter().cloned());
        let reply = session.ask(&words).map_err(lost)?;
        if let ServerReply::Error(error) = &reply {
            let error = String::from_utf8_lossy(error);
            return Err(CliEnd::failed(format!("SCAN error: {error}")));
        }
        let parts = reply.items().unwrap_or_default();
        let [ServerReply::Bulk(cursor), ServerReply::Array(keys)] = parts else {
            return Err(CliEnd::failed("The server's reply to SCAN is no cursor with keys"));
        };
        self.cursor.clone_from(cursor);
        Ok(Some(keys.iter().filter_map(|key| key.text().map(<[u8]>::to_vec)).collect()))
    }
}

/// Sends all requests, and returns their replies in order.
pub fn ask_all(
    session: &mut CliSession,
    requests: &[Vec<&[u8]>],
) -> Result<Vec<ServerReply>, CliEnd> {
    let mut replies = Vec::with_capacity(requests.len());
    for requests in requests.chunks(PIPELINE_MAX) {
        let connection = session.connection.as_mut();
        let connection = connection.ok_or_else(|| CliEnd::failed("Error: not connected"))?;
        for request in requests {
            connection.send(request).map_err(lost)?;
        }
        for _ in requests {
            replies.push(connection.receive().map_err(lost)?);
        }
    }
    Ok(replies)
}
pub fn key_count(session: &mut CliSession) -> Result<i64, CliEnd> {
    match session.ask(&["DBSIZE"]).map_err(lost)? {
        ServerReply::Int(count) => Ok(count),
        ServerReply::Error(error) => {
            let error = String::from_utf8_lossy(&error);
            Err(CliEnd::failed(format!("Couldn't determine DBSIZE: {error}")))
        }
        _ => Err(CliEnd::failed("The server's reply to DBSIZE is no number")),
    }
}
