//! Numbers as C's `%.14g` prints them, the format of Lua 5.1 and of JSON in scripts.

/// Digits that Lua 5.1 prints.
const LUA_DIGITS: usize = 14;

/// A number as `tostring` of Lua 5.1 prints it.
pub fn number_text(value: f64) -> String {
    let mut text = String::new();
    push_general(&mut text, value, LUA_DIGITS);
    text
}

/// Appends a number in C's `%.{digits}g`: at most this many significant digits, with an exponent if
/// the number is below 0.0001 or has more digits before the point.
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

/// Removes zeros at the end of a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Reads the number at the beginning of a text as C's `strtod` does: decimal, hexadecimal, infinity
/// or NaN. Returns it with its length.
pub fn leading_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign_len = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let sign = if text.first() == Some(&b'-') { -1.0 } else { 1.0 };
    let rest = &text[sign_len..];
    let begins =
        |word: &[u8]| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    for (word, value) in
        [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)]
    {
        if begins(word) {
            return Some((sign * value, sign_len + word.len()));
        }
    }
    if begins(b"0x")
        && let Some((value, used)) = hexadecimal(&rest[2..])
    {
        return Some((sign * value, sign_len + 2 + used));
    }
    let digits = |from: usize| {
        rest.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut len = whole;
    if rest.get(len) == Some(&b'.') {
        let fraction = digits(len + 1);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if len == 0 {
        return None;
    }
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        let exponent_sign = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + exponent_sign);
        if exponent > 0 {
            len += 1 + exponent_sign + exponent;
        }
    }
    let number = std::str::from_utf8(&rest[..len]).ok()?.parse::<f64>().ok()?;
    Some((sign * number, sign_len + len))
}

/// Reads a hexadecimal number with its fraction and binary exponent. Returns it with its length.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut value, mut at, mut digits, mut scale) = (0.0f64, 0, 0, 0i32);
    let mut is_fraction = false;
    loop {
        match digit(at) {
            Some(next) => {
                value = value * 16.0 + f64::from(next);
                scale = scale.saturating_sub(if is_fraction { 4 } else { 0 });
                digits += 1;
            }
            None if !is_fraction && text.get(at) == Some(&b'.') => is_fraction = true,
            None => break,
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let sign_len = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let from = at + 1 + sign_len;
        let len = text[from.min(text.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        if len > 0 {
            let fold = |sum: i32, byte: &u8| (sum * 10 + i32::from(byte - b'0')).min(10_000);
            let exponent = text[from..from + len].iter().fold(0, fold);
            let is_negative = sign_len == 1 && text[at + 1] == b'-';
            scale = scale.saturating_add(if is_negative { -exponent } else { exponent });
            at = from + len;
        }
    }
    Some((value * 2f64.powi(scale), at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_c() {
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
