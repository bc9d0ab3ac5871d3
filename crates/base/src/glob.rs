//! Glob patterns of Redis, for KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules.
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any number of bytes, including none |
//! | `?` | one byte |
//! | `[abc]`, `[a-z]`, `[z-a]` | one byte of the class; both orders are allowed |
//! | `[^abc]` | one byte outside the class |
//! | `\x` | the byte `x` without its special meaning, in a class as well |
//!
//! Stars divide a pattern into segments, whose elements take exactly one byte each:
//!
//! ```text
//!   user:*:[0-9]?:*.log
//!   -----  ------   ----
//!   at the start    at the end of the text
//!          the leftmost place after the segment before
//! ```
//!
//! The leftmost place suffices, because it leaves the most text to the segments after it. Patterns
//! come from clients, so the time of a match is bounded (`segment`) and nothing recurses.
//!
//! Oddities of Redis are kept, since existing patterns may rely on them: an empty text matches only
//! an empty pattern, not even `*` (callers that list everything handle a single `*` themselves); an
//! unclosed class ends with the pattern; `]` may end a range (`[a-]`); a trailing backslash matches
//! itself; in ranges, bytes from 0x80 up are below the ASCII ones; an escaped byte in a class keeps
//! its case; a pattern that needs more than a thousand stars before the last element matches
//! nothing.

use crate::segment::{GlobSegment, StepBudget, element};

/// How many runs of stars before another element a match may use, as in Redis.
const STARS_MAX: usize = 1000;

/// Whether the whole `text` matches `pattern`. `ignore_case` folds ASCII letters only.
///
/// It takes time proportional to the sum of the lengths, except for segments of more than 64
/// elements with `?`, classes or folded case: those cost a step for each byte of the text and 64
/// elements. A match that needs more than `StepBudget` of such steps fails. It allocates only for
/// long segments.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut at) = (pattern, 0);
    // The segment at the start, byte by byte.
    loop {
        if let [b'*', after @ ..] = rest {
            return after.is_empty() || matches_after_star(after, &text[at..], ignore_case);
        }
        let Some(byte) = text.get(at) else { return rest.is_empty() };
        let Some(after) = element(rest, *byte, ignore_case) else { return false };
        (rest, at) = (after, at + 1);
    }
}

/// Whether `text` matches a pattern after a star; an empty text may match.
fn matches_after_star(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let (mut rest, mut text) = (pattern, text);
    let mut budget = StepBudget::default();
    for _ in 0..STARS_MAX {
        rest = after_stars(rest);
        if rest.is_empty() {
            return true;
        }
        let (segment, after) = GlobSegment::split(rest, ignore_case);
        if after.is_empty() {
            return segment.is_at_end(text);
        }
        let Some(found) = segment.find(text, &mut budget) else { return false };
        (rest, text) = (after, &text[found + segment.len()..]);
    }
    // Only stars may follow.
    after_stars(rest).is_empty()
}

/// The pattern after its leading stars.
fn after_stars(pattern: &[u8]) -> &[u8] {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    &pattern[stars..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), false)
    }

    #[test]
    fn ordinary_patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "abc", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hllo", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("a\\*c", "a*c", true),
            ("a\\*c", "abc", false),
            ("*foo*", "a foo b", true),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybzcd", false),
            ("*ab", "aab", true),
            ("a**", "a", true),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn odd_patterns() {
        for (pattern, text, expected) in [
            ("*", "", false),
            ("**", "", false),
            ("[", "[", false),
            ("[]", "]", false),
            ("[^]", "x", true),
            ("[^", "x", true),
            ("[abc", "b", true),
            ("[^abc", "b", false),
            ("[a-]", "]", true),
            ("[a-]", "-", false),
            ("[a-", "-", true),
            ("[a\\", "\\", true),
            ("[\\]]", "]", true),
            ("[\\a-c]", "-", true),
            ("[a-\\]]", "`]", true),
            ("[a-\\]]", "a]", true),
            ("\\", "\\", true),
            ("a\\", "a\\", true),
            ("[*]", "*", true),
            ("[?]", "a", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} on {text}");
        }
        assert!(matches(b"[a-\xff]", b"Z", false), "bytes from 0x80 up order below ASCII");
        assert!(!matches(b"[a-\xff]", b"b", false));
        assert!(matches(b"[\x80-\xff]", b"\xc3", false));
    }

    #[test]
    fn case_folding() {
        for (pattern, text, expected) in [
            ("HeL*O", "hElLo", true),
            ("[A-C]", "b", true),
            ("[xyz]", "Y", true),
            ("\\A", "a", true),
            ("[\\A]", "a", false),
            ("[Z-a]", "z", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), true), expected, "{pattern}");
        }
    }

    /// A search whose cost is the product of the lengths takes hours for each of these.
    #[test]
    fn hostile_patterns_stay_fast() {
        let many = |byte: &str| byte.repeat(2_000_000);
        let text = many("aa");
        assert!(!glob(&format!("*{}b", many("a")), &text));
        assert!(!glob(&format!("*{}b*", many("a")), &text));
        assert!(!glob(&format!("*{}\\b*", many("a")), &text));
        assert!(!glob(&format!("*[{}b]*", many("bc")), &text));
        assert!(!glob(&format!("*{}b*", "?".repeat(63)), &text));
        assert!(!glob(&format!("*{}*{}b*c", many("a"), many("a")), &text));
        let text = "a".repeat(20_000);
        assert!(!glob(&("a*".repeat(1_000) + "b"), &text));
        assert!(!glob(&("*a".repeat(1_000) + "?b"), &text));
        assert!(!glob(&format!("*{}b*", "?a".repeat(5_000)), &text));
        assert!(glob(&format!("*{}*", "?a".repeat(10_000)), &text));
        assert!(glob(&"*[a]?".repeat(1_000), &text));
    }

    #[test]
    fn a_match_takes_a_thousand_stars_at_most() {
        let text = "a".repeat(2_000);
        assert!(glob(&"*a".repeat(1_000), &text));
        assert!(glob(&("*a".repeat(1_000) + "*"), &text));
        assert!(glob(&("***a".repeat(1_000) + "**"), &text));
        assert!(!glob(&"*a".repeat(1_001), &text));
        assert!(!glob(&("*a".repeat(1_000) + "*b"), &text));
    }

    /// The textbook definition: a star takes nothing, or takes one byte and tries again.
    fn naive(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                naive(rest, text, ignore_case)
                    || (!text.is_empty() && naive(pattern, &text[1..], ignore_case))
            }
            ([], []) => true,
            ([], _) | (_, []) => false,
            (_, [byte, tail @ ..]) => element(pattern, *byte, ignore_case)
                .is_some_and(|rest| naive(rest, tail, ignore_case)),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_textbook(
            pattern in "[abAB*?\\[\\]^\\\\-]{0,12}", text in "[abAB\\]-]{1,10}", fold: bool,
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text, fold), naive(pattern, text, fold));
        }

        #[test]
        fn any_bytes_end(pattern: Vec<u8>, text: Vec<u8>, fold: bool) {
            matches(&pattern, &text, fold);
        }
    }
}
