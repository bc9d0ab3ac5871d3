//! Pages as a reader parses them.

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::json;

use super::*;

/// Calls `look` with the page, which must be well-formed XML.
#[allow(clippy::unwrap_used)]
fn parsed(page: &PageDocument, look: impl FnOnce(&Document<'_>)) {
    let html = page.to_html();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    look(&Document::parse_with_options(&html, options).unwrap());
}

fn elements<'a>(document: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name(name)).collect()
}

fn texts<'a>(document: &'a Document<'a>, name: &str) -> Vec<&'a str> {
    elements(document, name).iter().map(|node| node.text().unwrap_or("")).collect()
}

fn plot() -> Plot {
    let known = |value, low, high| Some(PlotValue { value, interval: Some((low, high)) });
    let series = |name: &str, values| PlotSeries { name: name.into(), values };
    Plot {
        caption: "Requests <each> second".into(),
        x: "clients".into(),
        y: "requests/s".into(),
        labels: ["1", "10", "100"].map(str::to_owned).into(),
        series: vec![
            series("a", vec![known(10.0, 9.0, 11.5), None, Some(30.25.into())]),
            series(
                "b & c",
                vec![Some(5.0.into()), Some(f64::NAN.into()), known(7.0, 6.0, f64::INFINITY)],
            ),
        ],
    }
}

#[test]
fn marks_carry_the_numbers() {
    for (page, mark) in [
        (PageDocument::new("p").lines_plot(plot()), "circle"),
        (PageDocument::new("p").bars_plot(plot()), "rect"),
    ] {
        parsed(&page, |document| {
            let of = |node: &Node<'_, '_>| {
                let read = |name| node.attribute(name).unwrap_or("").to_owned();
                (read("data-series"), read("data-label"), read("data-value"))
            };
            let marks: Vec<_> = elements(document, mark).iter().map(of).collect();
            let expected = [
                ("a", "1", "10"),
                ("a", "100", "30.25"),
                ("b & c", "1", "5"),
                ("b & c", "100", "7"),
            ];
            let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
            assert_eq!(marks, expected);
            // Whiskers where both ends are known; no line over a gap.
            let lines = elements(document, "line");
            assert_eq!(lines.iter().filter(|line| line.attribute("class").is_none()).count(), 1);
            assert_eq!(elements(document, "polyline").len(), 0);
        });
    }
}

#[test]
fn higher_values_are_drawn_higher_up() {
    parsed(&PageDocument::new("p").lines_plot(plot()), |document| {
        let heights: Vec<f64> = elements(document, "circle")
            .iter()
            .filter_map(|circle| circle.attribute("cy")?.parse().ok())
            .collect();
        // The axis goes from 0 at 274 up to 50 at 12.
        let expected = [10.0, 30.25, 5.0, 7.0].map(|value| 274.0 - value / 50.0 * 262.0);
        assert_eq!(heights.len(), expected.len());
        for (got, expected) in heights.iter().zip(expected) {
            assert!((got - expected).abs() < 0.1, "{heights:?} and not {expected:?}");
        }
    });
}

#[test]
fn text_stays_text() {
    let evil = "</script><b a='\"'>&amp;\u{1b}]]>";
    let shown = evil.replace('\u{1b}', "\u{fffd}");
    let page = PageDocument::new(evil)
        .heading(evil)
        .text(evil)
        .warning(evil)
        .table(PageTable::new([evil, "x"]).row([evil]).row(["1", "2", "too many"]))
        .lines_plot(Plot { caption: evil.into(), x: evil.into(), ..plot() })
        .data(json!({ "name": evil }));
    parsed(&page, |document| {
        assert!(elements(document, "b").is_empty());
        for name in ["title", "h1", "h2", "figcaption"] {
            assert_eq!(texts(document, name).first(), Some(&shown.as_str()), "{name}");
        }
        assert_eq!(texts(document, "p"), [&shown, &shown]);
        assert_eq!(texts(document, "th"), [&shown, "x"]);
        assert_eq!(texts(document, "td"), [&shown, "", "1", "2"]);
        let data: Option<Json> = serde_json::from_str(texts(document, "script")[0]).ok();
        assert_eq!(data, Some(json!({ "name": evil })));
    });
}

#[test]
fn nothing_is_fetched_from_outside() {
    let html = PageDocument::new("p").lines_plot(plot()).bars_plot(plot()).text("x").to_html();
    for reference in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(reference), "{reference}");
    }
}

#[test]
fn text_stays_text_in_markdown() {
    let evil = "# <b>\n[a](b) `c` *d*|\u{1b}";
    let page =
        PageDocument::new(evil).heading(evil).text(evil).table(PageTable::new([evil]).row(["1"]));
    let shown = "\\# &lt;b> \\[a](b) \\`c\\` \\*d\\*|.";
    let cell = shown.replace('|', "\\|");
    let lines = [format!("# {shown}"), format!("## {shown}"), shown.to_owned()];
    let markdown = page.to_markdown();
    assert!(markdown.starts_with(&format!("{}\n\n| {cell} |\n", lines.join("\n\n"))), "{markdown}");
}

#[test]
fn markdown_has_headings_and_tables() {
    let page = PageDocument::new("Title")
        .heading("Part")
        .text("Words.")
        .warning("Noise.")
        .table(PageTable::new(["a|b", "n"]).row(["x", "1"]))
        .bars_plot(plot());
    let expected = "# Title\n\n## Part\n\nWords.\n\n> **Note:** Noise.\n\n\
                    | a\\|b |   n |\n| ---- | --: |\n| x    |   1 |\n";
    assert_eq!(page.to_markdown(), expected);
}
