//! Texts for people: texts of servers without anything that drives a terminal or hides what
//! follows, and long numbers.

/// The text with a dot for each invisible character: control characters other than line ends and
/// tabs, and characters that change the direction of writing or have no width.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if is_shown(letter) { letter } else { '.' }).collect()
}

/// The same in one line.
pub(crate) fn printable_line(text: &str) -> String {
    let in_line = |letter| if matches!(letter, '\n' | '\t') { ' ' } else { letter };
    printable(text).chars().map(in_line).collect()
}

/// The same for bytes, which need not be UTF-8, and whose lines may end with `\r\n`.
pub(crate) fn printable_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(bytes.len());
    for (nth, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if nth > 0 {
            shown.push(b'\n');
        }
        let (line, end) = match line {
            [line @ .., b'\r'] => (line, &b"\r"[..]),
            line => (line, &b""[..]),
        };
        for chunk in line.utf8_chunks() {
            shown.extend_from_slice(printable(chunk.valid()).as_bytes());
            shown.extend(chunk.invalid().iter().map(|_| b'.'));
        }
        shown.extend_from_slice(end);
    }
    shown
}

/// A number with a comma between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn is_shown(letter: char) -> bool {
    match letter {
        '\n' | '\t' => true,
        // Spaces without width, marks and overrides of direction, the byte order mark.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{61c}' | '\u{feff}' => false,
        letter => !letter.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_dots() {
        let hostile = "a\u{1b}]0;t\u{7}\u{9b}2J\u{202e}b\r\u{7f}\u{e9}\n\u{6f22}\t";
        assert_eq!(printable(hostile), "a.]0;t..2J.b..\u{e9}\n\u{6f22}\t");
        assert_eq!(printable_line(hostile), "a.]0;t..2J.b..\u{e9} \u{6f22} ");
        let bytes = printable_bytes(b"a:1\r\n\x1b\x9b\xc2\x9b\xc3\xa9\rb\r\n\r");
        assert_eq!(bytes, b"a:1\r\n...\xc3\xa9.b\r\n\r");
    }

    #[test]
    fn numbers_are_grouped_by_three() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")];
        cases.iter().for_each(|&(number, text)| assert_eq!(grouped(number), text));
    }
}
