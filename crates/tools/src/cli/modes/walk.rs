//! Walks over the keys with SCAN, and requests about all keys of a step at once.

use std::thread;
use std::time::Duration;

use super::lost;
use crate::cli::options::Options;
use crate::cli::output::End;
use crate::cli::session::Session;
use crate::client::reply::Reply;

/// Requests that are sent before their replies are read.
const PIPELINE_MAX: usize = 1000;

/// A walk over all keys.
pub struct Walk {
    cursor: Vec<u8>,
    arguments: Vec<Vec<u8>>,
    pause: Duration,
    /// Pauses come after so many steps.
    pause_steps: u64,
    steps: u64,
}

impl Walk {
    /// A walk that pauses after so many steps, if the options name a pause.
    pub fn new(options: &Options, pause_steps: u64) -> Walk {
        let mut arguments = Vec::new();
        if let Some(pattern) = options.pattern() {
            arguments.extend([b"MATCH".to_vec(), pattern]);
        }
        arguments.extend([b"COUNT".to_vec(), options.modes.count.to_string().into_bytes()]);
        if let Some(key_type) = &options.modes.key_type {
            arguments.extend([b"TYPE".to_vec(), key_type.clone().into_bytes()]);
        }
        let pause = options.interval.unwrap_or_default();
        Walk { cursor: b"0".to_vec(), arguments, pause, pause_steps, steps: 0 }
    }

    /// The keys of the next step; `None` after the last.
    pub fn step(&mut self, session: &mut Session) -> Result<Option<Vec<Vec<u8>>>, End> {
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
        if let Reply::Error(error) = &reply {
            let error = String::from_utf8_lossy(error);
            return Err(End::failed(format!("SCAN error: {error}")));
        }
        let parts = reply.items().unwrap_or_default();
        let [Reply::Bulk(cursor), Reply::Array(keys)] = parts else {
            return Err(End::failed("The server's reply to SCAN is no cursor with keys"));
        };
        self.cursor.clone_from(cursor);
        Ok(Some(keys.iter().filter_map(|key| key.text().map(<[u8]>::to_vec)).collect()))
    }
}

/// Sends all requests, and returns their replies in order.
pub fn ask_all(session: &mut Session, requests: &[Vec<&[u8]>]) -> Result<Vec<Reply>, End> {
    let mut replies = Vec::with_capacity(requests.len());
    for requests in requests.chunks(PIPELINE_MAX) {
        let connection = session.connection.as_mut();
        let connection = connection.ok_or_else(|| End::failed("Error: not connected"))?;
        for request in requests {
            connection.send(request).map_err(lost)?;
        }
        for _ in requests {
            replies.push(connection.receive().map_err(lost)?);
        }
    }
    Ok(replies)
}

/// The number of keys in the database.
pub fn key_count(session: &mut Session) -> Result<i64, End> {
    match session.ask(&["DBSIZE"]).map_err(lost)? {
        Reply::Int(count) => Ok(count),
        Reply::Error(error) => {
            let error = String::from_utf8_lossy(&error);
            Err(End::failed(format!("Couldn't determine DBSIZE: {error}")))
        }
        _ => Err(End::failed("The server's reply to DBSIZE is no number")),
    }
}
