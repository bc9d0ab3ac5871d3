//! The commands that replicas and primaries send each other, as RESP bytes.

use base::number::{push_i64, push_u64};

/// How much of a peer's line the log shows.
const SHOWN_BYTES_MAX: usize = 256;

/// `PING` of a primary in its stream.
pub const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
/// `REPLCONF GETACK *`, which a primary puts into its stream for WAIT and WAITAOF.
pub const GETACK: &[u8] = b"*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";
/// The byte that keeps a link alive before the stream begins. It has no offset. Never send it
/// behind a byte of the stream: Redis 8 counts it there, and later resumes at a wrong byte.
pub const KEEP_ALIVE: u8 = b'\n';

/// Appends a command.
pub fn push_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    out.push(b'*');
    push_i64(out, args.len() as i64);
    out.extend_from_slice(b"\r\n");
    for arg in args {
        out.push(b'$');
        push_i64(out, arg.len() as i64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends `REPLCONF ACK applied [FACK durable]`. `durable` is the offset up to which a replica
/// with an append-only file has synced it.
///
/// An ACK that answers GETACK states the offset before the bytes of GETACK itself.
pub fn push_ack(out: &mut Vec<u8>, applied: u64, durable: Option<u64>) {
    let decimal = |offset| {
        let mut text = Vec::new();
        push_u64(&mut text, offset);
        text
    };
    let (applied, durable) = (decimal(applied), durable.map(decimal));
    let mut args: Vec<&[u8]> = vec![b"REPLCONF", b"ACK", &applied];
    if let Some(durable) = &durable {
        args.extend([&b"FACK"[..], durable]);
    }
    push_command(out, &args);
}

/// A line of a peer as text for the log: bounded, without control characters.
pub(crate) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES_MAX)]);
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_without_control_characters() {
        assert_eq!(shown(b"-ERR 'a' \x1b[31m\r\xff"), "-ERR 'a' ?[31m?\u{fffd}");
        assert_eq!(shown(&[b'x'; 5_000]).len(), SHOWN_BYTES_MAX);
    }

    #[test]
    fn commands_have_the_bytes_of_the_peers() {
        let mut out = Vec::new();
        push_command(&mut out, &[b"PING"]);
        assert_eq!(out, PING);
        out.clear();
        push_command(&mut out, &[b"REPLCONF", b"GETACK", b"*"]);
        assert_eq!((&out[..], out.len()), (GETACK, 37));
        out.clear();
        push_ack(&mut out, 1050, None);
        assert_eq!(out, b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$4\r\n1050\r\n");
        out.clear();
        push_ack(&mut out, 1050, Some(0));
        assert!(out.ends_with(b"$4\r\n1050\r\n$4\r\nFACK\r\n$1\r\n0\r\n"), "{out:?}");
    }
}
