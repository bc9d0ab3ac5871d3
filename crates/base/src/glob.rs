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
//! Patterns come from clients, so the code does not recurse, and its worst case is the product of
//! the two lengths: after a mismatch only the *last* `*` takes one more byte and retries. That
//! suffices, since every other element takes exactly one byte, and an earlier star would only reach
//! states that the last one reaches as well.
//!
//! Oddities of Redis are kept, since existing patterns may rely on them: an empty text matches only
//! an empty pattern, not even `*` (callers that list everything handle a single `*` themselves); an
//! unclosed class ends with the pattern; `]` may end a range (`[a-]`); a trailing backslash matches
//! itself; in ranges, bytes from 0x80 up are below the ASCII ones; an escaped byte in a class keeps
//! its case; a pattern that needs more than a thousand stars before the last element matches
//! nothing.

/// How many runs of stars before another element a match may use, as in Redis.
const STARS_MAX: usize = 1000;

/// Whether the whole `text` matches `pattern`. `ignore_case` folds ASCII letters only.
///
/// At worst it takes time proportional to the product of the lengths. It allocates nothing.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut at) = (pattern, 0);
    // Where to resume after a mismatch: the pattern after the last star, and the first byte of the
    // text that the star has not taken yet.
    let mut retry: Option<(&[u8], usize)> = None;
    let mut stars = 0;
    loop {
        if let [b'*', ..] = rest {
            rest = after_stars(rest);
            if rest.is_empty() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            retry = Some((rest, at));
        }
        let Some(byte) = text.get(at) else {
            // The star could only take more bytes, so a retry cannot succeed.
            return rest.is_empty();
        };
        match element(rest, *byte, ignore_case) {
            Some(after) => {
                rest = after;
                at += 1;
            }
            None => {
                let Some((star_rest, from)) = retry else { return false };
                let Some(next) = candidate(star_rest, text, from + 1, ignore_case) else {
                    return false;
                };
                (rest, at) = (star_rest, next);
                retry = Some((star_rest, next));
            }
        }
    }
}

/// The pattern after its leading stars.
fn after_stars(pattern: &[u8]) -> &[u8] {
    let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
    pattern.get(stars..).unwrap_or_default()
}

/// The first position from `from` on where the pattern after a star can match.
#[inline]
fn candidate(rest: &[u8], text: &[u8], from: usize, ignore_case: bool) -> Option<usize> {
    let tail = text.get(from..)?;
    match rest.first()? {
        b'?' | b'[' | b'\\' => Some(from),
        _ if ignore_case => Some(from),
        literal => memchr::memchr(*literal, tail).map(|skipped| from + skipped),
    }
}

/// Matches one byte against the first element of `pattern`, which is not a star. Returns the
/// pattern after that element if it matches.
#[inline]
fn element(pattern: &[u8], byte: u8, ignore_case: bool) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', b'^', class @ ..] => {
            let (found, rest) = class_contains(class, byte, ignore_case);
            (!found).then_some(rest)
        }
        [b'[', class @ ..] => {
            let (found, rest) = class_contains(class, byte, ignore_case);
            found.then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            fold_equal(*literal, byte, ignore_case).then_some(rest)
        }
    }
}

/// Whether the class that starts after `[` or `[^` contains `byte`, and the pattern after the
/// class.
fn class_contains(mut class: &[u8], byte: u8, ignore_case: bool) -> (bool, &[u8]) {
    let mut found = false;
    loop {
        class = match class {
            [] => return (found, class),
            [b']', rest @ ..] => return (found, rest),
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [start, b'-', end, rest @ ..] => {
                found |= in_range(*start, *end, byte, ignore_case);
                rest
            }
            [literal, rest @ ..] => {
                found |= fold_equal(*literal, byte, ignore_case);
                rest
            }
        };
    }
}

/// Whether `byte` is between two ends in either order, both included.
fn in_range(start: u8, end: u8, byte: u8, ignore_case: bool) -> bool {
    // Redis compares signed characters, and sorts the ends before it folds their case.
    let (start, end) = (start.cast_signed(), end.cast_signed());
    let (low, high) = (start.min(end).cast_unsigned(), start.max(end).cast_unsigned());
    let order = |byte: u8| fold(byte, ignore_case).cast_signed();
    (order(low)..=order(high)).contains(&order(byte))
}

#[inline]
fn fold_equal(a: u8, b: u8, ignore_case: bool) -> bool {
    fold(a, ignore_case) == fold(b, ignore_case)
}

#[inline]
fn fold(byte: u8, ignore_case: bool) -> u8 {
    if ignore_case { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn hostile_patterns_stay_fast() {
        // An exponential or cubic search would not end in time.
        let text = "a".repeat(20_000);
        assert!(!glob(&("a*".repeat(1_000) + "b"), &text));
        assert!(!glob(&("*a".repeat(1_000) + "?b"), &text));
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
