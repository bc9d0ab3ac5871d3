//! Annotations: lines that begin with `#` between two commands, which other servers skip.
//!
//! ```text
//! #TS:1700000000                               timestamp: later commands were written from then on
//! #WC:123:45:6789:45:01234567:0123456789abcdef head of a batch
//! #WE:100:0123456789abcdef                     early end of a batch whose rest was lost
//!
//! head        bytes : unsynced : end : selected : check : CRC64
//! early end   bytes : CRC64
//!
//! check       the two halves of the CRC64 of the four numbers, each with its colon, XORed: the
//!             numbers can be verified before the bytes are read
//! CRC64       of the bytes, of the position of this line in the file (8 bytes, little-endian), and
//!             of this line up to here; that of an early end also covers the head of the batch
//! ```
//!
//! A batch is what one write appends, and its head is written with it. `bytes` is its length after
//! the head, `end` the position in the log after it, and `unsynced` how many bytes before the head
//! were not yet durable. So a reader that finds a fault can distinguish the remains of the last
//! writes before a power loss, which no later head says were durable, from damage of safe bytes.
//!
//! `selected` is how many bytes before the head the last batch begins that may select a database,
//! or 0 if database 0 is selected since the file began. So a batch after lost ones is kept only if
//! it goes to the same database without them.
//!
//! A reader that keeps commands of a batch whose rest is lost cuts the file after them and writes
//! an early end there. As the checksum covers the position, a copy of a file within a value is not
//! mistaken for batches.

use base::number;

use crate::crc64::Crc64;

/// The longest line with its end that other servers read at once. They take longer ones for damage.
pub const LINE_BYTES_MAX: usize = 1023;

const TIMESTAMP: &[u8] = b"#TS:";
const HEAD: &[u8] = b"#WC:";
const EARLY_END: &[u8] = b"#WE:";
const DIGITS: usize = 16;
const CHECK_DIGITS: usize = 8;

/// A line that begins with `#`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// The time from which on later commands were written, in seconds since 1970.
    Timestamp(i64),
    /// The head of a batch.
    Head(BatchHead),
    /// The early end of a batch.
    EarlyEnd(EarlyEnd),
    /// Another annotation, without meaning here.
    Unknown,
}

/// The head of a batch; see the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHead {
    /// Length of the batch.
    pub bytes: u64,
    /// How many bytes before the head were not durable when it was written.
    pub unsynced: u64,
    /// The position in the log after the batch.
    pub end: u64,
    /// How many bytes before the head the last batch begins that may select a database; 0 if none
    /// does.
    pub selected: u64,
    /// The checksum.
    pub checksum: u64,
}

/// The early end of a batch; see the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyEnd {
    /// The length of the part of the batch before it.
    pub bytes: u64,
    /// The checksum.
    pub checksum: u64,
}

impl BatchHead {
    /// Appends the line that begins at a position of a file, for a batch with this CRC. The
    /// checksum in `self` is not used.
    pub fn push(&self, out: &mut Vec<u8>, at: u64, crc: Crc64) {
        let numbers = self.numbers();
        push_numbers(out, HEAD, &numbers);
        out.extend_from_slice(format!("{:08x}:", check(&numbers)).as_bytes());
        push_checksum(out, finish(crc, at, HEAD, &numbers));
    }

    /// Whether this is the head at a position, of a batch with this CRC.
    pub fn matches(&self, at: u64, crc: Crc64) -> bool {
        finish(crc, at, HEAD, &self.numbers()) == self.checksum
    }

    fn numbers(&self) -> [u64; 4] {
        [self.bytes, self.unsynced, self.end, self.selected]
    }
}

impl EarlyEnd {
    /// Appends the line that begins at a position of a file, after so many bytes of a batch. `crc`
    /// is that of the head and these bytes.
    pub fn push(out: &mut Vec<u8>, at: u64, bytes: u64, crc: Crc64) {
        push_numbers(out, EARLY_END, &[bytes]);
        push_checksum(out, finish(crc, at, EARLY_END, &[bytes]));
    }

    /// Whether this is the end at a position, of a head and bytes with this CRC.
    pub fn matches(&self, at: u64, crc: Crc64) -> bool {
        finish(crc, at, EARLY_END, &[self.bytes]) == self.checksum
    }
}

/// Appends a timestamp.
pub fn push_timestamp(out: &mut Vec<u8>, unix_seconds: i64) {
    out.extend_from_slice(TIMESTAMP);
    number::push_i64(out, unix_seconds);
    out.extend_from_slice(b"\r\n");
}

/// Parses a line with its end. `None` when it is damaged: it has bytes that are not printable, it
/// does not match its first letters, or it has a checksum after letters that announce none.
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
        let (fields, rest) = numbers(rest)?;
        let (stored, checksum) = rest.split_at_checked(CHECK_DIGITS)?;
        let is_right = hex(stored, CHECK_DIGITS)? == u64::from(check(&fields));
        let checksum = hex(checksum.strip_prefix(b":")?, DIGITS).filter(|_| is_right)?;
        let [bytes, unsynced, end, selected] = fields;
        return Some(Annotation::Head(BatchHead { bytes, unsynced, end, selected, checksum }));
    }
    if let Some(rest) = line.strip_prefix(EARLY_END) {
        let ([bytes], checksum) = numbers(rest)?;
        let checksum = hex(checksum, DIGITS)?;
        return Some(Annotation::EarlyEnd(EarlyEnd { bytes, checksum }));
    }
    // No other server writes lines that end like this.
    (!ends_with_checksum(line)).then_some(Annotation::Unknown)
}

/// Whether a line ends with a checksum.
fn ends_with_checksum(line: &[u8]) -> bool {
    let (rest, end) = line.split_at(line.len().saturating_sub(DIGITS));
    rest.ends_with(b":") && end.len() == DIGITS && end.iter().all(is_digit)
}

fn is_digit(digit: &u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'a'..=b'f')
}

/// Where the head of a batch may begin in some bytes.
pub fn find_head(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, HEAD)
}

/// Whether a line, or the beginning of one, is a head, or was one before its first letters were
/// damaged.
pub fn is_head(line: &[u8]) -> bool {
    line.starts_with(HEAD) || line.strip_suffix(b"\r\n").is_some_and(ends_with_checksum)
}

/// The `check` field of a head with these numbers.
fn check(numbers: &[u64]) -> u32 {
    let (mut text, mut crc) = (Vec::with_capacity(100), Crc64::new());
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

/// Parses numbers with a colon after each. Returns them and the rest.
fn numbers<const N: usize>(mut rest: &[u8]) -> Option<([u64; N], &[u8])> {
    let mut values = [0; N];
    for value in &mut values {
        let colon = memchr::memchr(b':', rest)?;
        *value = number::parse_u64(&rest[..colon])?;
        rest = &rest[colon + 1..];
    }
    Some((values, rest))
}

/// A number of so many lower-case hexadecimal digits.
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
    fn a_head_matches_only_its_own_bytes_and_position() {
        let mut line = Vec::new();
        let head = BatchHead { bytes: 5, unsynced: 70, end: 1 << 60, selected: 8, checksum: 0 };
        head.push(&mut line, 9, crc(b"batch"));
        assert!(
            line.starts_with(b"#WC:5:70:1152921504606846976:8:") && line.len() < LINE_BYTES_MAX
        );
        let Some(Annotation::Head(head)) = parse(&line) else { panic!() };
        assert_eq!(head.numbers(), [5, 70, 1 << 60, 8]);
        assert!(head.matches(9, crc(b"batch")) && !head.matches(9, crc(b"AofBatch")));
        assert!(!head.matches(8, crc(b"batch")));
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.clone();
                changed[at] ^= 1 << bit;
                let same = match parse(&changed) {
                    Some(Annotation::Head(same)) => {
                        let numbers = same.numbers();
                        assert_eq!(numbers, [5, 70, 1 << 60, 8], "byte {at}, bit {bit}");
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
            "#WC:1:2:3:4:CHECK:0123\r\n",
            "#WC:1:2:3:4:0123456789abcdef\r\n",
            "#WC:1:2:3:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:3:4:CHECK:0123456789ABCDEF\r\n",
            "#WC:01:2:3:4:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:3:4:CHECK:0123456789abcdef \r\n",
            "#WC:1:2:3:5:CHECK:0123456789abcdef\r\n",
            "#WC:1:2:3:99999999999999999999:CHECK:0123456789abcdef\r\n",
            "#WE:0123456789abcdef\r\n",
            "#VC:1:2:3:0123456789abcdef\r\n",
            "#WC;1:2:3:0123456789abcdef\r\n",
            "#wE:1:0123456789abcdef\r\n",
        ];
        let right = format!("{:08x}", check(&[1, 2, 3, 4]));
        let with_check = |line: &str| line.replace("CHECK", &right);
        for line in damaged {
            assert_eq!(parse(with_check(line).as_bytes()), None, "{line:?}");
        }
        let line = with_check("#WC:1:2:3:4:CHECK:0123456789abcdef\r\n");
        assert!(matches!(parse(line.as_bytes()), Some(Annotation::Head(_))));
    }
}
