//! A client that writes and remembers the acknowledged writes.
//!
//! A writer counts one counter up and pushes each value to a list, by a transaction or a script.
//! Another transaction increments three more counters together.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use test_support::{Client, Value, encode};

/// Steps that are sent together.
const BATCH_MAX: u64 = 20;
/// Both writes of a step, as a script.
const SCRIPT: &[u8] = b"redis.call('SET', KEYS[1], ARGV[1]) redis.call('RPUSH', KEYS[2], ARGV[1])";

/// The numbers of sent and acknowledged writes of a writer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    steps: Counter,
    transfers: Counter,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    sent: u64,
    acknowledged: u64,
}

impl Counter {
    /// Compares with the value that was found, and continues from there. Returns how many writes
    /// were found beyond the acknowledged ones.
    fn check(&mut self, what: &str, found: u64) -> Result<u64, String> {
        let Self { sent, acknowledged } = *self;
        if !(acknowledged..=sent).contains(&found) {
            return Err(format!("{what} {found}: {acknowledged} acknowledged, {sent} sent"));
        }
        (self.sent, self.acknowledged) = (found, found);
        Ok(found - acknowledged)
    }
}

fn keys(number: usize) -> [Vec<u8>; 5] {
    let key = |name: &str| format!("{name}:{number}").into_bytes();
    [key("step"), key("list"), key("tx:a"), key("tx:b"), key("tx:c")]
}

impl Sent {
    /// The number of acknowledged writes.
    pub fn acknowledged(&self) -> u64 {
        self.steps.acknowledged + self.transfers.acknowledged
    }

    /// Checks the data after a start. Returns the number of writes that were found without an
    /// acknowledgement.
    ///
    /// # Errors
    /// A broken promise.
    pub fn check(&mut self, number: usize, client: &mut Client) -> Result<u64, String> {
        let [step, list, a, b, c] = keys(number);
        let ask = |client: &mut Client, args: &[&[u8]]| {
            client.try_ask(args).map_err(|error| format!("{number}: {error}"))
        };
        let found = number_of(&ask(client, &[b"GET", &step])?);
        let kept = self.steps.check(&format!("the counter of writer {number} is"), found)?;
        let len = number_of(&ask(client, &[b"LLEN", &list])?);
        let last = number_of(&ask(client, &[b"LINDEX", &list, b"-1"])?);
        if (len, last) != (found, found) {
            return Err(format!("writer {number}: {found} steps, {len} elements, the last {last}"));
        }
        let counters = ask(client, &[b"MGET", &a, &b, &c])?;
        let [first, ..] = counters.elements() else { return Err(format!("MGET is {counters}")) };
        let first = number_of(first);
        if counters.elements().iter().any(|counter| number_of(counter) != first) {
            return Err(format!("writer {number}: a transaction is torn: {counters}"));
        }
        let transfers = format!("the transactions of writer {number} are");
        Ok(kept + self.transfers.check(&transfers, first)?)
    }
}

/// The number in a reply; 0 of a key that does not exist.
fn number_of(reply: &Value) -> u64 {
    reply.integer().and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

/// A client that writes until the server is gone.
pub struct Writer<'a> {
    keys: [Vec<u8>; 5],
    connection: Client,
    sent: &'a mut Sent,
    random: fastrand::Rng,
}

impl<'a> Writer<'a> {
    /// A writer with a connection of its own.
    pub fn new(number: usize, connection: Client, sent: &'a mut Sent, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { keys: keys(number), connection, sent, random }
    }

    /// Writes until the server is gone.
    pub fn run(mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            if self.steps().and_then(|()| self.transfer()).is_err() {
                return;
            }
        }
    }

    fn steps(&mut self) -> io::Result<()> {
        let count = self.random.u64(1..=BATCH_MAX);
        let [step, list, ..] = &self.keys;
        let (mut bytes, mut replies) = (Vec::new(), Vec::new());
        for _ in 0..count {
            self.sent.steps.sent += 1;
            let value = self.sent.steps.sent.to_string().into_bytes();
            if self.random.bool() {
                let eval = [&b"EVAL"[..], SCRIPT, b"2", step, list, &value];
                bytes.extend(encode(&eval));
                replies.push(1);
            } else {
                bytes.extend(encode(&[b"MULTI"]));
                bytes.extend(encode(&[b"SET", step, &value]));
                bytes.extend(encode(&[b"RPUSH", list, &value]));
                bytes.extend(encode(&[b"EXEC"]));
                replies.push(4);
            }
        }
        self.connection.try_send(&bytes)?;
        for replies in replies {
            self.read(replies)?;
            self.sent.steps.acknowledged += 1;
        }
        Ok(())
    }

    fn transfer(&mut self) -> io::Result<()> {
        self.sent.transfers.sent += 1;
        let [_, _, a, b, c] = &self.keys;
        let mut bytes = encode(&[b"MULTI"]);
        [a, b, c].iter().for_each(|key| bytes.extend(encode(&[b"INCR", key])));
        bytes.extend(encode(&[b"EXEC"]));
        self.connection.try_send(&bytes)?;
        self.read(5)?;
        self.sent.transfers.acknowledged += 1;
        Ok(())
    }

    /// Reads this many replies. An error among them acknowledges nothing.
    fn read(&mut self, replies: usize) -> io::Result<()> {
        for _ in 0..replies {
            let reply = self.connection.receive()?;
            if reply.is_error() {
                return Err(io::Error::other(reply.to_string()));
            }
        }
        Ok(())
    }
}
