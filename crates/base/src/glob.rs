//! Glob patterns as Redis has them in KEYS, SCAN, PSUBSCRIBE, CONFIG GET and ACL rules.
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any bytes, also none |
//! | `?` | one byte |
//! | `[abc]`, `[a-z]`, `[z-a]` | one byte of the class; a range may be written either way |
//! | `[^abc]` | one byte outside the class |
//! | `\x` | the byte `x`, whatever it means otherwise; inside a class too |
//!
//! Patterns come from clients, so nothing here recurses and the worst case is the product of the
//! two lengths: on a mismatch only the *last* `*` is retried one byte further on, because every
//! other element takes exactly one byte and an earlier star could only reach states that the last
//! one reaches as well.
//!
//! Oddities of Redis that are kept, since patterns in the wild may rely on them: a text of no
//! bytes matches only an empty pattern, not even `*` (callers that list everything handle a lone
//! `*` before they ask); a class that is never closed ends with the pattern; `]` is an ordinary
//! end of a range (`[a-]`); a trailing backslash stands for itself; bytes from 0x80 up order
//! below the ASCII ones in ranges; an escaped byte in a class keeps its case; a pattern that needs
//! more than a thousand stars, beside one at its end, matches nothing.

/// Runs of stars in front of something else that a match may take: as many as Redis follows.
const STARS_MAX: usize = 1000;

/// Whether the whole `text` matches `pattern`. `ignore_case` folds ASCII letters only.
///
/// Takes time proportional to the product of the lengths at worst, and no memory.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut rest, mut at) = (pattern, 0);
    // Where to resume after a mismatch: the pattern after the last star, and the first byte of
    // the text that the star has not swallowed yet.
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
            // The star could only swallow more, so retrying cannot help.
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

/// The first place from `from` on where what follows a star can begin.
#[inline]
fn candidate(rest: &[u8], text: &[u8], from: usize, ignore_case: bool) -> Option<usize> {
    let tail = text.get(from..)?;
    match rest.first()? {
        b'?' | b'[' | b'\\' => Some(from),
        _ if ignore_case => Some(from),
        literal => memchr::memchr(*literal, tail).map(|skipped| from + skipped),
    }
}

/// Matches one byte against the first element of `pattern`, which is no star; on success returns
/// the pattern after that element.
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

/// Whether the class that begins after `[` or `[^` holds `byte`, and the pattern after it.
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

/// Whether `byte` lies between two ends given in either order, both included.
fn in_range(start: u8, end: u8, byte: u8, ignore_case: bool) -> bool {
    // Redis compares signed characters, and orders the ends before it folds their case.
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
        // Exponential or cubic search would not end within the life of the test.
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

    /// The textbook definition: a star takes nothing, or one byte and tries again.
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
