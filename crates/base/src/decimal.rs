//! Sums of decimals with the precision of Redis: what INCRBYFLOAT and HINCRBYFLOAT compute.
//!
//! Redis adds in C's `long double`, which on x86-64 is the 80-bit extended format of the x87:
//! a 64-bit significand, so that `0.1 + 0.2` prints as `0.3`. It prints with 17 digits after
//! the point and drops the zeros at the end. Clients and the stored values depend on these
//! digits, so this module computes the format in integers, with the same result on every platform:
//! each step rounds to nearest with ties to even, and subnormals and overflow are as in hardware.
//!
//! Ordinary numbers (19 digits, exponents up to 26) need a few 128-bit operations. Other numbers
//! need exact big integers, whose size is bounded by the limit on the input's length.
//!
//! There is no NaN (reading refuses it, and a sum that would be NaN is `None`), and no other
//! arithmetic.

use crate::binary::{Binary, Format, Rounded, parse_exponent, parse_hex, round_shift};
use crate::number::push_u64;
use num_bigint::BigUint;

/// Longest text of a number: one byte less than the buffer that Redis reserves.
pub const DECIMAL_BYTES_MAX: usize = 5 * 1024 - 1;

/// Digits after the point, before trailing zeros are removed.
const FRACTION_DIGITS: u32 = 17;
const FRACTION_SCALE: u128 = 10u128.pow(FRACTION_DIGITS);

/// The x87 extended format: 64 significand bits, smallest subnormal 2^-16445.
const EXTENDED: Format =
    Format { precision_bits: 64, exponent_min: -16_445, exponent_max: 16_383 - 63 };

/// Values of ten to this power and more are out of range: the largest one is 1.19e4932.
const DECIMAL_EXPONENT_MAX: i64 = 4933;
/// Values below ten to this power less one round to zero: half the smallest one is 1.8e-4951.
const DECIMAL_EXPONENT_MIN: i64 = -4951;

/// An extended-precision number, never NaN.
///
/// Equality compares representations: plus and minus zero differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Magnitude {
    /// `significand * 2^exponent`. The leading bit is set unless the exponent is the smallest one.
    Finite {
        significand: u64,
        exponent: i64,
    },
    Infinite,
}

impl LongDouble {
    /// Reads a number as Redis reads both operands of INCRBYFLOAT, the value and the argument.
    ///
    /// The whole input must be a decimal, a C99 hexadecimal float, or `inf` or `infinity` in any
    /// case, each with an optional sign. `None` for anything else, NaN included, for inputs
    /// longer than [`DECIMAL_BYTES_MAX`], and for finite spellings that overflow or that
    /// underflow to zero.
    pub fn parse(input: &[u8]) -> Option<LongDouble> {
        if input.len() > DECIMAL_BYTES_MAX {
            return None;
        }
        let (negative, unsigned) = match input {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, input),
        };
        if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble { negative, magnitude: Magnitude::Infinite });
        }
        let exact = match parse_hex(input) {
            Some(exact) => exact,
            None => Decimal::parse(unsigned)?.to_binary(negative)?,
        };
        let rounded = LongDouble::round(&exact)?;
        let underflow = rounded.is_zero() && !exact.is_zero();
        (!underflow).then_some(rounded)
    }

    /// Whether the number is not an infinity.
    pub fn is_finite(self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    /// The sum, or `None` if it is infinite or NaN, for which Redis replies with an error.
    #[must_use]
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        let (
            Magnitude::Finite { significand: a, exponent: a_exponent },
            Magnitude::Finite { significand: b, exponent: b_exponent },
        ) = (self.magnitude, other.magnitude)
        else {
            return None;
        };
        let exponent = a_exponent.max(b_exponent);
        let (a, b) = (align(a, exponent - a_exponent), align(b, exponent - b_exponent));
        let (negative, significand) = if self.negative == other.negative {
            (self.negative, a + b)
        } else if a >= b {
            // In this rounding mode the difference of equal magnitudes is plus zero.
            (self.negative && a != b, a - b)
        } else {
            (other.negative, b - a)
        };
        let exponent = exponent - i64::from(GUARD_BITS);
        LongDouble::round(&Binary { negative, significand, exponent })
    }

    /// Appends the number as Redis prints the result of INCRBYFLOAT: no exponent, at most 17
    /// digits after the point (rounded to nearest, ties to even), no zeros at their end, no
    /// negative zero. Appends at most about [`DECIMAL_BYTES_MAX`] bytes.
    pub fn push_human(self, out: &mut Vec<u8>) {
        let Magnitude::Finite { significand, exponent } = self.magnitude else {
            out.extend_from_slice(if self.negative { b"-inf" } else { b"inf" });
            return;
        };
        if exponent >= 0 {
            push_sign(out, self.negative && significand != 0);
            push_integer(out, significand, exponent.unsigned_abs());
            return;
        }
        // 64 bits times 57 bits fit, so the scaled value is exact and rounded only once.
        let scaled = round_shift(u128::from(significand) * FRACTION_SCALE, -exponent);
        push_sign(out, self.negative && scaled != 0);
        // Both fit: the whole part is below 2^64 and the fraction below 10^17.
        push_u64(out, (scaled / FRACTION_SCALE) as u64);
        push_fraction(out, (scaled % FRACTION_SCALE) as u64);
    }

    fn is_zero(self) -> bool {
        matches!(self.magnitude, Magnitude::Finite { significand: 0, .. })
    }

    /// The nearest number; `None` if it is out of range.
    fn round(exact: &Binary) -> Option<LongDouble> {
        match exact.round(EXTENDED) {
            Rounded::Finite { significand, exponent } => {
                let magnitude = Magnitude::Finite { significand, exponent };
                Some(LongDouble { negative: exact.negative, magnitude })
            }
            Rounded::Overflow => None,
        }
    }
}

impl From<i64> for LongDouble {
    /// Exact: 64 bits hold every magnitude.
    fn from(value: i64) -> LongDouble {
        let magnitude = value.unsigned_abs();
        let shift = magnitude.leading_zeros();
        let magnitude = match magnitude.checked_shl(shift) {
            Some(significand) => Magnitude::Finite { significand, exponent: -i64::from(shift) },
            None => Magnitude::Finite { significand: 0, exponent: EXTENDED.exponent_min },
        };
        LongDouble { negative: value < 0, magnitude }
    }
}

/// Bits kept below a significand while adding. One bit above it is left for the carry.
const GUARD_BITS: u32 = 62;

/// Moves a significand right by `shift` from its position above the guard bits. Bits that fall off
/// set the lowest bit. They fall off only if the larger operand has its leading bit set, so the
/// lowest bit is far below the rounding position of sum and difference.
fn align(significand: u64, shift: i64) -> u128 {
    let placed = u128::from(significand) << GUARD_BITS;
    match u32::try_from(shift).ok().filter(|shift| *shift < u128::BITS) {
        Some(shift) => {
            let kept = placed >> shift;
            kept | u128::from(kept << shift != placed)
        }
        None => u128::from(placed != 0),
    }
}

fn push_sign(out: &mut Vec<u8>, negative: bool) {
    if negative {
        out.push(b'-');
    }
}

/// Appends `significand * 2^exponent`.
fn push_integer(out: &mut Vec<u8>, significand: u64, exponent: u64) {
    if exponent == 0 {
        push_u64(out, significand);
    } else {
        let value = BigUint::from(significand) << exponent;
        out.extend_from_slice(value.to_str_radix(10).as_bytes());
    }
}

/// Appends a point and 17 digits without trailing zeros; nothing if all digits are zero.
fn push_fraction(out: &mut Vec<u8>, mut fraction: u64) {
    if fraction == 0 {
        return;
    }
    let mut digits = FRACTION_DIGITS;
    while fraction.is_multiple_of(10) {
        fraction /= 10;
        digits -= 1;
    }
    out.push(b'.');
    let zeros = digits - 1 - fraction.ilog10();
    out.resize(out.len() + zeros as usize, b'0');
    push_u64(out, fraction);
}

/// A decimal: its digits without the point, times ten to `exponent`.
struct Decimal {
    /// Significant digits, each 0-9, without leading zeros.
    digits: Vec<u8>,
    exponent: i64,
}

/// Digits that always fit in 64 bits.
const SMALL_DIGITS_MAX: usize = 19;
/// 5^26 has 61 bits, so a 128-bit number divided by it keeps the 66 bits that rounding needs.
const SMALL_EXPONENT_MAX: u32 = 26;

impl Decimal {
    /// Reads an unsigned decimal with optional point and exponent; it must be the whole input.
    fn parse(input: &[u8]) -> Option<Decimal> {
        let split = input.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, exponent) = match split {
            Some(at) => (input.get(..at)?, parse_exponent(input.get(at + 1..)?)?),
            None => (input, 0),
        };
        let mut decimal = Decimal { digits: Vec::with_capacity(mantissa.len()), exponent };
        let (mut any, mut after_point) = (false, false);
        for byte in mantissa {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    decimal.exponent -= i64::from(after_point);
                    if !decimal.digits.is_empty() || *byte != b'0' {
                        decimal.digits.push(byte - b'0');
                    }
                }
                b'.' if !after_point => after_point = true,
                _ => return None,
            }
        }
        any.then_some(decimal)
    }

    /// The value in binary, exact except for a sticky lowest bit. `None` if it is so far out of
    /// range that computing it would only cost time.
    fn to_binary(&self, negative: bool) -> Option<Binary> {
        if self.digits.is_empty() {
            return Some(Binary { negative, significand: 0, exponent: 0 });
        }
        // The value is below ten to `above` and at least ten to `above - 1`.
        let above = self.exponent.saturating_add(i64::try_from(self.digits.len()).ok()?);
        if !(DECIMAL_EXPONENT_MIN..=DECIMAL_EXPONENT_MAX).contains(&above) {
            return None;
        }
        let power = u32::try_from(self.exponent.unsigned_abs()).ok()?;
        let (significand, exponent) =
            if self.digits.len() <= SMALL_DIGITS_MAX && power <= SMALL_EXPONENT_MAX {
                self.scale_small(power)
            } else {
                self.scale_big(power)?
            };
        Some(Binary { negative, significand, exponent })
    }

    /// Ten to `power` is five to `power` times two to `power`, which only changes the exponent.
    fn scale_small(&self, power: u32) -> (u128, i64) {
        let value = self.digits.iter().fold(0u128, |sum, digit| sum * 10 + u128::from(*digit));
        let fives = 5u128.pow(power);
        if self.exponent >= 0 {
            return (value * fives, self.exponent);
        }
        let shift = value.leading_zeros();
        let numerator = value << shift;
        let (quotient, rest) = (numerator / fives, numerator % fives);
        (quotient | u128::from(rest != 0), self.exponent - i64::from(shift))
    }

    fn scale_big(&self, power: u32) -> Option<(u128, i64)> {
        let value = BigUint::from_radix_be(&self.digits, 10)?;
        let fives = BigUint::from(5u8).pow(power);
        if self.exponent >= 0 {
            return Some(leading_bits(&(value * fives), false, self.exponent));
        }
        // So many bits that the quotient has more than the format for all operands.
        let shift = (fives.bits() + QUOTIENT_BITS).saturating_sub(value.bits());
        let numerator = value << shift;
        let quotient = &numerator / &fives;
        let inexact = &quotient * &fives != numerator;
        Some(leading_bits(&quotient, inexact, self.exponent - i64::try_from(shift).ok()?))
    }
}

/// More than the 64 bits of the format, one half bit and one sticky bit.
const QUOTIENT_BITS: u64 = 80;

/// The 128 leading bits of `value * 2^exponent`, the lowest one sticky.
fn leading_bits(value: &BigUint, mut inexact: bool, exponent: i64) -> (u128, i64) {
    let drop = value.bits().saturating_sub(u64::from(u128::BITS));
    let leading = value >> drop;
    let mut words = leading.iter_u64_digits();
    let low = u128::from(words.next().unwrap_or(0));
    let high = u128::from(words.next().unwrap_or(0));
    inexact |= value.trailing_zeros().is_some_and(|zeros| zeros < drop);
    // The input limit bounds the dropped bits far below 2^63.
    (high << 64 | low | u128::from(inexact), exponent.saturating_add_unsigned(drop))
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
