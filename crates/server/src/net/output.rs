//! Pending output of a client's socket.
//!
//! ```text
//!   out --keep--> [ 64 KB ][ 64 KB ][ a shared value ][ 12 KB ] --send--> socket
//!                   |sent|                              ^ grows
//! ```
//!
//! Each chunk knows how many of its own bytes are messages about keys: their memory does not count
//! against `maxmemory` until the chunk is sent and freed, or the client is closed. A value that a
//! chunk shares with other clients is counted once for all of them; counted here is its entry in
//! the queue, which many subscribers have.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use base::uncounted::{Uncounted, block_bytes};
use resp::out::{Piece, SharedBytes};

/// Pieces of one vectored write.
const PIECES_MAX: usize = 64;

/// A queue with no more places than these is not made smaller.
const PLACES_KEPT: usize = 256;

/// Bytes gathered in one chunk before another is begun.
pub const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// Replies waiting for the socket.
#[derive(Debug, Default)]
pub struct PendingOutput {
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are sent.
    sent: usize,
    /// Bytes in all chunks that are not.
    bytes: usize,
    /// Chunks with messages about keys, and their memory, without shared values.
    notification_chunks: usize,
    notification_memory: usize,
    /// The same memory with that of their places.
    uncounted: Uncounted,
}

#[derive(Debug)]
struct Chunk {
    data: Data,
    /// Bytes of messages about keys; 0 for a shared value.
    notification_bytes: usize,
}

#[derive(Debug)]
enum Data {
    Bytes(Vec<u8>),
    Shared(SharedBytes),
}

impl Chunk {
    fn as_slice(&self) -> &[u8] {
        match &self.data {
            Data::Bytes(bytes) => bytes,
            Data::Shared(value) => value,
        }
    }

    /// Whether it contains messages about keys.
    fn has_notifications(&self) -> bool {
        self.notification_bytes != 0
            || match &self.data {
                Data::Shared(SharedBytes::Message(message)) => message.is_about_keys(),
                _ => false,
            }
    }

    /// Its memory for messages about keys, without shared values.
    fn notification_memory(&self) -> usize {
        match &self.data {
            Data::Bytes(bytes) if self.notification_bytes != 0 => {
                let memory =
                    self.notification_bytes as u128 * block_bytes(bytes.capacity()) as u128;
                (memory / bytes.len().max(1) as u128) as usize
            }
            _ => 0,
        }
    }
}

impl PendingOutput {
    /// Bytes not sent.
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds pieces of output. The first `notification_bytes` of their bytes, not counting shared
    /// values, are messages about keys.
    pub fn keep<'a>(
        &mut self,
        pieces: impl Iterator<Item = Piece<'a>>,
        mut notification_bytes: usize,
    ) {
        pieces.for_each(|piece| self.push(piece, &mut notification_bytes));
    }

    fn push(&mut self, piece: Piece<'_>, notification_bytes: &mut usize) {
        let slice = piece.as_slice();
        self.bytes += slice.len();
        match piece {
            Piece::Shared(value) => {
                self.add(Chunk { data: Data::Shared(value.clone()), notification_bytes: 0 });
            }
            Piece::Bytes(bytes) => {
                let own = bytes.len().min(*notification_bytes);
                *notification_bytes -= own;
                let has_room = |chunk: &Chunk| match &chunk.data {
                    Data::Bytes(last) => last.len() + bytes.len() <= CHUNK_BYTES_MAX,
                    Data::Shared(_) => false,
                };
                if self.chunks.back().is_some_and(has_room) {
                    return self.change_last(|chunk| {
                        if let Data::Bytes(last) = &mut chunk.data {
                            last.extend_from_slice(bytes);
                        }
                        chunk.notification_bytes += own;
                    });
                }
                self.add(Chunk { data: Data::Bytes(bytes.to_vec()), notification_bytes: own });
            }
        }
    }

    /// Makes the rest of `bytes`, after the first `sent`, all of the pending output. The first
    /// `notification_bytes` of the rest are messages about keys.
    pub fn take_over(&mut self, bytes: Vec<u8>, sent: usize, notification_bytes: usize) {
        debug_assert!(self.is_empty());
        self.bytes = bytes.len() - sent;
        self.sent = sent;
        let notification_bytes = notification_bytes.min(self.bytes);
        self.add(Chunk { data: Data::Bytes(bytes), notification_bytes });
    }

    fn add(&mut self, chunk: Chunk) {
        self.note(&chunk, true);
        self.chunks.push_back(chunk);
        self.count();
    }

    fn change_last(&mut self, change: impl FnOnce(&mut Chunk)) {
        let Some(mut last) = self.chunks.pop_back() else { return };
        self.note(&last, false);
        change(&mut last);
        self.add(last);
    }

    fn consume(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.chunks.front() {
            let left = first.as_slice().len() - self.sent;
            if count < left {
                self.sent += count;
                break;
            }
            count -= left;
            self.sent = 0;
            if let Some(first) = self.chunks.pop_front() {
                self.note(&first, false);
            }
        }
        // A short rest must not keep the room of many times as many entries.
        if self.chunks.capacity() > PLACES_KEPT.max(4 * self.chunks.len()) {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
        self.count();
    }

    /// A chunk comes, or goes.
    fn note(&mut self, chunk: &Chunk, comes: bool) {
        if !chunk.has_notifications() {
            return;
        }
        let bytes = chunk.notification_memory();
        if comes {
            self.notification_chunks += 1;
            self.notification_memory += bytes;
        } else {
            self.notification_chunks -= 1;
            self.notification_memory -= bytes;
        }
    }

    /// Updates the memory that is not counted.
    fn count(&mut self) {
        let mut bytes = self.notification_memory;
        if self.notification_chunks != 0 {
            let places = block_bytes(self.chunks.capacity() * size_of::<Chunk>()) as u128;
            bytes +=
                (places * self.notification_chunks as u128 / self.chunks.len() as u128) as usize;
        }
        if bytes != self.uncounted.bytes() {
            self.uncounted.set(bytes);
        }
    }

    /// Writes until all is sent, the socket takes no more or `bytes_max` bytes are written. Returns
    /// the bytes written.
    pub fn send(&mut self, transport: &mut impl Write, bytes_max: usize) -> io::Result<usize> {
        let mut total = 0;
        while !self.is_empty() && total < bytes_max {
            let mut pieces = [IoSlice::new(b""); PIECES_MAX];
            let mut count = 0;
            let mut left = bytes_max - total;
            for (piece, chunk) in pieces.iter_mut().zip(&self.chunks) {
                if left == 0 {
                    break;
                }
                let skip = if count == 0 { self.sent } else { 0 };
                let bytes = &chunk.as_slice()[skip..];
                let bytes = &bytes[..bytes.len().min(left)];
                left -= bytes.len();
                *piece = IoSlice::new(bytes);
                count += 1;
            }
            match transport.write_vectored(&pieces[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.consume(written);
                    total += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::uncounted::thread_bytes;
    use resp::out::SharedMessage;

    use super::*;

    /// Pending bytes after these pieces, some of which are messages about keys.
    fn pending(pieces: &[(Piece<'_>, usize)]) -> PendingOutput {
        let mut pending = PendingOutput::default();
        pieces.iter().for_each(|(piece, notification_bytes)| {
            pending.keep([*piece].into_iter(), *notification_bytes)
        });
        pending
    }

    #[test]
    fn what_tells_of_keys_is_left_out_until_it_is_sent() {
        let long = vec![0; 60_000];
        let value = SharedBytes::Value(Arc::new(vec![0; 100_000]));
        let event = SharedBytes::Message(Arc::new(SharedMessage::about_keys(vec![0; 98_304])));
        let mut pending = pending(&[
            (Piece::Bytes(b"reply"), 0),
            (Piece::Bytes(&long), 60_000),
            (Piece::Shared(&value), 9),
            (Piece::Shared(&event), 0),
            (Piece::Bytes(&long), 0),
            (Piece::Bytes(b"push"), 4),
        ]);
        // Another client has it, too, and is done.
        drop(event);
        let sum = |pending: &PendingOutput| {
            pending.chunks.iter().map(Chunk::notification_memory).sum::<usize>()
        };
        let has_event = |pending: &PendingOutput| {
            let is_event =
                |chunk: &Chunk| matches!(chunk.data, Data::Shared(SharedBytes::Message(_)));
            pending.chunks.iter().any(is_event)
        };
        let first = thread_bytes();
        assert!((60_004 + 98_304..150_000 + 98_304).contains(&first), "{first}");
        while !pending.is_empty() {
            pending.consume(pending.len().min(9999));
            let now = thread_bytes();
            let event = if has_event(&pending) { 98_304 } else { 0 };
            let places = pending.uncounted.bytes() - sum(&pending);
            assert!(places <= block_bytes(pending.chunks.capacity() * size_of::<Chunk>()));
            assert_eq!(now, event + pending.uncounted.bytes() as i64);
        }
        assert_eq!(thread_bytes(), 0);
    }

    /// Each of many subscribers has entries for the values it shares with the others.
    #[test]
    fn places_of_what_tells_of_keys_are_left_out() {
        let event = SharedBytes::Message(Arc::new(SharedMessage::about_keys(vec![0; 98_304])));
        let mut waiting = PendingOutput::default();
        for _ in 0..1000 {
            waiting.keep([Piece::Bytes(b"message"), Piece::Shared(&event)].into_iter(), 7);
        }
        let places = waiting.chunks.capacity() * size_of::<Chunk>();
        assert!(waiting.uncounted.bytes() >= places + 7000 && places >= 2000 * size_of::<Chunk>());
        // Half of the entries are those of replies.
        let value = SharedBytes::Value(Arc::new(vec![0; 100]));
        let mut both = PendingOutput::default();
        for _ in 0..1000 {
            both.keep([Piece::Shared(&value), Piece::Shared(&event)].into_iter(), 0);
        }
        let places = block_bytes(both.chunks.capacity() * size_of::<Chunk>());
        assert_eq!(both.uncounted.bytes(), places / 2);
        drop(both);
        // Entries go with their contents.
        waiting.consume(waiting.len() - 98_304);
        let places = waiting.chunks.capacity() * size_of::<Chunk>();
        assert!(waiting.chunks.len() == 1 && places <= PLACES_KEPT * size_of::<Chunk>());
        drop(waiting);
        assert_eq!(thread_bytes(), 98_304);
    }

    #[test]
    fn no_more_is_left_out_than_waits() {
        let value = SharedBytes::Value(Arc::new(vec![0; 100]));
        let bytes = |pieces: &[(Piece<'_>, usize)]| pending(pieces).notification_memory;
        assert_eq!(bytes(&[]), 0);
        assert_eq!(bytes(&[(Piece::Shared(&value), 1000), (Piece::Bytes(&[0; 50]), 0)]), 0);
        assert_eq!(bytes(&[(Piece::Shared(&value), 0), (Piece::Bytes(&[0; 8]), 1000)]), 8);
        let mut taken = PendingOutput::default();
        taken.take_over(vec![0; 128], 118, 1000);
        assert_eq!(taken.notification_memory, 10);
        drop(taken);
        assert_eq!(thread_bytes(), 0, "what is dropped is left out no more");
    }
}
