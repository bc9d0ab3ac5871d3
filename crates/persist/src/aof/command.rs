//! Parses one command of a file.
//!
//! ```text
//! *2\r\n $6\r\n SELECT\r\n $1\r\n 0\r\n           without the spaces
//! ```
//!
//! Parsing is a pure function of bytes: they are a complete command, more of them are needed, or
//! they are wrong at some position. Lengths have no sign and no leading zeros, as servers write
//! them.

use base::number;
use resp::args::Span;

/// The result of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParsedCommand {
    /// A complete command of so many bytes.
    Whole(usize),
    /// The beginning of a command that has at least so many bytes.
    More(usize),
    /// No command.
    Wrong(Wrong),
}

/// The position of the first wrong byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// How many bytes before it are right.
    pub(super) at: usize,
    /// The name of the expected part.
    pub(super) expected: &'static str,
}

/// The longest command, which is what a span can address.
pub(super) const COMMAND_BYTES_MAX: usize = u32::MAX as usize - 1;
/// The longest line with a length.
const LINE_BYTES_MAX: usize = 1 + number::INTEGER_BYTES_MAX + 2;
/// The shortest argument: `$0\r\n\r\n`.
const ARGUMENT_BYTES_MIN: usize = 6;

/// Parses the command that begins with the first byte, and finds its arguments. Takes memory only
/// for arguments whose bytes are there.
pub(super) fn parse(bytes: &[u8], spans: &mut Vec<Span>) -> ParsedCommand {
    spans.clear();
    match parse_arguments(bytes, spans) {
        Ok(len) => ParsedCommand::Whole(len),
        Err(other) => other,
    }
}

fn parse_arguments(bytes: &[u8], spans: &mut Vec<Span>) -> Result<usize, ParsedCommand> {
    let (count, mut at) = length(bytes, 0, b'*', "a command: '*' and the number of its arguments")?;
    if count == 0 {
        return Err(wrong(1, "the number of arguments"));
    }
    for index in 0..count {
        let (len, start) = length(bytes, at, b'$', "an argument: '$' and its length")?;
        let end = start.checked_add(len).filter(|end| *end < COMMAND_BYTES_MAX - 2);
        let end = end.ok_or_else(|| wrong(at, "a length below 4 GB"))?;
        let Some(after) = bytes.get(end..) else {
            let later = (count - index - 1).saturating_mul(ARGUMENT_BYTES_MIN);
            return Err(ParsedCommand::More((end + 2).saturating_add(later)));
        };
        expect(after, end, b"\r\n", "the end of an argument")?;
        spans.push(Span::new(start, len));
        at = end + 2;
    }
    Ok(at)
}

/// Parses a line with a length after a mark. Returns the length and the end of the line.
fn length(
    bytes: &[u8],
    at: usize,
    mark: u8,
    expected: &'static str,
) -> Result<(usize, usize), ParsedCommand> {
    let rest = bytes.get(at..).unwrap_or_default();
    expect(rest, at, &[mark], expected)?;
    let digits = rest[1..].iter().take(LINE_BYTES_MAX);
    let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
    let end = 1 + digits;
    let value = number::parse_u64(&rest[1..end]);
    if end == rest.len() && (digits == 0 || value.is_some()) {
        return Err(ParsedCommand::More(at + end + 2));
    }
    let value = value.and_then(|value| usize::try_from(value).ok());
    let value = value.ok_or_else(|| wrong(at + 1, "a number"))?;
    expect(&rest[end..], at + end, b"\r\n", "the end of a line")?;
    Ok((value, at + end + 2))
}

/// Checks that bytes begin with the wanted ones, as far as they go.
fn expect(
    rest: &[u8],
    at: usize,
    wanted: &[u8],
    expected: &'static str,
) -> Result<(), ParsedCommand> {
    let same = rest.iter().zip(wanted).take_while(|(byte, wanted)| byte == wanted).count();
    if same == wanted.len() {
        Ok(())
    } else if same == rest.len() {
        Err(ParsedCommand::More(at + wanted.len()))
    } else {
        Err(wrong(at + same, expected))
    }
}

fn wrong(at: usize, expected: &'static str) -> ParsedCommand {
    ParsedCommand::Wrong(Wrong { at, expected })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn check(bytes: &str, wanted: ParsedCommand) {
        assert_eq!(parse(bytes.as_bytes(), &mut Vec::new()), wanted, "{bytes:?}");
    }

    #[test]
    fn a_cut_command_needs_more_bytes() {
        let command = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\n123456789012\r\n";
        check(command, ParsedCommand::Whole(command.len()));
        check(&format!("{command}*1\r\n"), ParsedCommand::Whole(command.len()));
        let mut spans = Vec::new();
        for len in 0..command.len() {
            match parse(&command.as_bytes()[..len], &mut spans) {
                ParsedCommand::More(more) => assert!(more > len && more <= command.len(), "{len}"),
                other => panic!("{len}: {other:?}"),
            }
        }
        check("*1\r\n$99999999\r\nabc", ParsedCommand::More(15 + 99_999_999 + 2));
        // An announced count takes no memory.
        parse(b"*2147483647\r\n$1\r\na\r\n", &mut spans);
        assert!(spans.capacity() < 64);
    }

    #[test]
    fn a_wrong_byte_is_found_where_it_is() {
        for (bytes, at) in [
            ("+1\r\n", 0),
            ("*0\r\n", 1),
            ("*-1\r\n", 1),
            ("*01\r\n", 1),
            ("*1\n", 2),
            ("*1\r1", 3),
            ("*x\r\n", 1),
            ("*99999999999999999999\r\n", 1),
            ("*1\r\n+OK\r\n", 4),
            ("*1\r\n$-1\r\n", 5),
            ("*1\r\n$4294967290\r\n", 4),
            ("*1\r\n$1\r\nab\r\n", 9),
            ("*1\r\n$1\r\na\rb", 10),
            ("\0\0\0", 0),
            ("*1\r\n\0", 4),
        ] {
            match parse(bytes.as_bytes(), &mut Vec::new()) {
                ParsedCommand::Wrong(wrong) => assert_eq!(wrong.at, at, "{bytes:?}"),
                other => panic!("{bytes:?}: {other:?}"),
            }
        }
    }
}
