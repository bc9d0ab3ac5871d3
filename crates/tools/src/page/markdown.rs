//! Markdown that a terminal shows as well as a README does.

use crate::printable::printable_line;

/// A text in one line, in which nothing is markup.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in printable_line(text).chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '[' => out.extend(['\\', letter]),
            '#' | '>' if out.is_empty() => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

/// The same in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    markdown(text).replace('|', "\\|")
}

/// A list with an item for each note, after an empty line; nothing without notes.
pub(crate) fn list(notes: impl IntoIterator<Item = String>) -> String {
    let lines = notes.into_iter().map(|note| format!("- {}\n", markdown(&note)));
    let list: String = lines.collect();
    if list.is_empty() { list } else { format!("\n{list}") }
}

/// A table with its columns padded to their widest cells, which are escaped (see [`cell`]). The
/// first line is the heading.
pub(crate) fn aligned(mut lines: Vec<Vec<String>>) -> String {
    let columns = lines[0].len();
    let widths: Vec<usize> = (0..columns)
        .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0).max(3))
        .collect();
    let rule = widths.iter().enumerate().map(|(column, width)| match column {
        0 => "-".repeat(*width),
        _ => format!("{}:", "-".repeat(width - 1)),
    });
    lines.insert(1, rule.collect());
    let padded = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    });
    padded.collect()
}
