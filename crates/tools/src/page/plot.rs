//! Plots as SVG: the values of series over labels side by side.
//!
//! ```text
//!  most |          o----o        axis from 0 to a round number above all values
//!       |     o----
//!       |  o--                   a whisker on each mark, if its interval is known
//!     0 +---1----10---50--- x
//! ```

use std::fmt::Write;

use super::escape::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;

/// Parts of the vertical axis.
const TICKS: u32 = 5;

/// With more labels than this, some are left out.
const LABELS_MAX: usize = 16;

/// The number of colours, which then repeat.
const COLOURS: usize = 7;

/// The share of its group's width that bars fill.
const BARS_SHARE: f64 = 0.8;

/// The end of the longest whisker, in highest values, so that a wide interval does not flatten the
/// plot.
const OVERSHOOT_MAX: f64 = 1.5;

/// A measured value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlotValue {
    pub value: f64,
    /// The ends of its whisker, if they are known.
    pub interval: Option<(f64, f64)>,
}

impl From<f64> for PlotValue {
    fn from(value: f64) -> PlotValue {
        PlotValue { value, interval: None }
    }
}

/// A line, or the bars of one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotSeries {
    pub name: String,
    /// A value for each label of the plot, if there is one.
    pub values: Vec<Option<PlotValue>>,
}
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    pub caption: String,
    pub x: String,
    /// The name of its values, with their unit.
    pub y: String,
    pub labels: Vec<String>,
    /// The lines or groups of bars.
    pub series: Vec<PlotSeries>,
}

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Lines,
    Bars,
}

/// The plot with its key and its caption.
pub(super) fn figure(plot: &Plot, marks: Marks) -> String {
    let caption = escape(&plot.caption);
    let mut out = format!(
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{caption}\">\n"
    );
    let axes = Axes::of(plot);
    axes.draw(&mut out, plot);
    for (index, series) in plot.series.iter().enumerate() {
        match marks {
            Marks::Lines => axes.line(&mut out, series, plot, index),
            Marks::Bars => axes.bars(&mut out, series, plot, index),
        }
    }
    out.push_str("</svg>\n<figcaption>");
    out.push_str(&caption);
    for (index, series) in plot.series.iter().enumerate() {
        let (colour, name) = (index % COLOURS, escape(&series.name));
        // Writing to a string cannot fail, here and below.
        let _ =
            write!(out, "<span class=\"key\" style=\"background: var(--s{colour})\"></span>{name}");
    }
    out.push_str("</figcaption>\n</figure>\n");
    out
}

/// The positions of values and labels in the picture.
struct Axes {
    most: f64,
    labels: usize,
}

impl Axes {
    fn of(plot: &Plot) -> Axes {
        let values = || plot.series.iter().flat_map(|series| series.values.iter().flatten());
        let finite =
            |most: f64, number: f64| if number.is_finite() { most.max(number) } else { most };
        let most = values().map(|value| value.value).fold(0.0, finite);
        let tops = values().filter_map(|value| Some(value.interval?.1));
        let most = tops.map(|top| top.min(most * OVERSHOOT_MAX)).fold(most, finite);
        Axes { most: rounded_up(most), labels: plot.labels.len().max(1) }
    }

    /// The middle of a label's place.
    fn x(&self, label: usize) -> f64 {
        LEFT + (label as f64 + 0.5) * self.width()
    }

    /// The width of a label's place.
    fn width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.labels as f64
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value / self.most).clamp(0.0, 1.0);
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }

    fn draw(&self, out: &mut String, plot: &Plot) {
        for tick in 0..=TICKS {
            let value = self.most * f64::from(tick) / f64::from(TICKS);
            let (y, right) = (self.y(value), WIDTH - RIGHT);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                short(value)
            );
        }
        let step = plot.labels.len().div_ceil(LABELS_MAX).max(1);
        for (index, label) in plot.labels.iter().enumerate().step_by(step) {
            let (x, y) = (self.x(index), HEIGHT - BOTTOM + 17.0);
            let label = escape(label);
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{label}</text>"
            );
        }
        let (x, y) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 8.0);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
            escape(&plot.x)
        );
        let y = (HEIGHT - BOTTOM + TOP) / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"12\" y=\"{y:.1}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 12 {y:.1})\">{}</text>",
            escape(&plot.y)
        );
    }

    fn line(&self, out: &mut String, series: &PlotSeries, plot: &Plot, index: usize) {
        let colour = &colour(index);
        let known = |value: &Option<PlotValue>| value.filter(|value| value.value.is_finite());
        let points: Vec<Option<PlotValue>> = series.values.iter().map(known).collect();
        // Each run of values is a line, with gaps at missing values.
        let indexed: Vec<(usize, Option<PlotValue>)> = points.into_iter().enumerate().collect();
        for run in indexed.split(|(_, value)| value.is_none()) {
            let place = |(index, value): &(usize, Option<PlotValue>)| {
                let value = value.map_or(0.0, |value| value.value);
                format!("{:.1},{:.1}", self.x(*index), self.y(value))
            };
            let places: Vec<String> = run.iter().map(place).collect();
            if places.len() > 1 {
                let places = places.join(" ");
                let _ = writeln!(
                    out,
                    "<polyline class=\"line\" style=\"stroke: {colour}\" points=\"{places}\"/>"
                );
            }
        }
        for (index, value) in indexed {
            let Some(value) = value else { continue };
            let (x, y) = (self.x(index), self.y(value.value));
            self.whisker(out, value, x, colour);
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" style=\"fill: {colour}\" \
                 {}</circle>",
                self.words(series, plot, index, value)
            );
        }
    }

    fn bars(&self, out: &mut String, series: &PlotSeries, plot: &Plot, at: usize) {
        let colour = &colour(at);
        let width = self.width() * BARS_SHARE / plot.series.len().max(1) as f64;
        for (index, value) in series.values.iter().enumerate() {
            let Some(value) = value.filter(|value| value.value.is_finite()) else { continue };
            let left = self.x(index) - self.width() * BARS_SHARE / 2.0 + at as f64 * width;
            let (y, height) = (self.y(value.value), self.y(0.0) - self.y(value.value));
            let _ = writeln!(
                out,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                 style=\"fill: {colour}\" {}</rect>",
                width * 0.95,
                self.words(series, plot, index, value)
            );
            self.whisker(out, value, left + width / 2.0, "var(--text)");
        }
    }

    fn whisker(&self, out: &mut String, value: PlotValue, x: f64, colour: &str) {
        let Some((low, high)) = value.interval else { return };
        if !low.is_finite() || !high.is_finite() {
            return;
        }
        let (low, high) = (self.y(low), self.y(high));
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\" \
             style=\"stroke: {colour}\"/>"
        );
    }

    /// The attributes of a mark with its number, and the text that a pointer shows.
    fn words(&self, series: &PlotSeries, plot: &Plot, index: usize, value: PlotValue) -> String {
        let label = plot.labels.get(index).map_or("", String::as_str);
        let interval = value.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        let interval = interval
            .map_or(String::new(), |(low, high)| format!(" ({} to {})", short(low), short(high)));
        let (name, label, number) = (escape(&series.name), escape(label), value.value);
        format!(
            "data-series=\"{name}\" data-label=\"{label}\" data-value=\"{number}\">\
             <title>{name}, {label}: {}{interval}</title>",
            short(number)
        )
    }
}

fn colour(series: usize) -> String {
    format!("var(--s{})", series % COLOURS)
}

/// The next of 1, 2, 2.5 and 5 times a power of ten.
fn rounded_up(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.map(|step| step * power).into_iter().find(|step| *step >= most).unwrap_or(most)
}

/// A number with three digits and a letter for its thousands.
fn short(number: f64) -> String {
    let (scaled, letter) = match number.abs() {
        size if size >= 1e9 => (number / 1e9, "G"),
        size if size >= 1e6 => (number / 1e6, "M"),
        size if size >= 1e4 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let text = match scaled.abs() {
        size if size >= 100.0 => format!("{scaled:.0}"),
        size if size >= 10.0 => format!("{scaled:.1}"),
        _ => format!("{scaled:.2}"),
    };
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let cases = [(0.0, 1.0), (0.7, 1.0), (1.0, 1.0), (3.0, 5.0), (23.0, 25.0), (99e3, 1e5)];
        cases.iter().for_each(|(most, end)| assert_eq!(rounded_up(*most), *end, "{most}"));
    }

    #[test]
    fn a_wide_interval_does_not_flatten_the_others() {
        let axis = |high: f64| {
            let value = PlotValue { value: 10.0, interval: Some((9.0, high)) };
            let series = vec![PlotSeries { name: String::new(), values: vec![Some(value)] }];
            let empty = String::new;
            let labels = vec![empty()];
            Axes::of(&Plot { caption: empty(), x: empty(), y: empty(), labels, series }).most
        };
        let ends = [10.0, 11.0, 900.0, f64::INFINITY].map(axis);
        assert_eq!(ends, [10.0, 20.0, 20.0, 20.0]);
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(0.0, "0"), (2.5, "2.5"), (100.0, "100"), (4321.0, "4321"), (12_345.0, "12.3k")];
        cases.iter().for_each(|(number, text)| assert_eq!(short(*number), *text));
        assert_eq!((short(2_000_000.0), short(3.21e9)), ("2M".to_owned(), "3.21G".to_owned()));
    }
}
