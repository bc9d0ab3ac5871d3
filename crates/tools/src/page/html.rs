//! A page as HTML: the frame, the style, and all parts except plots.

use super::escape::escape;
use super::{PageBlock, PageDocument, PageTable, plot};

/// Both colour schemes. The colours of series are those of Okabe and Ito, which people with any
/// vision can distinguish.
const STYLE: &str = "
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --faint: #6a737d;
  --rule: #d8dee4; --warn: #fff4d6; --s0: #0072b2; --s1: #d55e00; --s2: #009e73; --s3: #cc79a7;
  --s4: #8a6d00; --s5: #56b4e9; --s6: #7f7f7f; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171a; --text: #e3e6e9; --faint: #99a2ab; --rule: #363c43; --warn: #40351a;
    --s0: #5aaee0; --s1: #f08a4b; --s2: #3fc79d; --s3: #e3a3c6; --s4: #d9b73c; --s5: #9ad4f5;
    --s6: #a8a8a8; } }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--rule); text-align: right;
  vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.warning { background: var(--warn); padding: .5rem .8rem; border-radius: .3rem; }
figure { margin: 1.2rem 0; }
svg { width: 100%; height: auto; max-width: 45rem; display: block; }
svg text { fill: var(--faint); font-size: 12px; }
svg .grid { stroke: var(--rule); }
svg .line { fill: none; stroke-width: 2; }
figcaption { color: var(--faint); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
";

/// The whole file.
pub(super) fn page(page: &PageDocument) -> String {
    let title = escape(&page.title);
    let body: String = page.blocks.iter().map(block).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

fn block(block: &PageBlock) -> String {
    match block {
        PageBlock::Heading(text) => format!("<h2>{}</h2>\n", escape(text)),
        PageBlock::Text(text) => format!("<p>{}</p>\n", escape(text)),
        PageBlock::Warning(text) => format!("<p class=\"warning\">{}</p>\n", escape(text)),
        PageBlock::Table(table) => html_table(table),
        PageBlock::Lines(plot) => plot::figure(plot, plot::Marks::Lines),
        PageBlock::Bars(plot) => plot::figure(plot, plot::Marks::Bars),
        PageBlock::Data(data) => {
            // JSON strings may have these letters as numbers, so that no text ends the element.
            let safe = |json: String, (letter, code): (char, &str)| json.replace(letter, code);
            let codes = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026")];
            let json = codes.into_iter().fold(data.to_string(), safe);
            format!("<script type=\"application/json\" id=\"data\">{json}</script>\n")
        }
    }
}

fn html_table(table: &PageTable) -> String {
    let row = |cells: &Vec<String>, tag: &str| {
        let empty = String::new();
        let cells = (0..table.head.len()).map(|column| cells.get(column).unwrap_or(&empty));
        let cells: String = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<div class=\"scroll\"><table>\n<thead>{}</thead>\n<tbody>\n{body}</tbody></table></div>\n",
        row(&table.head, "th")
    )
}
