//! Tests of transfers, cut and continued at every byte.

use proptest::prelude::*;

use super::*;

/// The file and the rest after it, when the bytes arrive in these parts.
fn receive(parts: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>, bool), TransferError> {
    let mut receiver = BulkReceiver::new(1000);
    let (mut file, mut rest, mut is_complete) = (Vec::new(), Vec::new(), false);
    for part in parts {
        let mut taken = 0;
        if !is_complete {
            let step = receiver.handle_bytes(part, &mut |bytes| file.extend_from_slice(bytes))?;
            (taken, is_complete) = (step.consumed, step.is_complete);
            assert!(is_complete || taken == part.len());
        }
        rest.extend_from_slice(&part[taken..]);
    }
    assert_eq!(receiver.received(), file.len() as u64);
    Ok((file, rest, is_complete))
}

fn mark() -> EofMark {
    EofMark::from_random(*b"0123456789\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff")
}

/// A transfer with a mark: newlines, header, file, mark, bytes of the stream.
fn marked(file: &[u8], stream: &[u8]) -> Vec<u8> {
    [b"\n\n\n", &mark().header()[..], file, mark().as_bytes(), stream].concat()
}

/// Checks a transfer in one part, in single bytes, and cut at every byte.
fn check(bytes: &[u8], file: &[u8], stream: &[u8]) {
    let wanted = Ok((file.to_vec(), stream.to_vec(), true));
    assert_eq!(receive(&[bytes]), wanted);
    assert_eq!(receive(&bytes.chunks(1).collect::<Vec<_>>()), wanted);
    for at in 0..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(receive(&[first, second]), wanted, "cut at {at}");
        // A connection that ends before the last byte of the transfer leaves it incomplete.
        let is_complete = receive(&[first]).map(|(.., is_complete)| is_complete);
        assert_eq!(is_complete, Ok(at >= bytes.len() - stream.len()), "ended at {at}");
    }
}

#[test]
fn a_file_of_known_length_ends_there() {
    for stream in [&b""[..], b"*1\r\n$4\r\nPING\r\n"] {
        check(&[b"\n$9\r\nREDIS0011", stream].concat(), b"REDIS0011", stream);
        check(&[b"$0\r\n", stream].concat(), b"", stream);
    }
    assert_eq!(length_header(9), b"$9\r\n");
}

#[test]
fn a_mark_ends_a_file_also_with_a_stream_behind_it() {
    let whole = mark();
    let begin = &whole.as_bytes()[..20];
    for file in [&b""[..], b"REDIS0011", begin, &[begin, begin].concat(), &[b'0'; 85]] {
        for stream in [&b""[..], b"x", b"*1\r\n$4\r\nPING\r\n", whole.as_bytes()] {
            check(&marked(file, stream), file, stream);
        }
    }
}

#[test]
fn other_first_lines_are_errors() {
    let refused = TransferError::Refused("ERR x".to_owned());
    assert_eq!(receive(&[b"\n-ERR x\r\n"]), Err(refused));
    for line in ["+OK", "REDIS0011", "$", "$-1", "$x", "$EOF:", "$EOF:abc", "$1 ", "*1"] {
        let error = TransferError::BadHeader(line.to_owned());
        assert_eq!(receive(&[line.as_bytes(), b"\r\n"]), Err(error), "{line}");
    }
    let long = vec![b'x'; HEADER_BYTES_MAX + 1];
    assert!(matches!(receive(&[&long]), Err(TransferError::BadHeader(_))));
}

#[test]
fn files_are_bounded() {
    let too_long = Err(TransferError::TooLong { bytes_max: 1000 });
    assert_eq!(receive(&[b"$1001\r\n"]), too_long);
    assert_eq!(receive(&[&marked(&[b'x'; 1001], b"")]), too_long);
    assert!(receive(&[&marked(&[b'x'; 1000], b"")]).is_ok());
}

#[test]
fn a_truncated_file_is_an_error_with_its_length() {
    let mut receiver = BulkReceiver::new(1000);
    receiver.handle_bytes(b"$10\r\nabc", &mut |_| ()).unwrap();
    let error = receiver.handle_end();
    assert_eq!(error, TransferError::Truncated { received: 3, announced: Some(10) });
    let text = "I/O error trying to sync with MASTER: connection lost after 3 bytes of 10";
    assert_eq!(error.to_string(), text);
}

proptest! {
    /// Files made of pieces of the mark, in parts of any length.
    #[test]
    fn marks_are_found_at_any_split(
        pieces in proptest::collection::vec((0usize..40, 0usize..41), 0..12),
        lengths in proptest::collection::vec(1usize..90, 1..30),
    ) {
        let whole = mark();
        let slice = |from: usize, to: usize| &whole.as_bytes()[from.min(to)..to];
        let pieces = pieces.iter().map(|(from, to)| slice(*from, *to));
        let file = pieces.collect::<Vec<_>>().concat();
        let end = memmem::find(&[&file, whole.as_bytes()].concat(), whole.as_bytes());
        prop_assume!(end == Some(file.len()));
        let bytes = marked(&file, b"stream");
        let (mut parts, mut rest) = (Vec::new(), &bytes[..]);
        for len in lengths {
            let (part, after) = rest.split_at(len.min(rest.len()));
            parts.push(part);
            rest = after;
        }
        parts.push(rest);
        prop_assert_eq!(receive(&parts), Ok((file, b"stream".to_vec(), true)));
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, at: usize) {
        let (first, second) = bytes.split_at(at % (bytes.len() + 1));
        let _ = receive(&[first, second]);
        let _ = receive(&[b"$EOF:", first, second]);
        let _ = receive(&[b"$", first, second]);
    }
}
