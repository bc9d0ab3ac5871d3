//! Random bytes: the server survives any input and serves other clients.

use std::time::{Duration, Instant};

use test_support::encode;

use crate::{Client, MODELS, Server};

/// Rounds for each thread model.
const TIME: Duration = Duration::from_millis(1500);

/// The generator xorshift64*, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

const WORDS: [&[u8]; 34] = [
    b"GET",
    b"SET",
    b"MSET",
    b"MGET",
    b"DEL",
    b"INCR",
    b"APPEND",
    b"SETRANGE",
    b"GETRANGE",
    b"TTL",
    b"EXPIRE",
    b"SCAN",
    b"RENAME",
    b"COPY",
    b"OBJECT",
    b"CLIENT",
    b"LIST",
    b"REPLY",
    b"SKIP",
    b"ON",
    b"HELLO",
    b"3",
    b"a",
    b"b",
    b"c",
    b"0",
    b"-1",
    b"9223372036854775807",
    b"1e308",
    b"EX",
    b"NX",
    b"COMMAND",
    b"SETINFO",
    b"",
];

/// Mostly well-formed requests of known words, with mutations.
fn bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(20) {
        match random.below(8) {
            0 => bytes.extend((0..random.below(100)).map(|_| random.below(256) as u8)),
            1 => bytes.extend(b"*$\r\n 0123456789\"'\\-"[..random.below(19)].iter()),
            2 => {
                let long = vec![b'x'; random.below(100_000)];
                bytes.extend(encode(&[b"SET", WORDS[22 + random.below(3)], &long]));
            }
            _ => {
                let count = 1 + random.below(6);
                let args: Vec<&[u8]> = (0..count).map(|_| WORDS[random.below(34)]).collect();
                bytes.extend(encode(&args));
            }
        }
    }
    if random.below(2) == 0 && !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
    }
    bytes
}

#[test]
fn random_bytes_harm_no_other_client() {
    for (number, model) in MODELS.iter().enumerate() {
        let server = Server::start(model);
        let mut other = server.client();
        let seed = std::process::id() as u64 * 4 + number as u64 + 1;
        let mut random = Random(seed);
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < TIME {
            let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
            for _ in 0..10 {
                let client = random.below(8);
                let bytes = bytes(&mut random);
                let cut = random.below(bytes.len() + 1);
                clients[client].send_lossy(&bytes[..cut]);
                clients[client].send_lossy(&bytes[cut..]);
                sent += 1;
            }
            drop(clients);
            let pong = other.ask("PING").text();
            assert_eq!(pong, "PONG", "seed {seed}, after {sent}");
        }
        assert!(!server.log().contains("panicked"), "seed {seed}");
    }
}
