//! Numbers as C's `%.14g` prints them, the format of Lua 5.1 and of JSON in scripts.

/// Digits that Lua 5.1 prints.
const LUA_DIGITS: usize = 14;

/// A number as `tostring` of Lua 5.1 prints it.
pub fn number_text(value: f64) -> String {
    let mut text = String::new();
    push_general(&mut text, value, LUA_DIGITS);
    text
}

/// Appends a number in C's `%.{digits}g`: at most so many significant digits, an exponent where
/// the number is below 0.0001 or needs more digits than that before the point.
pub fn push_general(text: &mut String, value: f64, digits: usize) {
    if !value.is_finite() {
        if value.is_sign_negative() {
            text.push('-');
        }
        text.push_str(if value.is_nan() { "nan" } else { "inf" });
        return;
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        text.push_str(trimmed(mantissa));
        text.push_str(if exponent < 0 { "e-" } else { "e+" });
        let magnitude = exponent.unsigned_abs();
        if magnitude < 10 {
            text.push('0');
        }
        text.push_str(itoa::Buffer::new().format(magnitude));
        return;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    text.push_str(trimmed(&format!("{value:.decimals$}")));
}

/// Without zeros at the end of a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_c_prints_them() {
        let check = |value: f64, expected: &str| assert_eq!(number_text(value), expected);
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(-17.0, "-17");
        check(3.25, "3.25");
        check(1.0 / 3.0, "0.33333333333333");
        check(0.1 + 0.2, "0.3");
        check(100_000_000_000_000.0, "1e+14");
        check(12_345_678_901_234.0, "12345678901234");
        check(123_456_789_012_345.0, "1.2345678901234e+14");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(1e300, "1e+300");
        check(1e-300, "1e-300");
        check(99_999_999_999_999.9, "1e+14");
        check(f64::INFINITY, "inf");
        check(-f64::NAN, "-nan");
    }
}
