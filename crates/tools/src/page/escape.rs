//! Text inside HTML.

/// Text that is safe inside an element and inside a quoted attribute. Characters that are not
/// allowed in a document are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}
