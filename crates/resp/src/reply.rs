//! Writes replies: one method for each type of reply, with its forms in RESP2 and RESP3.

use std::sync::Arc;

use base::number::{DoubleText, push_i64, push_u64};

use crate::out::{Mark, Out};

/// Integral doubles below this magnitude, 2^62, print as integers.
const INTEGRAL_END: f64 = (1u64 << 62) as f64;

/// Appends one reply to an [`Out`].
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Out,
    resp3: bool,
}

/// The position of a length that is written after the elements.
#[derive(Debug)]
#[must_use = "the length must be written by `finish`"]
pub struct DeferredLength {
    mark: Mark,
    kind: u8,
}

impl<'a> Reply<'a> {
    /// Replies in RESP3 or RESP2.
    #[inline]
    pub fn new(out: &'a mut Out, resp3: bool) -> Self {
        Self { out, resp3 }
    }

    /// Whether the output exceeds its client's limit. The client will be closed without receiving
    /// it, so the writer of a long reply may stop.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.out.is_over()
    }

    /// Whether the client speaks RESP3.
    pub fn resp3(&self) -> bool {
        self.resp3
    }

    /// Switches the protocol, as HELLO does before its own reply.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
    }

    /// A mark to `truncate` to.
    #[inline]
    pub fn mark(&self) -> Mark {
        self.out.mark()
    }

    /// Removes everything after the mark.
    pub fn truncate(&mut self, mark: Mark) {
        self.out.truncate(mark);
    }

    /// The output itself, to append to it as a whole.
    pub fn out(&mut self) -> &mut Out {
        self.out
    }

    /// Appends bytes that already are a reply.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.bytes.extend_from_slice(bytes);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// `+QUEUED`.
    #[inline]
    pub fn queued(&mut self) {
        self.raw(b"+QUEUED\r\n");
    }

    /// A simple string, which has no line ends.
    pub fn simple(&mut self, text: &str) {
        self.raw(b"+");
        self.raw(text.as_bytes());
        self.raw(b"\r\n");
    }

    /// An error: its code, a space and the text. Line ends become spaces.
    pub fn error(&mut self, text: &[u8]) {
        self.raw(b"-");
        let start = self.out.bytes.len();
        self.raw(text);
        for byte in &mut self.out.bytes[start..] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.raw(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        match value {
            0 => self.raw(b":0\r\n"),
            1 => self.raw(b":1\r\n"),
            _ => {
                self.raw(b":");
                push_i64(&mut self.out.bytes, value);
                self.raw(b"\r\n");
            }
        }
    }

    /// An integer; larger values become the largest one.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A count.
    #[inline]
    pub fn len(&mut self, value: usize) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    /// A bulk string that is not copied but shared until it is sent.
    pub fn bulk_shared(&mut self, value: &Arc<Vec<u8>>) {
        self.header(b'$', value.len());
        self.out.push_shared(Arc::clone(value));
        self.raw(b"\r\n");
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        let len = base::number::decimal_len_i64(value);
        self.header(b'$', len);
        push_i64(&mut self.out.bytes, value);
        self.raw(b"\r\n");
    }

    /// The null of a missing value.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// The null of a missing array.
    pub fn null_array(&mut self) {
        self.raw(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// A boolean in RESP3, 1 or 0 in RESP2.
    pub fn bool(&mut self, value: bool) {
        match (self.resp3, value) {
            (true, true) => self.raw(b"#t\r\n"),
            (true, false) => self.raw(b"#f\r\n"),
            (false, value) => self.int(i64::from(value)),
        }
    }

    /// A double: a bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        // Most are integers, which print faster.
        if value.abs() < INTEGRAL_END && value.trunc() == value && value != 0.0 {
            let value = value as i64;
            if self.resp3 {
                self.raw(b",");
                push_i64(&mut self.out.bytes, value);
                self.raw(b"\r\n");
            } else {
                self.bulk_int(value);
            }
            return;
        }
        let text = DoubleText::of(value);
        if self.resp3 {
            self.raw(b",");
            self.raw(text.as_bytes());
            self.raw(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// Text with a format of three bytes (`txt`, `mkd`): a bulk string in RESP2.
    pub fn verbatim(&mut self, format: impl AsRef<[u8]>, text: &[u8]) {
        let format = format.as_ref();
        debug_assert_eq!(format.len(), 3);
        if self.resp3 {
            self.header(b'=', text.len() + 4);
            self.raw(format);
            self.raw(b":");
            self.raw(text);
            self.raw(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// The header of an array of `len` elements, which must follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// The header of a map of `len` pairs: in RESP2 an array of twice as many elements.
    pub fn map(&mut self, len: usize) {
        if self.resp3 { self.header(b'%', len) } else { self.header(b'*', len * 2) }
    }

    /// The header of a set of `len` elements: an array in RESP2.
    pub fn set(&mut self, len: usize) {
        self.header(if self.resp3 { b'~' } else { b'*' }, len);
    }

    /// The header of a push message of `len` elements: an array in RESP2.
    pub fn push(&mut self, len: usize) {
        self.header(if self.resp3 { b'>' } else { b'*' }, len);
    }

    /// Begins an array whose length is not known yet.
    pub fn array_deferred(&mut self) -> DeferredLength {
        DeferredLength { mark: self.out.mark(), kind: b'*' }
    }

    /// Begins a set whose length is not known yet.
    pub fn set_deferred(&mut self) -> DeferredLength {
        DeferredLength { mark: self.out.mark(), kind: if self.resp3 { b'~' } else { b'*' } }
    }

    /// Begins a map whose length is not known yet.
    pub fn map_deferred(&mut self) -> DeferredLength {
        DeferredLength { mark: self.out.mark(), kind: if self.resp3 { b'%' } else { b'm' } }
    }

    /// Writes the length of the elements or pairs after `deferred`. It moves everything after it,
    /// so use it only if the length cannot be known before.
    pub fn finish(&mut self, deferred: DeferredLength, len: usize) {
        let (kind, len) =
            if deferred.kind == b'm' { (b'*', len * 2) } else { (deferred.kind, len) };
        let mut header = Vec::with_capacity(24);
        header.push(kind);
        push_u64(&mut header, len as u64);
        header.extend_from_slice(b"\r\n");
        self.out.insert(deferred.mark, &header);
    }

    /// Writes the start of a scan's reply before the elements after `deferred`: a pair of the next
    /// cursor, as a bulk string, and the array of `len` elements.
    pub fn finish_page(&mut self, deferred: DeferredLength, cursor: u64, len: usize) {
        let mut digits = Vec::with_capacity(20);
        push_u64(&mut digits, cursor);
        let mut header = Vec::with_capacity(64);
        header.extend_from_slice(b"*2\r\n$");
        push_u64(&mut header, digits.len() as u64);
        header.extend_from_slice(b"\r\n");
        header.extend_from_slice(&digits);
        header.extend_from_slice(b"\r\n*");
        push_u64(&mut header, len as u64);
        header.extend_from_slice(b"\r\n");
        self.out.insert(deferred.mark, &header);
    }

    /// A type byte, a length and a line end.
    #[inline]
    fn header(&mut self, kind: u8, len: usize) {
        let out = &mut self.out.bytes;
        if len < 10 {
            out.extend_from_slice(&[kind, b'0' + len as u8, b'\r', b'\n']);
        } else if len < 100 {
            let (tens, ones) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
            out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
        } else {
            out.push(kind);
            push_u64(out, len as u64);
            out.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Reply<'_>)) -> (String, String) {
        let text = |resp3| {
            let mut out = Out::default();
            write(&mut Reply::new(&mut out, resp3));
            let (from, to) = (Mark::default(), out.mark());
            let bytes: Vec<u8> = out.pieces(from, to).flat_map(|p| p.as_slice().to_vec()).collect();
            String::from_utf8_lossy(&bytes).replace("\r\n", "|")
        };
        (text(false), text(true))
    }

    fn check(write: impl Fn(&mut Reply<'_>), resp2: &str, resp3: &str) {
        assert_eq!(both(write), (resp2.to_owned(), resp3.to_owned()));
    }

    #[test]
    fn each_type_in_both_protocols() {
        check(|r| r.ok(), "+OK|", "+OK|");
        check(|r| r.error(b"ERR a\r\nb"), "-ERR a  b|", "-ERR a  b|");
        check(|r| r.int(-12), ":-12|", ":-12|");
        check(|r| r.bulk(b"0123456789"), "$10|0123456789|", "$10|0123456789|");
        check(|r| r.bulk_int(-7), "$2|-7|", "$2|-7|");
        check(|r| r.bulk_shared(&Arc::new(b"ab".to_vec())), "$2|ab|", "$2|ab|");
        check(|r| r.null(), "$-1|", "_|");
        check(|r| r.null_array(), "*-1|", "_|");
        check(|r| r.bool(true), ":1|", "#t|");
        check(|r| r.double(1.5), "$3|1.5|", ",1.5|");
        check(|r| r.verbatim("txt", b"hi"), "$2|hi|", "=6|txt:hi|");
        check(|r| r.map(2), "*4|", "%2|");
        check(|r| r.set(12), "*12|", "~12|");
        check(|r| r.push(1), "*1|", ">1|");
    }

    #[test]
    fn deferred_lengths_nest_and_move_shared_values() {
        let write = |r: &mut Reply<'_>| {
            let outer = r.array_deferred();
            r.bulk_shared(&Arc::new(b"x".to_vec()));
            let inner = r.map_deferred();
            r.int(1);
            r.int(2);
            r.finish(inner, 1);
            r.finish(outer, 2);
        };
        check(write, "*2|$1|x|*2|:1|:2|", "*2|$1|x|%1|:1|:2|");
        let write = |r: &mut Reply<'_>| {
            let (page, set) = (r.array_deferred(), r.set_deferred());
            r.finish(set, 0);
            r.finish_page(page, 17, 1);
        };
        check(write, "*2|$2|17|*1|*0|", "*2|$2|17|*1|~0|");
    }
}
