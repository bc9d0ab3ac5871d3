//! Requests, whole and split at every byte.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use base::random::Random;
use proptest::prelude::*;
use resp::{Args, Limits, Parsed, Parser, ProtocolError, Span};

const OPEN: Limits = Limits { bulk_bytes_max: 512 << 20, authenticated: true };
const CLOSED: Limits = Limits { bulk_bytes_max: 512 << 20, authenticated: false };

/// Parses bytes in parts, as the server does.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    parser: Parser,
    spans: Vec<Span>,
    own: Vec<Arc<Vec<u8>>>,
    big: Option<(usize, usize, Vec<u8>)>,
    requests: Vec<Vec<Vec<u8>>>,
}

impl Reader {
    fn receive(&mut self, mut bytes: &[u8], limits: Limits) -> Result<(), ProtocolError> {
        if let Some((start, len, big)) = &mut self.big {
            let (now, rest) = bytes.split_at(bytes.len().min(*len + 2 - big.len()));
            big.extend_from_slice(now);
            bytes = rest;
            if big.len() == *len + 2 {
                let mut argument = std::mem::take(big);
                argument.truncate(*len);
                self.parser.big_received(*start, argument, &mut self.spans, &mut self.own);
                self.big = None;
                if self.parser.is_between_requests() {
                    self.finish(self.parser.at());
                }
            }
        }
        self.buffer.extend_from_slice(bytes);
        if self.big.is_some() {
            return Ok(());
        }
        loop {
            match self.parser.advance(&self.buffer, limits, &mut self.spans, &mut self.own)? {
                Parsed::Request(end) => self.finish(end),
                Parsed::Incomplete => return Ok(()),
                Parsed::Big { start, len } => {
                    self.big = Some((start, len, self.buffer.split_off(start)));
                    return Ok(());
                }
            }
        }
    }

    fn finish(&mut self, end: usize) {
        let args = Args::new(&self.buffer, &self.spans, &self.own);
        self.requests.push(args.iter().map(<[u8]>::to_vec).collect());
        self.buffer.drain(..end);
        self.parser = Parser::new(0);
        self.spans.clear();
        self.own.clear();
    }
}

fn requests(bytes: &[u8], piece: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
    let mut reader = Reader::default();
    for piece in bytes.chunks(piece) {
        reader.receive(piece, OPEN)?;
    }
    Ok(reader.requests)
}

fn encode(request: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for arg in request {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

proptest! {
    #[test]
    fn any_split_gives_the_same_requests(
        sent in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6), 1..6),
        piece in 1usize..50,
    ) {
        let bytes: Vec<u8> = sent.iter().flat_map(|request| encode(request)).collect();
        prop_assert_eq!(requests(&bytes, piece).unwrap(), sent);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        piece in 1usize..9,
    ) {
        let _ = requests(&bytes, piece);
    }

    #[test]
    fn no_near_request_makes_it_panic(text in "[*$0-9\r\n\"' a-]{0,60}", piece in 1usize..9) {
        let _ = requests(text.as_bytes(), piece);
    }
}

/// Requests of every form, which the test then damages.
fn seeds() -> Vec<Vec<u8>> {
    let long = vec![b'v'; 40_000];
    let texts: [&[&[u8]]; 6] = [
        &[b"PING"],
        &[b"SET", b"key", b"value with \r\n and \0"],
        &[b"MSET", b"a", b"", b"b", b"1", b"c", b"-1"],
        &[b"SET", b"key", &long],
        &[b"EVAL", b"return redis.call('get', KEYS[1])", b"1", b"key"],
        &[b"\xff\x80", b"*1\r\n$4\r\nPING\r\n"],
    ];
    let requests = texts.map(|args| args.iter().map(|arg| arg.to_vec()).collect::<Vec<_>>());
    let mut seeds: Vec<Vec<u8>> = requests.iter().map(|request| encode(request)).collect();
    seeds.push(seeds.concat());
    seeds.push(b"SET \"a b\" 'c' \"\\x41\\n\"\r\n\r\nPING\n*0\r\n*-1\r\nGET key\r\n".to_vec());
    seeds
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const NUMBERS: [&[u8]; 6] = [b"-1", b"0", b"2147483648", b"99999999999", b"1", b"+3"];
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let number = NUMBERS[random.below(6) as usize];
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(4) as usize))),
            3 => drop(bytes.splice(at..at, number.iter().copied())),
            4 => {
                let from = random.below(other.len() as u64 + 1) as usize;
                let end = other.len().min(from + random.below(60) as usize);
                drop(bytes.splice(at..at, other[from..end].iter().copied()));
            }
            5 => drop(bytes.splice(at..at, *b"\r\n")),
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
    }
}

/// The requests in bytes that arrive in parts, and the error at the end, if there is one.
fn outcome(bytes: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Option<Vec<u8>>) {
    let mut reader = Reader::default();
    let mut pieces = bytes.chunks(piece);
    let error = pieces.find_map(|piece| reader.receive(piece, OPEN).err());
    (reader.requests, error.map(|error| error.text()))
}

/// Runs longer with `RESP_FUZZ_ROUNDS` in the environment.
#[test]
fn damaged_requests_give_the_same_result_in_any_parts() {
    let seeds = seeds();
    let more = std::env::var("RESP_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut random = Random::new(more.unwrap_or(1));
    let (mut read, mut refused) = (0, 0);
    for round in 0..more.unwrap_or(20_000u64) {
        let pick = |random: &mut Random| &seeds[random.below(seeds.len() as u64) as usize];
        let mut bytes = pick(&mut random).clone();
        let other = pick(&mut random);
        damage(&mut bytes, other, &mut random);
        let whole = outcome(&bytes, bytes.len().max(1));
        let piece = 1 + random.below(if bytes.len() > 5000 { 40_000 } else { 40 }) as usize;
        assert_eq!(outcome(&bytes, piece), whole, "round {round}, pieces of {piece}");
        let bytes_read: usize = whole.0.iter().flatten().map(Vec::len).sum();
        assert!(bytes_read <= bytes.len(), "round {round}");
        if whole.1.is_some() { refused += 1 } else { read += 1 }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

#[test]
fn big_arguments_have_their_own_buffers() {
    let request = vec![b"SET".to_vec(), vec![b'k'; 40_000], vec![b'v'; 100_000]];
    let mut bytes = encode(&request);
    bytes.extend_from_slice(b"PING\r\n");
    for piece in [1, 1000, 65_536, bytes.len()] {
        assert_eq!(requests(&bytes, piece).unwrap(), [request.clone(), vec![b"PING".to_vec()]]);
    }
}

#[test]
fn inline_requests_are_split_as_in_a_shell() {
    let got = requests(b"SET \"a b\" 'c'\r\n\r\nPING\n", 3).unwrap();
    let text: Vec<Vec<&str>> =
        got.iter().map(|r| r.iter().map(|a| std::str::from_utf8(a).unwrap()).collect()).collect();
    assert_eq!(text, [vec!["SET", "a b", "c"], vec![], vec!["PING"]]);
}

#[test]
fn empty_counts_are_skipped() {
    assert_eq!(requests(b"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", 2).unwrap().len(), 3);
}

fn error(bytes: &[u8], limits: Limits) -> String {
    match Reader::default().receive(bytes, limits) {
        Ok(()) => "none".to_owned(),
        Err(error) => String::from_utf8(error.text()).unwrap(),
    }
}

#[test]
fn each_error_has_its_text() {
    let long = [b'1'; 70_000];
    let line = |start: &[u8]| [start, &long[..]].concat();
    for (bytes, text) in [
        (line(b""), "too big inline request"),
        (b"SET \"a\r\n".to_vec(), "unbalanced quotes in request"),
        (line(b"*"), "too big mbulk count string"),
        (b"*x\r\n".to_vec(), "invalid multibulk length"),
        (b"*2147483648\r\n".to_vec(), "invalid multibulk length"),
        (line(b"*1\r\n$"), "too big bulk count string"),
        (b"*1\r\nGET\r\n".to_vec(), "expected '$', got 'G'"),
        (b"*1\r\n$-1\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$x\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$536870913\r\n".to_vec(), "invalid bulk length"),
    ] {
        assert_eq!(error(&bytes, OPEN), format!("ERR Protocol error: {text}"));
    }
    let broken = Reader::default().receive(b"*1\r\n\xff\r\n", OPEN).unwrap_err();
    assert_eq!(broken.text(), b"ERR Protocol error: expected '$', got '\xff'");
    let unauthenticated = "ERR Protocol error: unauthenticated multibulk length";
    assert_eq!(error(b"*11\r\n", CLOSED), unauthenticated);
    let unauthenticated = "ERR Protocol error: unauthenticated bulk length";
    assert_eq!(error(b"*1\r\n$16385\r\n", CLOSED), unauthenticated);
    assert_eq!(error(b"*10\r\n$16384\r\n", CLOSED), "none");
}

/// The arguments of a request, and its own bytes if they are known.
type ParsedRequest = (Vec<Vec<u8>>, Option<Vec<u8>>);

/// Parses the request at the end of a buffer.
fn parse(buffer: &[u8], at: usize) -> Option<ParsedRequest> {
    let (mut spans, mut own) = (Vec::new(), Vec::new());
    let parsed = Parser::new(at).advance(buffer, OPEN, &mut spans, &mut own);
    matches!(parsed, Ok(Parsed::Request(_))).then(|| {
        let args = Args::new(buffer, &spans, &own);
        (args.iter().map(<[u8]>::to_vec).collect(), args.encoded().map(<[u8]>::to_vec))
    })
}

#[test]
fn the_own_bytes_of_a_request_are_known_if_they_are_as_encoded_here() {
    let value = vec![b'v'; 120];
    let requests: [&[&[u8]]; 6] = [
        &[b"SET", b"key", &value],
        &[b"INCR", b""],
        &[b"PEXPIREAT", b"k", b"1"],
        &[b"FLUSHALL"],
        &[b"RPUSH", b"k", b"\r\n", b"$3\r\n", b"*1\r\n", b"", b"7", b"8", b"9"],
        &[b"a", &[b'b'; 3000]],
    ];
    for request in requests {
        let request: Vec<Vec<u8>> = request.iter().map(|arg| arg.to_vec()).collect();
        for before in [&b""[..], b"*3\r\n$3\r\n"] {
            let mut bytes = [before, &encode(&request)].concat();
            let (args, own) = parse(&bytes, before.len()).unwrap();
            assert!(args == request && own == Some(encode(&request)));
            for at in before.len()..bytes.len() {
                for other in *b"\r\n0$*x" {
                    let byte = std::mem::replace(&mut bytes[at], other);
                    if let Some((args, Some(own))) = parse(&bytes, before.len()) {
                        assert_eq!(own, encode(&args), "byte {at} of {request:?}: {other}");
                    }
                    bytes[at] = byte;
                }
            }
        }
    }
    for unknown in [&[&b"0123456789"[..], b"a"][..], &[&b"a"[..]; 10]] {
        let request: Vec<Vec<u8>> = unknown.iter().map(|arg| arg.to_vec()).collect();
        assert_eq!(parse(&encode(&request), 0), Some((request, None)));
    }
    assert_eq!(parse(b"INCR k\r\n", 0).unwrap().1, None);
}
