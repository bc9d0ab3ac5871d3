//! Where written bytes go.

use std::convert::Infallible;

/// Takes the bytes of a format in order.
///
/// Writers hand over pieces as small as one byte: a sink that passes them on collects them first.
pub trait Sink {
    /// Why a piece cannot be taken. Writing stops there.
    type Error;

    /// Takes the next piece.
    ///
    /// # Errors
    /// What the sink says.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl Sink for Vec<u8> {
    type Error = Infallible;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: Sink> Sink for &mut S {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        (**self).put(bytes)
    }
}

/// Counts bytes and keeps none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl Sink for ByteCount {
    type Error = Infallible;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0 += bytes.len() as u64;
        Ok(())
    }
}
