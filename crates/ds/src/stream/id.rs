//! The identifier of an entry: milliseconds since 1970 and a number within them.

/// An entry's identifier. Those of a stream ascend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds since 1970, from the server's clock or from the client.
    pub ms: u64,
    /// Distinguishes entries of the same millisecond.
    pub seq: u64,
}

impl Id {
    /// The lowest identifier, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The highest identifier.
    pub const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// An identifier with both parts.
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// The next higher identifier, unless this is the highest.
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The next lower identifier, unless this is the lowest.
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => Some(Self { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cross_milliseconds_and_stop_at_the_ends() {
        assert_eq!(Id::new(5, 1).next(), Some(Id::new(5, 2)));
        assert_eq!(Id::new(5, u64::MAX).next(), Some(Id::new(6, 0)));
        assert_eq!(Id::new(6, 0).previous(), Some(Id::new(5, u64::MAX)));
        assert_eq!((Id::MAX.next(), Id::MIN.previous()), (None, None));
        assert!(Id::new(5, 9) < Id::new(6, 0));
    }
}
