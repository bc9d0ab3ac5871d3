//! Annotations: lines that begin with `#` between two commands, which other servers pass over.
//!
//! ```text
//! #TS:1700000000                            seconds since 1970; what follows was written from then
//! #WC:123:45:6789:01234567:0123456789abcdef head of a batch
//! #WE:100:0123456789abcdef                  early end of a batch whose rest was lost
//!
//! head        bytes : unsynced : end : check : CRC64
//! early end   bytes : CRC64
//!
//! check       the halves of the CRC64 of the three numbers, each with its colon, one XOR the
//!             other: whether they are right is known before the bytes are
//! CRC64       of the bytes, of where in the file this line begins, 8 bytes little-endian, and of
//!             this line up to here; that of an early end also of the head in front of the bytes
//! ```
//!
//! What is written at once is a batch, and its head is written with it. `bytes` is its length
//! behind the head, `end` the position in the log behind it, and `unsynced` how many bytes before
//! the head were not certain to be on the disk at that time. So a reader that finds damage tells
//! two cases apart: what a power loss has left of the last writes, where no later head says that it
//! was certain, and a damage of what was safe once.
//!
//! A reader that keeps commands of a batch whose rest is lost cuts the file behind them and writes
//! an early end there. As the checksum is also one of the place, a copy of a file within a value is
//! taken for what it is.

use base::number;

use crate::crc64::Crc64;

/// Bytes of a line with its end that other servers read at once; longer ones are taken for damage.
pub const LINE_BYTES_MAX: usize = 1023;

const TIMESTAMP: &[u8] = b"#TS:";
const HEAD: &[u8] = b"#WC:";
const EARLY_END: &[u8] = b"#WE:";
const DIGITS: usize = 16;
const CHECK_DIGITS: usize = 8;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// When what follows was written, in seconds since 1970.
    Timestamp(i64),
    /// The head of a batch.
    Head(Head),
    /// The early end of a batch.
    EarlyEnd(EarlyEnd),
    /// One that is not known here.
    Unknown,
}

/// The head of a batch; see the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Length of the batch.
    pub bytes: u64,
    /// Bytes before the head that were not certain to be on the disk.
    pub unsynced: u64,
    /// The position in the log behind the batch.
    pub end: u64,
    /// The checksum.
    pub checksum: u64,
}

/// The early end of a batch; see the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// How much of the batch there is.
    pub bytes: u64,
    /// The checksum.
    pub checksum: u64,
}

impl Head {
    /// Appends the line that begins at a place of a file, for a batch whose bytes have gone into
    /// `crc`. The checksum in `self` does not matter.
    pub fn push(&self, out: &mut Vec<u8>, at: u64, crc: Crc64) {
        let numbers = [self.bytes, self.unsynced, self.end];
        push_numbers(out, HEAD, &numbers);
        out.extend_from_slice(format!("{:08x}:", check(&numbers)).as_bytes());
        push_checksum(out, finish(crc, at, HEAD, &numbers));
    }

    /// Whether this is the head at a place, of the bytes that have gone into `crc`.
    pub fn matches(&self, at: u64, crc: Crc64) -> bool {
        finish(crc, at, HEAD, &[self.bytes, self.unsynced, self.end]) == self.checksum
    }
}

impl EarlyEnd {
    /// Appends the line that begins at a place of a file, for so many bytes, which have gone into
    /// `crc`.
    pub fn push(out: &mut Vec<u8>, at: u64, bytes: u64, crc: Crc64) {
        push_numbers(out, EARLY_END, &[bytes]);
        push_checksum(out, finish(crc, at, EARLY_END, &[bytes]));
    }

    /// Whether this is the end at a place, of the bytes that have gone into `crc`.
    pub fn matches(&self, at: u64, crc: Crc64) -> bool {
        finish(crc, at, EARLY_END, &[self.bytes]) == self.checksum
    }
}

/// Appends the line that says when what follows was written.
pub fn push_timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    out.extend_from_slice(TIMESTAMP);
    number::push_i64(out, unix_seconds);
    out.extend_from_slice(b"\r\n");
}

/// Reads a line with its end. `None` when it is damaged: no printable text, not what its first
/// letters announce, or with a checksum behind letters that announce none.
pub fn parse(line: &[u8]) -> Option<Annotation> {
    let line = line.strip_suffix(b"\n")?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.starts_with(b"#") || !line.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    if let Some(rest) = line.strip_prefix(TIMESTAMP) {
        return number::parse_i64(rest).map(Annotation::Timestamp);
    }
    if let Some(rest) = line.strip_prefix(HEAD) {
        let ([bytes, unsynced, end], rest) = numbers(rest)?;
        let (stored, checksum) = rest.split_at_checked(CHECK_DIGITS)?;
        let is_right = hex(stored, CHECK_DIGITS)? == u64::from(check(&[bytes, unsynced, end]));
        let checksum = hex(checksum.strip_prefix(b":")?, DIGITS).filter(|_| is_right)?;
        return Some(Annotation::Head(Head { bytes, unsynced, end, checksum }));
    }
    if let Some(rest) = line.strip_prefix(EARLY_END) {
        let ([bytes], checksum) = numbers(rest)?;
        let checksum = hex(checksum, DIGITS)?;
        return Some(Annotation::EarlyEnd(EarlyEnd { bytes, checksum }));
    }
    // Nobody else ends a line so.
    (!ends_with_checksum(line)).then_some(Annotation::Unknown)
}

/// Whether a line ends as those with a checksum do.
fn ends_with_checksum(line: &[u8]) -> bool {
    let (rest, end) = line.split_at(line.len().saturating_sub(DIGITS));
    rest.ends_with(b":") && end.len() == DIGITS && end.iter().all(is_digit)
}

fn is_digit(digit: &u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'a'..=b'f')
}

/// Where the head of a batch may be in some bytes.
pub fn find_head(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, HEAD)
}

/// Whether a line, or the beginning of one, is that of a head, or was it before its first letters
/// were damaged.
pub fn is_head(line: &[u8]) -> bool {
    line.starts_with(HEAD) || line.strip_suffix(b"\r\n").is_some_and(ends_with_checksum)
}

/// The check of the numbers of a head.
fn check(numbers: &[u64]) -> u32 {
    let (mut text, mut crc) = (Vec::with_capacity(80), Crc64::new());
    push_numbers(&mut text, &[], numbers);
    crc.update(&text);
    (crc.value() ^ crc.value() >> 32) as u32
}

fn push_checksum(out: &mut Vec<u8>, checksum: u64) {
    out.extend_from_slice(format!("{checksum:016x}\r\n").as_bytes());
}

fn push_numbers(out: &mut Vec<u8>, mark: &[u8], numbers: &[u64]) {
    out.extend_from_slice(mark);
    for value in numbers {
        number::push_u64(out, *value);
        out.push(b':');
    }
}

fn finish(mut crc: Crc64, at: u64, mark: &[u8], numbers: &[u64]) -> u64 {
    let mut text = Vec::with_capacity(100);
    text.extend_from_slice(&at.to_le_bytes());
    push_numbers(&mut text, mark, numbers);
    crc.update(&text);
    crc.value()
}

/// Numbers with a colon behind each, and what follows.
fn numbers<const N: usize>(mut rest: &[u8]) -> Option<([u64; N], &[u8])> {
    let mut values = [0; N];
    for value in &mut values {
        let colon = memchr::memchr(b':', rest)?;
        *value = number::parse_u64(&rest[..colon])?;
        rest = &rest[colon + 1..];
    }
    Some((values, rest))
}

/// A number in so many lower-case digits.
pub(super) fn hex(text: &[u8], digits: usize) -> Option<u64> {
    if text.len() != digits || !text.iter().all(is_digit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn crc(bytes: &[u8]) -> Crc64 {
        let mut crc = Crc64::new();
        crc.update(bytes);
        crc
    }

    #[test]
    fn a_head_belongs_to_its_bytes_alone() {
        let mut line = Vec::new();
        let head = Head { bytes: 5, unsynced: 70, end: 1 << 60, checksum: 0 };
        head.push(&mut line, 9, crc(b"batch"));
        assert!(line.starts_with(b"#WC:5:70:1152921504606846976:") && line.len() < LINE_BYTES_MAX);
        let Some(Annotation::Head(head)) = parse(&line) else { panic!() };
        assert_eq!((head.bytes, head.unsynced, head.end), (5, 70, 1 << 60));
        assert!(head.matches(9, crc(b"batch")) && !head.matches(9, crc(b"Batch")));
        assert!(!head.matches(8, crc(b"batch")));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.clone();
                changed[at] ^= 1 << bit;
                let same = match parse(&changed) {
                    Some(Annotation::Head(same)) => {
                        let numbers = [same.bytes, same.unsynced, same.end];
                        assert_eq!(numbers, [5, 70, 1 << 60], "byte {at}, bit {bit}");
                        same.matches(9, crc(b"batch"))
                    }
                    Some(Annotation::EarlyEnd(end)) => end.matches(9, crc(b"batch")),
                    _ => false,
                };
                assert!(!same, "byte {at}, bit {bit}");
            }
        }
        let mut line = Vec::new();
        EarlyEnd::push(&mut line, 70, 5, crc(b"batch"));
        let Some(Annotation::EarlyEnd(end)) = parse(&line) else { panic!() };
        assert!(end.matches(70, crc(b"batch")) && !end.matches(70, crc(b"")));
        assert!(!end.matches(0, crc(b"batch")));
    }

    #[test]
    fn lines_are_known_unknown_or_damaged() {
        let mut line = Vec::new();
        push_timestamp(&mut line, 1_700_000_000);
        assert_eq!(line, b"#TS:1700000000\r\n");
        assert_eq!(parse(&line), Some(Annotation::Timestamp(1_700_000_000)));
        for line in ["#\r\n", "#\n", "# hello world\r\n", "#WCX\r\n", "#ts:1\r\n"] {
            assert_eq!(parse(line.as_bytes()), Some(Annotation::Unknown), "{line:?}");
        }
        let damaged = [
            "",
            "\n",
            "#",
            "#TS:1",
            "#TS:\r\n",
            "#TS:1x\r\n",
            "#TS:99999999999999999999\r\n",
            "#a\0b\r\n",
            "#a\x7f\r\n",
            "#WC:\r\n",
            "#WC:1:2:3:CHECK:0123\r\n",
            "#WC:1:2:3:0123456789abcdef\r\n",
            "#WC:1:2:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:3:CHECK:0123456789ABCDEF\r\n",
            "#WC:01:2:3:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:3:CHECK:0123456789abcdef \r\n",
            "#WC:1:2:4:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:99999999999999999999:CHECK:0123456789abcdef\r\n",
            "#WE:0123456789abcdef\r\n",
            "#VC:1:2:3:0123456789abcdef\r\n",
            "#WC;1:2:3:0123456789abcdef\r\n",
            "#wE:1:0123456789abcdef\r\n",
        ];
        let with_check = |line: &str| line.replace("CHECK", &format!("{:08x}", check(&[1, 2, 3])));
        for line in damaged {
            assert_eq!(parse(with_check(line).as_bytes()), None, "{line:?}");
        }
        let line = with_check("#WC:1:2:3:CHECK:0123456789abcdef\r\n");
        assert!(matches!(parse(line.as_bytes()), Some(Annotation::Head(_))));
    }
}
