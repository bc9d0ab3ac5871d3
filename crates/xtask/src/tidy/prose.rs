//! The sentences of a file: comments of Rust, and Markdown.
//!
//! Code is left out: strings, fences, and the letters of `inline code`. Each paragraph, item of a
//! list, heading and cell of a table is a block, and starts a sentence.

use super::tree::File;

/// A paragraph, an item of a list, a heading, or a cell of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In their order.
    pub words: Vec<Word>,
    /// Whether it is made of sentences: a heading and a cell need not be.
    pub is_text: bool,
}

/// A word with the signs after it.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// Letters, digits, and signs between them, as written.
    pub text: String,
    /// The signs between it and the next blank.
    pub after: String,
    /// From 1.
    pub line: usize,
    /// Whether a sentence starts with it.
    pub is_start: bool,
}

/// Replaces each letter of inline code.
const CODE: char = '\u{1}';

/// Every block of the file; none if it is neither Rust nor Markdown.
pub fn blocks(file: &File) -> Vec<Block> {
    if file.path.ends_with(".rs") {
        return comments(&file.text).iter().flat_map(|lines| markdown(lines)).collect();
    }
    if file.path.ends_with(".md") {
        let lines: Vec<_> = file.lines().map(|(line, text)| (line, text.to_owned())).collect();
        return markdown(&lines);
    }
    Vec::new()
}

type Lines = Vec<(usize, String)>;

/// Runs of comments on lines that follow each other, without their markers. One after code is a run
/// of its own.
fn comments(text: &str) -> Vec<Lines> {
    let mut runs: Vec<Lines> = Vec::new();
    let mut rest = text;
    let mut line = 1;
    // The line of the last comment without code before it, and whether this line has code so far.
    let mut last_whole = 0;
    let mut has_code = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => {
                let comment = rest.lines().next().unwrap_or_default();
                let words = comment.trim_start_matches(['/', '!']);
                let words = words.strip_prefix(' ').unwrap_or(words).to_owned();
                match runs.last_mut() {
                    Some(run) if last_whole + 1 == line && !has_code => run.push((line, words)),
                    _ => runs.push(vec![(line, words)]),
                }
                last_whole = if has_code { 0 } else { line };
                comment.len()
            }
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => quoted(rest),
            'r' => raw(rest).unwrap_or(1),
            '\'' => character(rest),
            c if c.is_alphanumeric() || c == '_' => word(rest),
            c => c.len_utf8(),
        };
        let (passed, after) = rest.split_at(length);
        line += passed.matches('\n').count();
        has_code = first != '\n' && (has_code || !first.is_whitespace());
        rest = after;
    }
    runs
}

/// The length of a string that starts here.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string, if one starts here.
fn raw(text: &str) -> Option<usize> {
    let inner = text[1..].trim_start_matches('#');
    let hashes = text.len() - 1 - inner.len();
    let end = format!("\"{}", "#".repeat(hashes));
    let inner = inner.strip_prefix('"')?;
    Some(text.len() - inner.len() + inner.find(&end)? + end.len())
}

/// The length of a character, or of the mark of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => text[at + 1..].find('\'').map_or(1, |n| at + n + 2),
        (_, Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The length of a name or number, so that its letters open no raw string.
fn word(text: &str) -> usize {
    let length = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    // `br#"..` is a raw string after the letter `b`.
    if text.starts_with("br") && raw(&text[1..]).is_some() { 1 } else { length }
}

/// Takes lines of Markdown apart.
fn markdown(lines: &[(usize, String)]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Lines = Vec::new();
    let mut in_fence = false;
    for (number, line) in lines {
        let text = line.trim();
        let is_fence = text.starts_with("```");
        let is_heading = text.starts_with('#');
        let is_row = text.starts_with('|');
        if is_fence || in_fence || text.is_empty() || is_heading || is_row || is_item(text) {
            blocks.extend(block(&std::mem::take(&mut open), true));
        }
        in_fence ^= is_fence;
        if in_fence || is_fence {
            continue;
        }
        if is_heading {
            blocks.extend(block(&[(*number, text.to_owned())], false));
        } else if is_row {
            let cells = text.split('|').map(|cell| block(&[(*number, cell.to_owned())], false));
            blocks.extend(cells.flatten());
        } else {
            open.push((*number, text.to_owned()));
        }
    }
    blocks.extend(block(&open, true));
    blocks
}

/// Whether an item of a list starts with the line.
fn is_item(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.starts_with("- ") || text.starts_with("* ") || number.starts_with(". ")
}

fn block(lines: &[(usize, String)], is_text: bool) -> Option<Block> {
    let mut block = Block { words: Vec::new(), is_text };
    let mut in_code = false;
    let mut is_start = true;
    for (line, text) in lines {
        let hidden: String = text
            .chars()
            .map(|c| {
                in_code ^= c == '`';
                if in_code && c != ' ' || c == '`' { CODE } else { c }
            })
            .collect();
        for part in hidden.split_whitespace() {
            let is_inner = |c: char| c.is_alphanumeric() || c == CODE;
            let bare = part.trim_start_matches(|c| !is_inner(c));
            let length = bare.find(|c| !is_inner(c) && c != '\'' && c != '-').unwrap_or(bare.len());
            let (text, after) = bare.split_at(length);
            if text.is_empty() {
                continue;
            }
            let (text, after) = (text.to_owned(), after.to_owned());
            let ends = after.contains(['.', '!', '?', ':']);
            block.words.push(Word { text, after, line: *line, is_start });
            is_start = ends;
        }
    }
    (!block.words.is_empty()).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let words = |block: &Block| {
            let word = |word: &Word| {
                let mark = if word.is_start { "^" } else { "" };
                format!("{mark}{}{}", word.text.replace(CODE, "`"), word.after)
            };
            let line = block.words.first().map_or(0, |word| word.line);
            format!("{line} {}", block.words.iter().map(word).collect::<Vec<_>>().join(" "))
        };
        comments(text).iter().flat_map(|lines| markdown(lines)).map(|b| words(&b)).collect()
    }

    #[test]
    fn comments_are_read_and_code_is_not() {
        let read = read(
            "//! A file.\n//! Of `some\n//! code`, it is.\n\nlet a = \"// no\"; // One.\n\
             let b = r#\"// \"no\" //\"#; let c = '\"'; let d = b'\\''; // Two\nfn f<'a>() {} // 3",
        );
        assert_eq!(read, ["1 ^A file. ^Of ````` `````, it is.", "5 ^One.", "6 ^Two", "7 ^3"]);
    }

    #[test]
    fn paragraphs_items_cells_and_headings_are_blocks() {
        let read = read(
            "// # Head\n// One\n// two.\n//\n// - (item)\n//   of two\n// 1. three\n// ```\n// no\n\
             // ```\n// | a | b |\n",
        );
        let expected =
            ["1 ^Head", "2 ^One two.", "5 ^item) of two", "7 ^1. ^three", "11 ^a", "11 ^b"];
        assert_eq!(read, expected);
    }
}
