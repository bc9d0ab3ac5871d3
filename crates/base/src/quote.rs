//! Splits lines into arguments, and quotes bytes readably.
//!
//! Inline commands, configuration files and MONITOR share one notation: arguments separated by
//! white space, `"..."` with backslash escapes, `'...'` where only `\'` is special. A quote may
//! open in the middle of an argument but must close at its end. [`split_args`] reads the output of
//! [`push_quoted`].
//!
//! As in Redis, where lines are C strings, a line ends at its first zero byte.

/// Splits a line into its arguments.
///
/// `None` if a quote is not closed, or if a byte other than white space follows a closing quote. A
/// blank line has no arguments. Inside double quotes `\n \r \t \b \a` and `\xHH` have their usual
/// meaning, and any other escaped byte means itself.
pub fn split_args(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let end = memchr::memchr(0, line).unwrap_or(line.len());
    let mut rest = line.get(..end)?;
    let mut args = Vec::new();
    loop {
        let blanks = rest.iter().take_while(|byte| is_space(**byte)).count();
        rest = rest.get(blanks..)?;
        if rest.is_empty() {
            return Some(args);
        }
        let mut arg = Vec::new();
        rest = take_arg(rest, &mut arg)?;
        args.push(arg);
    }
}

/// Whether the byte is white space of the C locale, which separates arguments.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Moves one argument from the start of a line to `arg`, and returns the rest of the line.
fn take_arg<'a>(mut rest: &'a [u8], arg: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            // Vertical tab and form feed separate arguments, but do not end an unquoted one.
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some(rest),
            [b'"', quoted @ ..] => return take_double_quoted(quoted, arg),
            [b'\'', quoted @ ..] => return take_single_quoted(quoted, arg),
            [byte, after @ ..] => {
                arg.push(*byte);
                rest = after;
            }
        }
    }
}

fn take_double_quoted<'a>(mut rest: &'a [u8], arg: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return after_quote(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                arg.push(hex_value(*high) << 4 | hex_value(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                arg.push(unescape(*escaped));
                after
            }
            [byte, after @ ..] => {
                arg.push(*byte);
                after
            }
        }
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], arg: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return after_quote(after),
            [b'\\', b'\'', after @ ..] => {
                arg.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                arg.push(*byte);
                after
            }
        }
    }
}

/// A closing quote ends its argument.
fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_space(*byte)).then_some(rest)
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Appends `bytes` in double quotes, and escapes unprintable bytes.
///
/// The result is printable ASCII, and [`split_args`] reads it back as one argument.
pub fn push_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len().saturating_add(2));
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'x', HEX[high], HEX[low]]);
            }
        }
    }
    out.push(b'"');
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_split() {
        let cases: [(&[u8], &[&[u8]]); 17] = [
            (b"", &[]),
            (b" \t\r\n\x0b\x0c ", &[]),
            (b"set key value", &[b"set", b"key", b"value"]),
            (b"  set   key \r\n", &[b"set", b"key"]),
            (b"a\x0bb", &[b"a\x0bb"]),
            (b"\"\"", &[b""]),
            (b"'' \"\"", &[b"", b""]),
            (b"\"a b\" 'c d'", &[b"a b", b"c d"]),
            (b"foo\"bar\" x", &[b"foobar", b"x"]),
            (b"foo'bar'", &[b"foobar"]),
            (b"\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"", &[b"\n\r\t\x08\x07\\\"q"]),
            (b"\"\\x00\\xfF\\x4\\xzz\"", &[b"\x00\xffx4xzz"]),
            (b"'\\n\\' \\x41'", &[b"\\n' \\x41"]),
            (b"a\\nb", &[b"a\\nb"]),
            (b"ab\0cd", &[b"ab"]),
            (b"\"a\"\x0cb", &[b"a", b"b"]),
            (b"save \"\"", &[b"save", b""]),
        ];
        for (line, expected) in cases {
            assert_eq!(split_args(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn broken_quotes_are_refused() {
        let lines: [&[u8]; 8] =
            [b"\"", b"\"abc", b"'abc", b"\"a\"b", b"'a'b", b"a\"b\"c", b"\"abc\\\"", b"\"abc\0\""];
        for line in lines {
            assert_eq!(split_args(line), None, "{line:?}");
        }
    }

    #[test]
    fn quoting_is_printable() {
        let mut out = Vec::new();
        push_quoted(&mut out, b"a b\"\\\n\r\t\x07\x08\x00\x7f\xff'");
        assert_eq!(out, b"\"a b\\\"\\\\\\n\\r\\t\\a\\b\\x00\\x7f\\xff'\"");
    }

    proptest! {
        #[test]
        fn quoted_bytes_read_back(args: Vec<Vec<u8>>) {
            let mut line = Vec::new();
            for arg in &args {
                push_quoted(&mut line, arg);
                line.push(b' ');
            }
            prop_assert!(line.iter().all(|byte| (b' '..=b'~').contains(byte)));
            prop_assert_eq!(split_args(&line), Some(args));
        }

        #[test]
        fn any_line_ends(line: Vec<u8>) {
            split_args(&line);
        }
    }
}
