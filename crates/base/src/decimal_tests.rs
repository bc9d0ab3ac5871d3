//! Sums and their digits. The expected values come from `long double` on x86-64 with `%.17Lf`, and
//! were compared with INCRBYFLOAT of Redis 8.0.6.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> LongDouble {
    LongDouble::parse(text.as_bytes()).expect(text)
}

fn printed(value: LongDouble) -> String {
    let mut out = Vec::new();
    value.push_human(&mut out);
    String::from_utf8(out).unwrap()
}

/// Significand and exponent: the printed digits hide the last bits.
fn parts(value: LongDouble) -> (u64, i64) {
    match value.magnitude {
        Magnitude::Finite { significand, exponent } => (significand, exponent),
        Magnitude::Infinite => panic!("infinite"),
    }
}

#[test]
fn sums_print_as_in_redis() {
    for (a, b, sum) in [
        ("0.1", "0.2", "0.3"),
        ("3.0", "1.1", "4.1"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("-5", "5", "0"),
        ("0", "-0", "0"),
        ("-0", "-0", "0"),
        ("1e17", "1", "100000000000000001"),
        ("1e19", "0.1", "10000000000000000000"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("9223372036854775807", "0.5", "9223372036854775807.5"),
        ("9223372036854775808", "0.5", "9223372036854775808"),
        ("9223372036854775809", "0.5", "9223372036854775810"),
        ("0x.8", "0X1P3", "8.5"),
        ("+1", "+0x10", "17"),
        ("100000000000000000000", "-99999999999999999999", "0"),
        ("0x8000000000000001", "0x1p-1", "9223372036854775810"),
        ("0x8000000000000001", "0x1p-200", "9223372036854775809"),
        ("1e30", "1", "1000000000000000000024696061952"),
        ("1e4932", "-1e4932", "0"),
        (".5", "5.", "5.5"),
    ] {
        let (x, y) = (read(a), read(b));
        assert_eq!(x.checked_add(y).map(printed).as_deref(), Some(sum), "{a} + {b}");
        assert_eq!(y.checked_add(x).map(printed).as_deref(), Some(sum), "{b} + {a}");
    }
}

#[test]
fn sums_out_of_range_are_refused() {
    let largest = "1.18973149535723176502e4932";
    for (a, b) in
        [("inf", "1"), ("-inf", "inf"), ("1", "-inf"), ("infinity", "Inf"), (largest, largest)]
    {
        assert_eq!(read(a).checked_add(read(b)), None, "{a} + {b}");
    }
    assert!(!read("-INF").is_finite() && read("1").is_finite());
    assert_eq!((printed(read("inf")), printed(read("-inf"))), ("inf".into(), "-inf".into()));
}

#[test]
fn single_values_print_as_in_redis() {
    for (text, expected) in [
        ("0.00000000000000001", "0.00000000000000001"),
        ("0.000000000000000005", "0"),
        ("-0.000000000000000001", "0"),
        ("0x1p-18", "0.00000381469726562"),
        ("0x3p-18", "0.00001144409179688"),
        ("18446744073709551617", "18446744073709551616"),
        ("18446744073709551619", "18446744073709551620"),
        ("18446744073709551617.0000000000000000000000000001", "18446744073709551618"),
        ("123456789012345678901234567890", "123456789012345678899921813504"),
        ("1.999999999999999999999999999999", "2"),
        ("3.14159265358979323846", "3.14159265358979324"),
        ("1e25", "10000000000000000000000000"),
        ("-1.50", "-1.5"),
        ("00012", "12"),
    ] {
        assert_eq!(printed(read(text)), expected, "{text}");
    }
}

#[test]
fn last_bits() {
    const LEADING: u64 = 1 << 63;
    for (text, expected) in [
        ("0.1", (14_757_395_258_967_641_293, -67)),
        ("1.18973149535723176502e4932", (u64::MAX, 16_320)),
        ("3.6e-4951", (1, -16_445)),
        ("0x1.8p-16446", (1, -16_445)),
        ("0x1p-16382", (LEADING, -16_445)),
        ("0xffffffffffffffff8p-16450", (LEADING, -16_445)),
        ("1e27", (14_901_161_193_847_656_250, 26)),
        ("0e99999999999999999999999", (0, -16_445)),
    ] {
        assert_eq!(parts(read(text)), expected, "{text}");
    }
    for (small, expected) in [
        ("0x1p-64", (LEADING, -63)),
        ("0x1.8p-64", (LEADING + 1, -63)),
        ("0x1p-63", (LEADING + 1, -63)),
        ("-0x1p-65", (LEADING, -63)),
        ("-0x1p-64", (u64::MAX, -64)),
        ("-0x1.8p-65", (u64::MAX, -64)),
        ("-1e-4950", (LEADING, -63)),
    ] {
        let sum = read("1").checked_add(read(small)).unwrap();
        assert_eq!(parts(sum), expected, "1 + {small}");
    }
}

#[test]
fn other_texts_are_refused() {
    for text in "| 1|1 |\t1|1\n|1\0|.|-|+|e5|1e|1e+|1_0|1.2.3|nan|-nan|nan(1)|infi|0x|0x.|0x1p|\
        --1|+-1|-+inf|1f|1L|1e4933|1.18973149535723176506e4932|1.8e-4951|0x1p-16446|0x1p16384|\
        1e99999999999999999999|1e-99999999999999999999|0xffffffffffffffff8p16316"
        .split('|')
    {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
    }
    let longest = format!("0.{}", "1".repeat(DECIMAL_BYTES_MAX - 2));
    assert_eq!(printed(read(&longest)), "0.11111111111111111");
    assert_eq!(LongDouble::parse(format!("{longest}1").as_bytes()), None);
}

#[test]
fn integers_are_exact() {
    for value in [0, 1, -1, 10, i64::MAX, i64::MIN] {
        assert_eq!(printed(LongDouble::from(value)), value.to_string());
        assert_eq!(LongDouble::from(value), read(&value.to_string()));
    }
}

proptest! {
    #[test]
    fn integers_add_exactly(a in -(1i64 << 62)..1 << 62, b in -(1i64 << 62)..1 << 62) {
        let sum = LongDouble::from(a).checked_add(LongDouble::from(b)).map(printed);
        prop_assert_eq!(sum, Some((a + b).to_string()));
    }

    #[test]
    fn short_decimals_add_as_on_paper(a in -4_000i64..4_000, b in -4_000i64..4_000) {
        // Close to 1, the 17th digit after the point is larger than the rounding errors.
        let sum = read(&format!("{a}e-3")).checked_add(read(&format!("{b}e-3"))).map(printed);
        let (sign, paper) = (if a + b < 0 { "-" } else { "" }, (a + b).abs());
        let paper = format!("{sign}{}.{:03}", paper / 1000, paper % 1000);
        prop_assert_eq!(sum.as_deref(), Some(paper.trim_end_matches('0').trim_end_matches('.')));
    }

    #[test]
    fn big_and_small_roads_agree(digits in "[1-9][0-9]{0,18}", exponent in -26i32..=26) {
        // Trailing zeros make the same value too long for the 128-bit path.
        let short = format!("{digits}e{exponent}");
        let long = format!("{digits}{}e{}", "0".repeat(30), exponent - 30);
        prop_assert_eq!(read(&short), read(&long));
    }

    #[test]
    fn any_text_ends(text in "[-+]?[0-9.a-fA-FxXpPeE]{0,30}") {
        if let Some(value) = LongDouble::parse(text.as_bytes()) {
            prop_assert!(printed(value).len() <= DECIMAL_BYTES_MAX);
            prop_assert!(LongDouble::parse(printed(value).as_bytes()).is_some());
        }
    }
}
