//! Requests, whole and cut at every byte.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use resp::{Args, Limits, Parsed, Parser, ProtocolError, Span};

const OPEN: Limits = Limits { bulk_bytes_max: 512 << 20, authenticated: true };
const CLOSED: Limits = Limits { bulk_bytes_max: 512 << 20, authenticated: false };

/// A reader as the server has one: bytes come in pieces, requests go out.
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

#[test]
fn big_arguments_have_buffers_of_their_own() {
    let request = vec![b"SET".to_vec(), vec![b'k'; 40_000], vec![b'v'; 100_000]];
    let mut bytes = encode(&request);
    bytes.extend_from_slice(b"PING\r\n");
    for piece in [1, 1000, 65_536, bytes.len()] {
        assert_eq!(requests(&bytes, piece).unwrap(), [request.clone(), vec![b"PING".to_vec()]]);
    }
}

#[test]
fn inline_requests_are_split_like_a_shell_does() {
    let got = requests(b"SET \"a b\" 'c'\r\n\r\nPING\n", 3).unwrap();
    let text: Vec<Vec<&str>> =
        got.iter().map(|r| r.iter().map(|a| std::str::from_utf8(a).unwrap()).collect()).collect();
    assert_eq!(text, [vec!["SET", "a b", "c"], vec![], vec!["PING"]]);
}

#[test]
fn empty_counts_are_passed_over() {
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
