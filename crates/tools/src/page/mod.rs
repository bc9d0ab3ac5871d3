//! A document of headings, text, tables and plots, as one self-contained HTML file or as Markdown.
//!
//! The HTML loads nothing: plots are SVG inside it, colours follow the light or dark scheme of the
//! reader, and there is no script. All text is escaped. The numbers of a plot are in its marks
//! (`data-value`), and the data of the whole document can be added as JSON. Markdown has no plots,
//! so each plot should come with a table.

mod escape;
mod html;
mod markdown;
mod plot;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub(crate) use self::markdown::{aligned, cell, list, markdown};

pub use self::plot::{Plot, PlotSeries, PlotValue};

/// A table; the cells after the first column are numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageTable {
    pub head: Vec<String>,
    /// The cells of each row; missing ones at the end are empty.
    pub rows: Vec<Vec<String>>,
}

impl PageTable {
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> PageTable {
        PageTable { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
    pub fn row(mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> PageTable {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }
}
#[derive(Debug, Clone, PartialEq)]
enum PageBlock {
    Heading(String),
    Text(String),
    Warning(String),
    Table(PageTable),
    Lines(Plot),
    Bars(Plot),
    Data(Json),
}

/// A document under construction.
#[derive(Debug, Clone, PartialEq)]
pub struct PageDocument {
    title: String,
    blocks: Vec<PageBlock>,
}

impl PageDocument {
    /// A page with nothing below its title.
    pub fn new(title: impl Into<String>) -> PageDocument {
        PageDocument { title: title.into(), blocks: Vec::new() }
    }
    pub fn heading(self, text: impl Into<String>) -> PageDocument {
        self.with(PageBlock::Heading(text.into()))
    }
    pub fn text(self, text: impl Into<String>) -> PageDocument {
        self.with(PageBlock::Text(text.into()))
    }

    /// Adds a paragraph that stands out.
    pub fn warning(self, text: impl Into<String>) -> PageDocument {
        self.with(PageBlock::Warning(text.into()))
    }
    pub fn table(self, table: PageTable) -> PageDocument {
        self.with(PageBlock::Table(table))
    }

    /// Adds a plot with a line for each series.
    pub fn lines_plot(self, plot: Plot) -> PageDocument {
        self.with(PageBlock::Lines(plot))
    }

    /// Adds a plot with a group of bars for each label.
    pub fn bars_plot(self, plot: Plot) -> PageDocument {
        self.with(PageBlock::Bars(plot))
    }

    /// Adds data for programs, in a `script` element of type `application/json`.
    pub fn data(self, data: Json) -> PageDocument {
        self.with(PageBlock::Data(data))
    }

    /// The file for a browser.
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The file for a terminal or a README.
    pub fn to_markdown(&self) -> String {
        let mut parts = vec![format!("# {}", markdown(&self.title))];
        parts.extend(self.blocks.iter().filter_map(|block| match block {
            PageBlock::Heading(text) => Some(format!("## {}", markdown(text))),
            PageBlock::Text(text) => Some(markdown(text)),
            PageBlock::Warning(text) => Some(format!("> **Note:** {}", markdown(text))),
            PageBlock::Table(table) => Some(markdown_table(table)),
            PageBlock::Lines(_) | PageBlock::Bars(_) | PageBlock::Data(_) => None,
        }));
        parts.join("\n\n") + "\n"
    }

    fn with(mut self, block: PageBlock) -> PageDocument {
        self.blocks.push(block);
        self
    }
}

fn markdown_table(table: &PageTable) -> String {
    let line = |cells: &Vec<String>| {
        let mut cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        cells.resize(table.head.len(), String::new());
        cells
    };
    let lines = std::iter::once(&table.head).chain(&table.rows).map(line).collect();
    aligned(lines).trim_end().to_owned()
}
