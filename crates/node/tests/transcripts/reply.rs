//! Replies as text: one line for each, as transcripts have them.

use base::quote::push_quoted;

/// The replies in `bytes`, one after another, in the one-line form.
pub fn render(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut shown = Vec::new();
    while !rest.is_empty() {
        shown.push(value(&mut rest));
    }
    shown.join(" ")
}

fn line<'a>(rest: &mut &'a [u8]) -> &'a str {
    let end = rest.windows(2).position(|w| w == b"\r\n").expect("a line ends");
    let text = std::str::from_utf8(&rest[..end]).expect("a line is text");
    *rest = &rest[end + 2..];
    text
}

fn value(rest: &mut &[u8]) -> String {
    let head = line(rest);
    let (kind, text) = head.split_at(1);
    let count = || text.parse::<i64>().expect("a length");
    match kind {
        "+" => text.to_owned(),
        "-" => head.to_owned(),
        ":" => text.to_owned(),
        "," | "#" => head.to_owned(),
        "(" => format!("({text})"),
        "_" => "nil".to_owned(),
        "$" | "=" if count() < 0 => "nil".to_owned(),
        "$" | "=" => {
            let len = count() as usize;
            let (bytes, behind) = rest.split_at(len);
            *rest = behind.strip_prefix(b"\r\n").expect("a bulk ends");
            let mut shown = Vec::new();
            push_quoted(&mut shown, bytes);
            let shown = String::from_utf8(shown).expect("quoted text is ASCII");
            if kind == "=" { format!("={}", &shown[1..shown.len() - 1]) } else { shown }
        }
        "*" if count() < 0 => "nil-array".to_owned(),
        "*" | "~" | ">" => {
            let items: Vec<String> = (0..count()).map(|_| value(rest)).collect();
            format!("{}[{}]", if kind == "*" { "" } else { kind }, items.join(", "))
        }
        "%" => {
            let pairs: Vec<String> =
                (0..count()).map(|_| format!("{}: {}", value(rest), value(rest))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => panic!("a reply begins with {other:?}"),
    }
}
