//! Zero bytes in sources. Luau ends a source at the first one, but Lua 5.1 continues: zero bytes
//! are allowed in strings and comments, and are an error elsewhere.

use std::borrow::Cow;

use memchr::memchr;

/// An equivalent source without zero bytes, with the same line numbers.
///
/// # Errors
///
/// The line of a zero byte outside of strings and comments.
pub fn without_zero_bytes(source: &[u8]) -> Result<Cow<'_, [u8]>, usize> {
    if memchr(0, source).is_none() {
        return Ok(Cow::Borrowed(source));
    }
    let mut rewrite = ZeroByteRewrite { rest: source, out: Vec::with_capacity(source.len() + 16) };
    while let Some((first, rest)) = rewrite.rest.split_first() {
        match first {
            b'"' | b'\'' => rewrite.quoted(*first),
            b'-' if rest.starts_with(b"-") => rewrite.comment(),
            b'[' if long_bracket(rewrite.rest).is_some() => rewrite.long_string(),
            // Trailing zero bytes are ignored.
            0 if rest.iter().all(|byte| *byte == 0) && !rewrite.out.is_empty() => break,
            0 => return Err(1 + rewrite.out.iter().filter(|byte| **byte == b'\n').count()),
            _ => rewrite.copy(1),
        }
    }
    Ok(Cow::Owned(rewrite.out))
}

/// The length of the opening bracket `[==[`, if the text begins with one.
fn long_bracket(text: &[u8]) -> Option<usize> {
    let behind = text.strip_prefix(b"[")?;
    let level = behind.iter().take_while(|byte| **byte == b'=').count();
    (behind.get(level) == Some(&b'[')).then_some(level + 2)
}

struct ZeroByteRewrite<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
}

impl<'a> ZeroByteRewrite<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn copy(&mut self, len: usize) {
        let taken = self.take(len);
        self.out.extend_from_slice(taken);
    }

    /// The text between the long brackets that begin here, or the rest if they are not closed.
    fn take_bracketed(&mut self, opening: usize) -> &'a [u8] {
        let mut closing = vec![b'='; opening];
        (closing[0], closing[opening - 1]) = (b']', b']');
        self.take(opening);
        let end = memchr::memmem::find(self.rest, &closing);
        let text = self.take(end.unwrap_or(self.rest.len()));
        self.take(closing.len());
        text
    }

    /// Skips a comment but keeps its line ends.
    fn comment(&mut self) {
        self.take(2);
        let text = match long_bracket(self.rest) {
            Some(opening) => self.take_bracketed(opening),
            None => self.take(memchr(b'\n', self.rest).unwrap_or(self.rest.len())),
        };
        self.out.push(b' ');
        self.out.extend(text.iter().filter(|byte| **byte == b'\n'));
    }

    /// A quoted string, up to the end of its line if it is not closed there.
    fn quoted(&mut self, quote: u8) {
        self.copy(1);
        while let Some((first, rest)) = self.rest.split_first() {
            match (first, rest.first()) {
                (b'\\', Some(0)) => {
                    self.take(2);
                    self.out.extend_from_slice(b"\\000");
                }
                (b'\\', _) => self.copy(2),
                (0, _) => {
                    self.take(1);
                    self.out.extend_from_slice(b"\\000");
                }
                _ => {
                    self.copy(1);
                    if *first == quote || *first == b'\n' {
                        return;
                    }
                }
            }
        }
    }

    /// Rewrites a string in long brackets as a quoted one, which has escapes.
    fn long_string(&mut self) {
        let Some(opening) = long_bracket(self.rest) else { return };
        let text = self.take_bracketed(opening);
        let inner = text.strip_prefix(b"\r\n").or_else(|| text.strip_prefix(b"\n"));
        if inner.is_some() {
            self.out.push(b'\n');
        }
        self.out.push(b'"');
        let mut rest = inner.unwrap_or(text);
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                0 => self.out.extend_from_slice(b"\\000"),
                b'\r' if behind.starts_with(b"\n") => {}
                b'\r' | b'\n' => self.out.extend_from_slice(b"\\\n"),
                b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', *first]),
                other => self.out.push(*other),
            }
        }
        self.out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &[u8], expected: Result<&[u8], usize>) {
        let found = without_zero_bytes(source);
        assert_eq!(found.as_deref(), expected.as_ref().copied(), "{}", source.escape_ascii());
    }

    #[test]
    fn zero_bytes_in_strings_and_comments_stay() {
        check(b"return 1", Ok(b"return 1"));
        check(b"return 'a\x001' .. \"\\\x00\"", Ok(b"return 'a\\0001' .. \"\\000\""));
        check(b"return '\\'\x00'", Ok(b"return '\\'\\000'"));
        check(b"-- \x00 x\nreturn 5", Ok(b" \nreturn 5"));
        check(b"--[=[ \x00 ]]\n ]=] return 6", Ok(b" \n return 6"));
        check(b"return [[\na\x00\"\\\r\nc]]", Ok(b"return \n\"a\\000\\\"\\\\\\\nc\""));
        check(b"return [==[a]]\x00]==]", Ok(b"return \"a]]\\000\""));
        check(b"t[1] = '\x00'", Ok(b"t[1] = '\\000'"));
        check(b"return 1\x00\x00", Ok(b"return 1"));
    }

    #[test]
    fn zero_bytes_elsewhere_are_errors() {
        check(b"\x00", Err(1));
        check(b"x()\n\x00y()", Err(2));
        check(b"--[[\n\n]]return 1\x00 garbage(", Err(3));
        check(b"'unfinished\n\x00x", Err(2));
    }

    #[test]
    fn sources_that_end_anywhere_are_read() {
        let whole = b"a='\\\x00' --[==[\x00]==] [=[\r\n\x00]=] \"\x00";
        for end in 0..whole.len() {
            let _ = without_zero_bytes(&whole[..end]);
        }
    }
}
