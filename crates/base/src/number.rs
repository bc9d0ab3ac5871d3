//! Numbers in requests and replies: 64-bit integers and doubles.
//!
//! Integers are strict: only the canonical spelling is accepted, so that a value stored as an
//! integer prints as the bytes that were received. Doubles accept the float arguments of Redis 8,
//! and print as in its replies.
//! Extended precision, which INCRBYFLOAT needs, is in [`crate::decimal`].

use crate::binary;
use crate::grisu::DoubleDigits;

/// Longest 64-bit integer: `-9223372036854775808`; 2^64 - 1 also has 20 digits.
pub const INTEGER_BYTES_MAX: usize = 20;

/// So many decimal digits always fit in 64 bits.
const SAFE_DIGITS_MAX: usize = 19;

/// Reads a signed integer in its canonical spelling.
///
/// `None` for an empty input, a plus sign, leading zeros, `-0`, a byte other than digits and one
/// leading minus, and values outside the range of `i64`.
#[inline]
pub fn parse_i64(input: &[u8]) -> Option<i64> {
    let (negative, digits) = match input {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, input),
    };
    if digits.len() > SAFE_DIGITS_MAX {
        return None;
    }
    let magnitude = parse_canonical(digits)?;
    if negative {
        if magnitude == 0 || magnitude > i64::MIN.unsigned_abs() {
            return None;
        }
        Some(0i64.wrapping_sub_unsigned(magnitude))
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Reads an unsigned integer in its canonical spelling: digits only, no leading zeros, at most
/// 2^64 - 1.
#[inline]
pub fn parse_u64(input: &[u8]) -> Option<u64> {
    if input.len() <= SAFE_DIGITS_MAX {
        return parse_canonical(input);
    }
    if input.len() > INTEGER_BYTES_MAX {
        return None;
    }
    let (head, last) = input.split_at(SAFE_DIGITS_MAX);
    let last = last.first()?.wrapping_sub(b'0');
    if last > 9 {
        return None;
    }
    parse_canonical(head)?.checked_mul(10)?.checked_add(u64::from(last))
}

/// The value of at most `SAFE_DIGITS_MAX` digits without leading zeros.
#[inline]
fn parse_canonical(digits: &[u8]) -> Option<u64> {
    debug_assert!(digits.len() <= SAFE_DIGITS_MAX, "the sum below could overflow");
    let first = digits.first()?;
    if *first == b'0' && digits.len() > 1 {
        return None;
    }
    let mut value = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Appends `value` in decimal.
#[inline]
pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends `value` in decimal.
#[inline]
pub fn push_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes `value` in decimal to the start of `out` and returns the text, without an allocation.
#[inline]
pub fn write_i64(value: i64, out: &mut [u8; INTEGER_BYTES_MAX]) -> &[u8] {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value).as_bytes();
    let out = &mut out[..text.len()];
    out.copy_from_slice(text);
    out
}

/// Writes `value` in decimal to the start of `out` and returns its length, to compose texts without
/// an allocation.
///
/// # Panics
/// If `out` is too short.
#[inline]
pub fn write_u64(value: u64, out: &mut [u8]) -> usize {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value).as_bytes();
    out[..text.len()].copy_from_slice(text);
    text.len()
}

/// How many bytes [`push_i64`] appends, including the sign.
#[inline]
pub fn decimal_len_i64(value: i64) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(value < 0)
}

/// Reads a double as Redis 8 reads a float argument such as a sorted-set score.
///
/// Accepted: an optional sign, then decimal digits with an optional point and exponent, or a
/// C99 hexadecimal float, or `inf` or `infinity` in any case, without spaces. `None` for NaN, and
/// for finite spellings that overflow to infinity or underflow to zero. Subnormal results are
/// accepted.
pub fn parse_f64(input: &[u8]) -> Option<f64> {
    if let Some(decimal) = parse_decimal(input) {
        let lost = decimal == 0.0 && has_nonzero_digit(input);
        let overflown = decimal.is_infinite() && has_digit(input);
        return (!lost && !overflown).then_some(decimal);
    }
    let hex = binary::parse_hex(input)?;
    let value = hex.to_f64();
    let lost = value == 0.0 && !hex.is_zero();
    (value.is_finite() && !lost).then_some(value)
}

/// Reads a double as Redis 8 reads the ends of a score range.
///
/// Like [`parse_f64`], except that it refuses hexadecimal, and that a finite spelling out of range
/// becomes an infinity or zero instead of `None`.
pub fn parse_f64_saturating(input: &[u8]) -> Option<f64> {
    parse_decimal(input)
}

/// Reads the whole input as a decimal double or infinity; values out of range saturate. Refuses
/// NaN.
#[inline]
fn parse_decimal(input: &[u8]) -> Option<f64> {
    // The standard parser has the grammar of Redis, but also accepts NaN.
    let value: f64 = std::str::from_utf8(input).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

fn has_digit(input: &[u8]) -> bool {
    input.iter().any(u8::is_ascii_digit)
}

/// Whether the mantissa of a decimal float has a digit other than zero.
fn has_nonzero_digit(input: &[u8]) -> bool {
    let mantissa = input.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or(input);
    mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Integral doubles up to this magnitude, 2^62, print as plain integers.
const INTEGRAL_MAX: f64 = 4_611_686_018_427_387_904.0;

/// Appends a double as Redis 8 prints it in replies: with digits that read back as the same value,
/// nearly always as few as possible.
///
/// Integral values up to 2^62 print as integers. Others print without an exponent if that appends
/// fewer than 8 zeros to the digits or puts the first digit near the point (`0.00001`), and
/// otherwise as `1.5e+21` or `1e-8`. Special values print as `inf`, `-inf`, `nan` and `-0`.
pub fn push_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(DoubleText::of(value).as_bytes());
}

/// The text of a double as [`push_f64`] appends it, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; DOUBLE_BYTES_MAX],
    len: usize,
}

/// The longest text: a sign, digits, and either `0.` with zeros or an exponent.
const DOUBLE_BYTES_MAX: usize = 40;

impl DoubleText {
    /// The text of a double: all digits of integral values, otherwise like [`Self::shortest`].
    pub fn of(value: f64) -> Self {
        Self::with(value, INTEGRAL_MAX)
    }

    /// The text with the fewest digits that identify the double, and with an exponent where that
    /// saves zeros: 10000000000 is `1e+10`.
    pub fn shortest(value: f64) -> Self {
        Self::with(value, 0.0)
    }

    /// Writes integral values up to a magnitude with all digits.
    fn with(value: f64, integral_max: f64) -> Self {
        let mut text = Self { bytes: [0; DOUBLE_BYTES_MAX], len: 0 };
        if value.is_nan() {
            text.push(b"nan");
            return text;
        }
        if value.is_sign_negative() {
            text.push(b"-");
        }
        let magnitude = value.abs();
        if magnitude.is_infinite() {
            text.push(b"inf");
        } else if magnitude <= integral_max && magnitude.trunc() == magnitude {
            // Exact: the value is integral and below 2^63.
            text.push(itoa::Buffer::new().format(magnitude as u64).as_bytes());
        } else {
            push_digits(&mut text, magnitude);
        }
        text
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(part);
            self.len = end;
        }
    }

    /// Appends zeros; there are never more than between the point and the digits.
    fn push_zeros(&mut self, count: usize) {
        self.push(&[b'0'; 8][..count.min(8)]);
    }
}

/// Lays out the digits of a finite magnitude above zero.
fn push_digits(out: &mut DoubleText, magnitude: f64) {
    let shown = DoubleDigits::of(magnitude);
    let digits = &shown.digits[..shown.len];
    let scale = shown.exponent;
    // The position of the first digit: 0 for units, -1 for tenths.
    let first = scale + digits.len() as i32 - 1;
    if (0..8).contains(&scale) {
        out.push(digits);
        out.push_zeros(scale.unsigned_abs() as usize);
    } else if scale < 0 && (scale > -7 || first.abs() < 4) {
        if first < 0 {
            out.push(b"0.");
            out.push_zeros(first.unsigned_abs() as usize - 1);
            out.push(digits);
        } else {
            let (whole, fraction) = digits.split_at(first.unsigned_abs() as usize + 1);
            out.push(whole);
            out.push(b".");
            out.push(fraction);
        }
    } else {
        let (head, tail) = digits.split_at(1);
        out.push(head);
        if !tail.is_empty() {
            out.push(b".");
            out.push(tail);
        }
        out.push(if first < 0 { b"e-" } else { b"e+" });
        out.push(itoa::Buffer::new().format(first.unsigned_abs()).as_bytes());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(value: f64) -> String {
        let mut out = Vec::new();
        push_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_have_one_spelling() {
        for (text, value) in [
            ("0", 0),
            ("-1", -1),
            ("10", 10),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), Some(value), "{text}");
        }
        for text in "|-|+1|-0|00|01|-01| 1|1 |1.0|0x1|1e3|--1|1-|9223372036854775808|\
            -9223372036854775809|18446744073709551616|99999999999999999999999|\u{661}"
            .split('|')
        {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"10000000000000000000"), Some(10_000_000_000_000_000_000));
        for text in ["", "-1", "-0", "00", "18446744073709551616", "1844674407370955161x"] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_u64(b"000000000000000000001"), None);
        assert_eq!(parse_u64(b"00000000000000000001"), None);
    }

    #[test]
    fn doubles_read_as_in_redis() {
        for (text, value) in [
            ("1", 1.0),
            ("+1", 1.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("00012", 12.0),
            ("1e05", 1e5),
            ("1E-5", 1e-5),
            ("0e400", 0.0),
            ("0e-400", 0.0),
            ("inf", f64::INFINITY),
            ("+Inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("4.9e-324", 5e-324),
            ("1.7976931348623157e308", f64::MAX),
            ("0x10", 16.0),
            ("-0X1.8p1", -3.0),
            ("+0x.8", 0.5),
            ("0x8.", 8.0),
            ("0x0p99999999999999999999", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1.8p-1075", 5e-324),
            ("0x1.fffffffffffff8p-1023", f64::MIN_POSITIVE),
            ("0x1.921fb54442d1812345678p+1", std::f64::consts::PI),
            ("0x1.fffffffffffff7ffffffffffffffffffffffffp1023", f64::MAX),
            ("0x0.00000000000000000000000000000000000000001p164", 1.0),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), Some(value), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_doubles() {
        for text in "|.|-|+|1e|1e+| 1|1 |1\n|1\0|1_0|nan|-NaN|nan(1)|infi|1e400|-1e400|1e309|\
            1e-400|2e-324|0x|0x.|0x1p|0x1p+|0x1p2000|0x1p1024|0x1p-1075|0x1p-2000|0xinf|1f|1d5|\
            --1|+-1|0x1.fffffffffffff8p1023|0x1p99999999999999999999"
            .split('|')
        {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_f64(&b"1".repeat(400)), None);
    }

    #[test]
    fn ends_of_ranges_saturate() {
        assert_eq!(parse_f64_saturating(b"1e400"), Some(f64::INFINITY));
        assert_eq!(parse_f64_saturating(b"-1e-400"), Some(-0.0));
        assert_eq!(parse_f64_saturating(b"+inf"), Some(f64::INFINITY));
        assert_eq!(parse_f64_saturating(b"nan"), None);
        assert_eq!(parse_f64_saturating(b"0x10"), None);
    }

    #[test]
    fn shortest_texts_have_exponents_instead_of_zeros() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (100_000_000.0, "1e+8"),
            (12_345_678_900.0, "12345678900"),
            (2.932_72e13, "2.93272e+13"),
            (-1e16, "-1e+16"),
            (99_999_999_999_999_984.0, "99999999999999980"),
            (3.25, "3.25"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let shortest = DoubleText::shortest(value);
            assert_eq!(std::str::from_utf8(shortest.as_bytes()), Ok(text));
        }
    }

    #[test]
    fn doubles_print_as_in_redis() {
        for (value, text) in [
            (3.0, "3"),
            (3.1, "3.1"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (-0.0, "-0"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
            (0.000_123_45, "1.2345e-4"),
            (0.001_234_5, "0.0012345"),
            (1e18, "1000000000000000000"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (-4_611_686_018_427_387_904.0, "-4611686018427387904"),
            (5e18, "5e+18"),
            (1e21, "1e+21"),
            (1.234_567_890_123_4e20, "123456789012340000000"),
            (1.234_567_890_123_4e21, "1.2345678901234e+21"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-f64::MAX, "-1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (123_456.789, "123456.789"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(printed(value), text);
        }
    }

    proptest! {
        #[test]
        fn integers_round_trip(value: i64, unsigned: u64) {
            let mut out = Vec::new();
            push_i64(&mut out, value);
            prop_assert_eq!(parse_i64(&out), Some(value));
            prop_assert_eq!(decimal_len_i64(value), out.len());
            let mut room = [0; INTEGER_BYTES_MAX];
            prop_assert_eq!(write_i64(value, &mut room), &out[..]);
            out.clear();
            push_u64(&mut out, unsigned);
            prop_assert_eq!(parse_u64(&out), Some(unsigned));
        }

        #[test]
        fn only_canonical_integers_are_read(text in "[-+0-9 ]{0,21}") {
            let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
        }

        #[test]
        fn doubles_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            let text = printed(value);
            let back = parse_f64(text.as_bytes()).map(f64::to_bits);
            prop_assert_eq!(back, Some(bits), "{}", text);
        }
    }
}
