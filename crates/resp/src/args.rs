//! The arguments of one request: spans of a buffer, read by a cursor.
//!
//! Nothing is copied: an argument is a slice of the receive buffer. An argument of at least
//! [`BIG_BYTES_MIN`](crate::request::BIG_BYTES_MIN) bytes that arrived in parts, and each argument
//! of an inline request, has its own buffer, which a command may keep.

use std::sync::Arc;

/// The position of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: u32,
    len: u32,
}

/// An impossible start, which marks an argument with its own buffer.
const OWN: u32 = u32::MAX;
/// Bytes before the name of a request that [`Args::encoded`] recognises.
const HEAD_BYTES: usize = "*3\r\n$3\r\n".len();

impl Span {
    /// `len` bytes of the shared buffer from `start`.
    pub fn new(start: usize, len: usize) -> Self {
        debug_assert!(start < OWN as usize && len < OWN as usize, "a query buffer is below 4 GiB");
        Self { start: start as u32, len: len as u32 }
    }

    /// The same argument after removing `bytes` bytes and `owns` own buffers before it.
    pub fn moved(self, bytes: usize, owns: usize) -> Self {
        if self.start == OWN {
            Self { start: OWN, len: self.len - owns as u32 }
        } else {
            Self { start: self.start - bytes as u32, len: self.len }
        }
    }

    /// Whether the argument has its own buffer.
    pub fn is_own(self) -> bool {
        self.start == OWN
    }

    /// An argument in its own buffer, which has this index.
    pub fn own(index: usize) -> Self {
        Self { start: OWN, len: index as u32 }
    }
}

/// The arguments of a request that outlives its receive buffer, copied one after the other.
#[derive(Clone, Debug, Default)]
pub struct CopiedArgs {
    buffer: Vec<u8>,
    spans: Vec<Span>,
    own: Vec<Arc<Vec<u8>>>,
}

impl CopiedArgs {
    /// Copies arguments.
    pub fn of<'a>(args: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut copied = Self::default();
        copied.reserve(args.clone().count(), args.clone().map(<[u8]>::len).sum());
        args.for_each(|arg| copied.push(arg));
        copied
    }

    fn reserve(&mut self, args: usize, bytes: usize) {
        self.spans.reserve_exact(args);
        self.buffer.reserve_exact(bytes.min(OWN as usize));
    }

    fn push(&mut self, arg: &[u8]) {
        let start = self.buffer.len();
        if arg.len() < (OWN as usize).saturating_sub(start) {
            self.buffer.extend_from_slice(arg);
            self.spans.push(Span::new(start, arg.len()));
        } else {
            // No span can be that large.
            self.share(&Arc::new(arg.to_vec()));
        }
    }

    fn share(&mut self, own: &Arc<Vec<u8>>) {
        self.spans.push(Span::own(self.own.len()));
        self.own.push(Arc::clone(own));
    }

    /// The arguments.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.buffer, &self.spans, &self.own)
    }

    /// Their approximate memory in bytes, including shared buffers.
    pub fn memory_bytes(&self) -> usize {
        const OWN_BYTES: usize = 64;
        self.buffer.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.own.iter().map(|own| OWN_BYTES + own.len()).sum::<usize>()
    }
}

/// The part of a shared buffer that contains all arguments of a request.
#[derive(Clone, Copy, Debug)]
pub struct ArgsPiece<'a> {
    /// The arguments, with the protocol's bytes between them.
    pub bytes: &'a [u8],
    spans: &'a [Span],
    start: u32,
}

impl ArgsPiece<'_> {
    /// Appends a copy of the bytes to a buffer, which stays below 4 GiB, and the positions of the
    /// arguments in it to `spans`. Returns how many bytes are arguments. Returns `None` and appends
    /// nothing if an argument is elsewhere.
    #[inline]
    pub fn copy_to(self, spans: &mut Vec<Span>, buffer: &mut Vec<u8>) -> Option<usize> {
        let (at, first) = (buffer.len(), spans.len());
        debug_assert!(at + self.bytes.len() < OWN as usize, "a buffer is below 4 GiB");
        let Self { start, .. } = self;
        let end = u64::from(start) + self.bytes.len() as u64;
        let (mut is_inside, mut args_bytes) = (true, 0);
        spans.reserve(self.spans.len());
        for span in self.spans {
            is_inside &= span.start >= start && u64::from(span.start) + u64::from(span.len) <= end;
            args_bytes += span.len as usize;
            let moved = span.start.wrapping_sub(start).wrapping_add(at as u32);
            spans.push(Span { start: moved, ..*span });
        }
        if !is_inside {
            spans.truncate(first);
            return None;
        }
        buffer.extend_from_slice(self.bytes);
        Some(args_bytes)
    }
}

/// The arguments of one request, the command's name first.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    spans: &'a [Span],
    own: &'a [Arc<Vec<u8>>],
    at: usize,
}

impl<'a> Args<'a> {
    /// The arguments at `spans` in the shared buffer and in their `own` buffers. The cursor is at
    /// the first argument after the command's name.
    pub fn new(buffer: &'a [u8], spans: &'a [Span], own: &'a [Arc<Vec<u8>>]) -> Self {
        Self { buffer, spans, own, at: 1 }
    }

    /// The number of arguments, including the command's name.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`, or `None` past the end.
    #[inline]
    pub fn at(&self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        if span.start == OWN {
            return self.own.get(span.len as usize).map(|own| own.as_slice());
        }
        let start = span.start as usize;
        self.buffer.get(start..start + span.len as usize)
    }

    /// The argument at `index`, empty past the end: for positions that the arity guarantees.
    #[inline]
    pub fn text(&self, index: usize) -> &'a [u8] {
        self.at(index).unwrap_or_default()
    }

    /// The own buffer of the argument at `index`, if it has one.
    pub fn own(&self, index: usize) -> Option<&'a Arc<Vec<u8>>> {
        let span = self.spans.get(index)?;
        if span.start == OWN { self.own.get(span.len as usize) } else { None }
    }

    /// The shared buffer from the first to the last argument. `None` if an argument has its own
    /// buffer.
    #[inline]
    pub fn piece(&self) -> Option<ArgsPiece<'a>> {
        let (first, last) = (self.spans.first()?, self.spans.last()?);
        let (start, end) = (first.start, u64::from(last.start) + u64::from(last.len));
        let bytes = self.buffer.get(start as usize..usize::try_from(end).ok()?)?;
        Some(ArgsPiece { bytes, spans: self.spans, start })
    }

    /// The request's own bytes, if they are as this program would encode the request: in one piece,
    /// every line with its line feed. Requests of ten or more arguments, or with so long a name,
    /// are not recognised. The [parser](crate::request) has checked the lines' digits.
    #[inline]
    pub fn encoded(&self) -> Option<&'a [u8]> {
        let (first, rest) = self.spans.split_first()?;
        let (count, len) = (u8::try_from(self.spans.len()).ok()?, u8::try_from(first.len).ok()?);
        let start = (first.start as usize).checked_sub(HEAD_BYTES)?;
        if first.start == OWN || count > 9 || len > 9 {
            return None;
        }
        let head = [b'*', b'0' + count, b'\r', b'\n', b'$', b'0' + len, b'\r', b'\n'];
        if self.buffer.get(start..first.start as usize)? != head {
            return None;
        }
        let mut end = first.start as usize + usize::from(len);
        for span in rest {
            match self.buffer.get(end..span.start as usize)? {
                [b'\r', b'\n', b'$', .., b'\n'] => {}
                _ => return None,
            }
            end = span.start as usize + span.len as usize;
        }
        let encoded = self.buffer.get(start..end + 2)?;
        encoded.ends_with(b"\r\n").then_some(encoded)
    }

    /// The command's name.
    pub fn name(&self) -> &'a [u8] {
        self.text(0)
    }

    /// All arguments, including the command's name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + use<'a> {
        let args = *self;
        (0..args.len()).map(move |index| args.text(index))
    }

    /// Copies all arguments, for a request that outlives the buffer. Own buffers are shared.
    pub fn to_owned_args(&self) -> Vec<Arc<Vec<u8>>> {
        let copy = |at| self.own(at).map_or_else(|| Arc::new(self.text(at).to_vec()), Arc::clone);
        (0..self.len()).map(copy).collect()
    }

    /// The same in one buffer, for a request that waits long.
    pub fn copied(&self) -> CopiedArgs {
        let all = || (0..self.len()).map(|at| (self.text(at), self.own(at)));
        let bytes = all().filter(|(_, own)| own.is_none()).map(|(arg, _)| arg.len()).sum();
        let mut copied = CopiedArgs::default();
        copied.reserve(self.len(), bytes);
        all().for_each(|(arg, own)| match own {
            Some(own) => copied.share(own),
            None => copied.push(arg),
        });
        copied
    }

    /// The arguments from `index` on as a request; the first of them is its name.
    pub fn tail(&self, index: usize) -> Self {
        Self { spans: self.spans.get(index..).unwrap_or_default(), at: 1, ..*self }
    }

    /// The cursor: the index of the argument that `next` returns.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves the cursor.
    pub fn seek(&mut self, index: usize) {
        self.at = index;
    }

    /// The number of arguments from the cursor on.
    pub fn remaining(&self) -> usize {
        self.len().saturating_sub(self.at)
    }

    /// The argument at the cursor, without moving it.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.at(self.at)
    }

    /// Whether the argument at the cursor is `word`, ignoring case; the cursor then moves on.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(found);
        found
    }
}

impl<'a> Iterator for Args<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.at(self.at)?;
        self.at += 1;
        Some(arg)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn texts(args: &Args<'_>) -> Vec<Vec<u8>> {
        args.iter().map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn arguments_are_moved_in_one_piece() {
        let buffer = b"junk$3\r\nSET\r\n$0\r\n\r\n$2\r\nvv\r\njunk";
        let spans = [Span::new(8, 3), Span::new(17, 0), Span::new(23, 2)];
        let args = Args::new(buffer, &spans, &[]);
        assert_eq!(texts(&args), [&b"SET"[..], b"", b"vv"]);
        let (mut moved, mut copied) = (vec![Span::new(0, 6)], b"before".to_vec());
        let piece = args.piece().unwrap();
        assert_eq!(piece.copy_to(&mut moved, &mut copied), Some(5));
        assert_eq!((piece.bytes.len(), copied.len()), (17, 23));
        assert_eq!(texts(&Args::new(&copied, &moved[1..], &[])), texts(&args));
    }

    #[test]
    fn arguments_with_their_own_buffers_are_not_moved_in_one_piece() {
        let own = [Arc::new(b"long".to_vec()), Arc::new(b"long too".to_vec())];
        let (here, there) = (Span::new(0, 3), Span::own(1));
        for spans in [&[there][..], &[here, there], &[there, here], &[here, there, here], &[]] {
            let (mut moved, mut copied) = (vec![there], b"before".to_vec());
            let piece = Args::new(b"SET", spans, &own).piece();
            let bytes = piece.and_then(|piece| piece.copy_to(&mut moved, &mut copied));
            assert_eq!((bytes, &moved[..], &copied[..]), (None, &[there][..], &b"before"[..]));
        }
    }
}
