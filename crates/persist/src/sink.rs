//! The destination of written bytes.

use std::convert::Infallible;

/// Takes the bytes of a format in order.
///
/// Pieces may be as small as one byte: a sink that makes a system call for each must collect them.
pub trait ByteSink {
    /// The reason why a piece is refused, which ends writing.
    type Error;

    /// Takes the next piece.
    ///
    /// # Errors
    /// Those of the sink.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl ByteSink for Vec<u8> {
    type Error = Infallible;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: ByteSink> ByteSink for &mut S {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        (**self).put(bytes)
    }
}

/// Counts bytes and drops them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl ByteSink for ByteCount {
    type Error = Infallible;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}
