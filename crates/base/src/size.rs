//! Amounts of memory: `100mb` in configuration, `1.05M` in INFO.
//!
//! As in redis.conf, the short units are decimal and those with a `b` are binary.

/// Units and their bytes; the case does not matter.
const UNITS: [(&[u8], i64); 8] = [
    (b"", 1),
    (b"b", 1),
    (b"k", 1_000),
    (b"kb", 1 << 10),
    (b"m", 1_000_000),
    (b"mb", 1 << 20),
    (b"g", 1_000_000_000),
    (b"gb", 1 << 30),
];

/// Reads an amount in bytes: digits, directly followed by nothing or one of `b k kb m mb g gb` in
/// any case.
///
/// `None` without digits, with a sign, with an unknown unit, and outside the range of `i64`. Redis
/// differs in two cases, neither of them useful: it reads no digits as 0, and amounts above 64 bits
/// wrap around.
pub fn parse_bytes(input: &[u8]) -> Option<i64> {
    let digits = input.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = input.split_at_checked(digits)?;
    if digits.is_empty() {
        return None;
    }
    let (_, factor) = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    let mut amount = 0i64;
    for digit in digits {
        amount = amount.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    amount.checked_mul(*factor)
}

/// Steps of 1024 and their letters, largest first.
const STEPS: [(u32, u8); 5] = [(50, b'P'), (40, b'T'), (30, b'G'), (20, b'M'), (10, b'K')];

/// Amounts from 1024 P on print in plain bytes, as in Redis.
const STEPS_END: u64 = 1 << 60;

/// Appends an amount like INFO's `used_memory_human`: `512B`, or `1.05M` with two digits after the
/// point.
pub fn push_human_bytes(out: &mut Vec<u8>, bytes: u64) {
    use std::io::Write;
    let step = STEPS.iter().find(|(shift, _)| bytes >> shift != 0);
    let written = match step {
        Some((shift, letter)) if bytes < STEPS_END => {
            let amount = bytes as f64 / (1u64 << shift) as f64;
            write!(out, "{amount:.2}{}", char::from(*letter))
        }
        _ => write!(out, "{bytes}B"),
    };
    debug_assert!(written.is_ok(), "writing to a vector cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn human(bytes: u64) -> String {
        let mut out = Vec::new();
        push_human_bytes(&mut out, bytes);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn units() {
        for (text, bytes) in [
            ("0", 0),
            ("100b", 100),
            ("1k", 1000),
            ("1KB", 1024),
            ("2m", 2_000_000),
            ("2mB", 2 << 20),
            ("3G", 3_000_000_000),
            ("3gb", 3 << 30),
            ("0100mb", 100 << 20),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(parse_bytes(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in "|-|kb|1t|1tb|+1| 1|1 |1 kb|1.5mb|0x10|-1|-1mb|9223372036854775808|\
            9007199254740992kb|99999999999999999999g"
            .split('|')
        {
            assert_eq!(parse_bytes(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn human_amounts() {
        for (bytes, text) in [
            (0, "0B"),
            (512, "512B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1_048_575, "1024.00K"),
            (1_101_005, "1.05M"),
            (3 << 29, "1.50G"),
            (1 << 40, "1.00T"),
            (1 << 50, "1.00P"),
            (1 << 60, "1152921504606846976B"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn plain_numbers_are_bytes(value in 0..=i64::MAX) {
            prop_assert_eq!(parse_bytes(value.to_string().as_bytes()), Some(value));
        }
    }
}
