//! A document of headings, text, tables and plots, as one self-contained HTML file or as Markdown.
//!
//! The HTML needs nothing from outside: plots are SVG inside it, colours follow the light or dark
//! scheme of the reader, and there is no script. All text is escaped. The numbers of a plot are in
//! its marks (`data-value`), and what the whole document was made of can be added as JSON. Markdown
//! has no plots: each of them should stand beside a table.

mod escape;
mod html;
mod markdown;
mod plot;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub(crate) use self::markdown::{aligned, cell, list, markdown};

pub use self::plot::{Plot, Series, Value};

/// A table; numbers are right of the first column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The heading of each column.
    pub head: Vec<String>,
    /// The cells of each row; missing ones at the end are empty.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// The same with a row more.
    pub fn row(mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> Table {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
enum Block {
    Heading(String),
    Text(String),
    Warning(String),
    Table(Table),
    Lines(Plot),
    Bars(Plot),
    Data(Json),
}

/// A document under construction.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
}

impl Page {
    /// A page with nothing below its title.
    pub fn new(title: impl Into<String>) -> Page {
        Page { title: title.into(), blocks: Vec::new() }
    }

    /// Begins a section.
    pub fn heading(self, text: impl Into<String>) -> Page {
        self.with(Block::Heading(text.into()))
    }

    /// Adds a paragraph.
    pub fn text(self, text: impl Into<String>) -> Page {
        self.with(Block::Text(text.into()))
    }

    /// Adds a paragraph that stands out.
    pub fn warning(self, text: impl Into<String>) -> Page {
        self.with(Block::Warning(text.into()))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Page {
        self.with(Block::Table(table))
    }

    /// Adds a plot with a line for each series.
    pub fn lines_plot(self, plot: Plot) -> Page {
        self.with(Block::Lines(plot))
    }

    /// Adds a plot with a group of bars for each label.
    pub fn bars_plot(self, plot: Plot) -> Page {
        self.with(Block::Bars(plot))
    }

    /// Adds what programs read, in a `script` element of type `application/json`.
    pub fn data(self, data: Json) -> Page {
        self.with(Block::Data(data))
    }

    /// The file for a browser.
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The file for a terminal or a README.
    pub fn to_markdown(&self) -> String {
        let mut parts = vec![format!("# {}", markdown(&self.title))];
        parts.extend(self.blocks.iter().filter_map(|block| match block {
            Block::Heading(text) => Some(format!("## {}", markdown(text))),
            Block::Text(text) => Some(markdown(text)),
            Block::Warning(text) => Some(format!("> **Note:** {}", markdown(text))),
            Block::Table(table) => Some(markdown_table(table)),
            Block::Lines(_) | Block::Bars(_) | Block::Data(_) => None,
        }));
        parts.join("\n\n") + "\n"
    }

    fn with(mut self, block: Block) -> Page {
        self.blocks.push(block);
        self
    }
}

fn markdown_table(table: &Table) -> String {
    let line = |cells: &Vec<String>| {
        let mut cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        cells.resize(table.head.len(), String::new());
        cells
    };
    let lines = std::iter::once(&table.head).chain(&table.rows).map(line).collect();
    aligned(lines).trim_end().to_owned()
}
