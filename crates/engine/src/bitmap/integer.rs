//! Integers of any width at any bit of a string, and the behavior of sums that overflow.
//!
//! The highest bit of an integer comes first, like the bits of a string.

/// The type of an integer: `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerKind {
    pub(super) signed: bool,
    /// Width in bits.
    pub(super) bits: u32,
}

/// The behavior of a sum that exceeds the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Keep its lowest bits.
    Wrap,
    /// Use the nearest integer that fits.
    Saturate,
    /// Write nothing.
    Fail,
}

impl IntegerKind {
    /// A type by its name.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        let (sign, bits) = name.split_first()?;
        let signed = match sign {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let bits = u32::try_from(base::number::parse_i64(bits)?).ok()?;
        let bits_max = if signed { 64 } else { 63 };
        (1..=bits_max).contains(&bits).then_some(Self { signed, bits })
    }

    /// The smallest and the largest integer.
    fn bounds(self) -> (i128, i128) {
        if self.signed {
            let half = 1i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        }
    }

    /// The integer with these lowest bits.
    fn of_bits(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        let top = (raw << unused) as i64;
        if self.signed { top >> unused } else { (top as u64 >> unused) as i64 }
    }

    /// The sum of an integer of this type and an increment.
    pub(super) fn add(self, value: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(value) + i128::from(increment), overflow)
    }

    /// A given value as an integer of this type. An unsigned type treats a negative value as its 64
    /// bits, which exceed its range.
    pub(super) fn set(self, value: i64, overflow: Overflow) -> Option<i64> {
        let value = if self.signed { i128::from(value) } else { i128::from(value as u64) };
        let (_, max) = self.bounds();
        // Far below the range of a narrow type, Redis's own arithmetic wraps and saturates at the
        // other end; clients see that, and so does a replica on another machine.
        let wraps = self.bits < 64 && value < 0 && max - value > i128::from(i64::MAX);
        let value = if wraps && overflow == Overflow::Saturate { max } else { value };
        self.fit(value, overflow)
    }

    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        if (min..=max).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.of_bits(value as u64)),
            Overflow::Saturate => Some(value.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }

    /// The integer at a bit of a string, which continues with zeros.
    pub(super) fn read(self, bytes: &[u8], offset: usize) -> i64 {
        let mut window = [0; WINDOW_BYTES];
        let rest = bytes.get(offset / 8..).unwrap_or_default();
        let len = rest.len().min(WINDOW_BYTES);
        window[..len].copy_from_slice(&rest[..len]);
        self.of_bits((u128::from_be_bytes(window) >> self.shift(offset)) as u64)
    }

    /// Writes an integer at a bit of a string that is long enough.
    pub(super) fn write(self, bytes: &mut [u8], offset: usize, value: i64) {
        let rest = bytes.get_mut(offset / 8..).unwrap_or_default();
        let len = rest.len().min(WINDOW_BYTES);
        let mut window = [0; WINDOW_BYTES];
        window[..len].copy_from_slice(&rest[..len]);
        let mask = u128::from(u64::MAX >> (64 - self.bits)) << self.shift(offset);
        let value = u128::from(value as u64) << self.shift(offset) & mask;
        let window = u128::from_be_bytes(window) & !mask | value;
        rest[..len].copy_from_slice(&window.to_be_bytes()[..len]);
    }

    /// The distance of the integer from the end of a window that begins with its first byte.
    fn shift(self, offset: usize) -> u32 {
        WINDOW_BYTES as u32 * 8 - (offset % 8) as u32 - self.bits
    }
}

/// The bytes of a window that holds 64 bits from any bit of its first byte on; a power of two,
/// since it is one integer.
const WINDOW_BYTES: usize = 16;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn types_by_name() {
        assert_eq!(IntegerKind::parse(b"i64"), Some(IntegerKind { signed: true, bits: 64 }));
        assert_eq!(IntegerKind::parse(b"u63"), Some(IntegerKind { signed: false, bits: 63 }));
        for wrong in ["", "i", "u", "u64", "i65", "i0", "u0", "I8", "x8", "u-1", "u8 ", "u08"] {
            assert_eq!(IntegerKind::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_written_integer_is_read_back_and_nothing_else_changes() {
        let mut random = base::random::Random::new(11);
        for _ in 0..5000 {
            let signed = random.below(2) == 0;
            let bits = 1 + random.below(if signed { 64 } else { 63 }) as u32;
            let kind = IntegerKind { signed, bits };
            let mut bytes: Vec<u8> = (0..20).map(|_| random.below(256) as u8).collect();
            let before = bytes.clone();
            let offset = random.below(160 - u64::from(bits) + 1) as usize;
            let value = kind.of_bits(random.next_u64());
            kind.write(&mut bytes, offset, value);
            assert_eq!(kind.read(&bytes, offset), value);
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            for at in (0..160).filter(|at| !(offset..offset + bits as usize).contains(at)) {
                assert_eq!(bit(&bytes, at), bit(&before, at));
            }
            // Bit by bit, highest first.
            let raw = (offset..offset + bits as usize)
                .fold(0u64, |raw, at| raw << 1 | u64::from(bit(&bytes, at)));
            assert_eq!(kind.of_bits(raw), value);
        }
    }

    #[test]
    fn sums_at_the_edges() {
        let (i8, u8, i64) = (kind("i8"), kind("u8"), kind("i64"));
        let all = |kind: IntegerKind, value, increment| {
            [Overflow::Wrap, Overflow::Saturate, Overflow::Fail]
                .map(|overflow| kind.add(value, increment, overflow))
        };
        assert_eq!(all(i8, 127, 1), [Some(-128), Some(127), None]);
        assert_eq!(all(i8, -128, -1), [Some(127), Some(-128), None]);
        assert_eq!(all(u8, 255, 1), [Some(0), Some(255), None]);
        assert_eq!(all(u8, 0, -1), [Some(255), Some(0), None]);
        assert_eq!(all(i64, i64::MAX, 1), [Some(i64::MIN), Some(i64::MAX), None]);
        assert_eq!(all(i64, i64::MIN, -1), [Some(i64::MAX), Some(i64::MIN), None]);
        assert_eq!(all(i8, 100, 27), [Some(127); 3]);
        assert_eq!(u8.set(-1, Overflow::Saturate), Some(255));
        assert_eq!(u8.set(-1, Overflow::Wrap), Some(255));
        assert_eq!(i8.set(-129, Overflow::Saturate), Some(-128));
        assert_eq!(i8.set(i64::MIN, Overflow::Saturate), Some(127));
        assert_eq!(i64.set(i64::MIN, Overflow::Saturate), Some(i64::MIN));
    }

    fn kind(name: &str) -> IntegerKind {
        IntegerKind::parse(name.as_bytes()).unwrap()
    }
}
