//! Exact binary values: rounding them to a float format, and C99 hexadecimal floats (`0x1.8p3`).
//!
//! Doubles and the 80-bit extended format share this: both hold an integer significand scaled
//! by a power of two, rounded to nearest with ties to even. ISO C 7.22.1.3 gives the grammar.

/// A binary value with a sign: `significand * 2^exponent`, exact except for a sticky lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binary {
    pub(crate) negative: bool,
    /// Lower bits that do not fit set the lowest bit, which is enough to round correctly.
    pub(crate) significand: u128,
    pub(crate) exponent: i64,
}

/// A binary format: how many bits a significand has and the scales of its lowest bit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Significand bits, the leading one included.
    pub(crate) precision_bits: u32,
    /// Scale of the lowest bit of subnormals and of the smallest normals.
    pub(crate) exponent_min: i64,
    /// Scale of the lowest bit of the largest values.
    pub(crate) exponent_max: i64,
}

/// IEEE 754 binary64.
pub(crate) const DOUBLE: Format =
    Format { precision_bits: 53, exponent_min: -1074, exponent_max: 971 };

/// A value rounded to a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounded {
    /// `significand * 2^exponent`; zero has significand 0 and any exponent.
    Finite { significand: u64, exponent: i64 },
    /// Too large for the format.
    Overflow,
}

impl Binary {
    pub(crate) fn is_zero(&self) -> bool {
        self.significand == 0
    }

    /// Rounds the magnitude to nearest, ties to even.
    pub(crate) fn round(&self, format: Format) -> Rounded {
        if self.significand == 0 {
            return Rounded::Finite { significand: 0, exponent: format.exponent_min };
        }
        let bits = i64::from(u128::BITS - self.significand.leading_zeros());
        let exponent = self
            .exponent
            .saturating_add(bits - i64::from(format.precision_bits))
            .max(format.exponent_min);
        let drop = exponent.saturating_sub(self.exponent);
        let (mut significand, mut exponent) = (round_shift(self.significand, drop), exponent);
        if significand >> format.precision_bits != 0 {
            // Rounding up carried into a new bit, so the lowest bit is zero.
            significand >>= 1;
            exponent += 1;
        }
        match u64::try_from(significand) {
            Ok(significand) if exponent <= format.exponent_max => {
                Rounded::Finite { significand, exponent }
            }
            _ => Rounded::Overflow,
        }
    }

    /// The nearest double, or an infinity.
    pub(crate) fn to_f64(self) -> f64 {
        let magnitude = match self.round(DOUBLE) {
            Rounded::Overflow => f64::INFINITY,
            Rounded::Finite { significand, exponent } => {
                let normal = significand >> (DOUBLE.precision_bits - 1) != 0;
                let field = if normal { exponent - DOUBLE.exponent_min + 1 } else { 0 };
                let fraction = significand & ((1 << (DOUBLE.precision_bits - 1)) - 1);
                // The field is in 0..=2046 here, because the exponent is in the format's range.
                f64::from_bits((field.unsigned_abs() << (DOUBLE.precision_bits - 1)) | fraction)
            }
        };
        if self.negative { -magnitude } else { magnitude }
    }
}

/// `value / 2^drop` to nearest, ties to even; a negative `drop` multiplies.
pub(crate) fn round_shift(value: u128, drop: i64) -> u128 {
    if drop <= 0 {
        return value << drop.unsigned_abs().min(127);
    }
    // The half bit and the bits below it. With a larger shift the value is below half.
    let Some(half) = u32::try_from(drop - 1).ok().and_then(|shift| 1u128.checked_shl(shift)) else {
        return 0;
    };
    let kept = if drop >= 128 { 0 } else { value >> drop };
    let rest = value & (half | (half - 1));
    let up = rest > half || (rest == half && kept & 1 == 1);
    kept + u128::from(up)
}

/// Hexadecimal digits that are kept: 120 bits. Further digits only set the sticky bit.
const SIGNIFICANT_DIGITS_MAX: u32 = 30;

/// Reads a hexadecimal float with an optional sign; it must be the whole input.
pub(crate) fn parse_hex(input: &[u8]) -> Option<Binary> {
    let (negative, rest) = match input {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, input),
    };
    let [b'0', b'x' | b'X', rest @ ..] = rest else { return None };
    let mut value = Binary { negative, significand: 0, exponent: 0 };
    let (mut any, mut after_point, mut significant) = (false, false, 0);
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        if *byte == b'.' && !after_point {
            after_point = true;
        } else if let Some(digit) = (*byte as char).to_digit(16) {
            any = true;
            if significant < SIGNIFICANT_DIGITS_MAX {
                value.significand = value.significand << 4 | u128::from(digit);
                value.exponent -= if after_point { 4 } else { 0 };
                significant += u32::from(value.significand != 0);
            } else {
                value.significand |= u128::from(digit != 0);
                value.exponent += if after_point { 0 } else { 4 };
            }
        } else {
            break;
        }
        at += 1;
    }
    if !any {
        return None;
    }
    match rest.get(at..)? {
        [] => {}
        [b'p' | b'P', exponent @ ..] => {
            value.exponent = value.exponent.saturating_add(parse_exponent(exponent)?);
        }
        _ => return None,
    }
    Some(value)
}

/// A decimal exponent with an optional sign, the whole input; huge ones saturate.
pub(crate) fn parse_exponent(input: &[u8]) -> Option<i64> {
    let (negative, digits) = match input {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, input),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // A quarter of the range leaves room for sums with digit counts.
        value = (value.saturating_mul(10).saturating_add(i64::from(digit))).min(i64::MAX / 4);
    }
    Some(if negative { -value } else { value })
}
