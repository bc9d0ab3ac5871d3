//! Measurements as a page: a table of all workloads, and for each workload its throughput and
//! latencies over time and the distribution of latencies.

use super::compare;
use super::measured::{FIGURES, MeasuredWorkload};
use super::remarks::remarks;
use super::report;
use crate::load::latency::distribution;
use crate::load::outcome::{SeriesSample, WindowOutcome};
use crate::page::{PageDocument, PageTable, Plot, PlotSeries, PlotValue};
use crate::printable::grouped;
use crate::statistics::Interval;

/// The most labels on the axis of time; with more samples, neighbours share a label.
const TIMES_MAX: usize = 60;

/// A figure of a server in one case.
type Compared = fn(&compare::ComparedFigures) -> Option<f64>;

/// The figures of a comparison.
const COMPARED: [(&str, usize, Compared); 4] = [
    ("requests per second", 0, |cell| Some(cell.per_second)),
    ("CPU time per request in us", 3, |cell| cell.cpu_us),
    ("p50 in us", 0, |cell| Some(cell.p50_us)),
    ("p99 in us", 0, |cell| Some(cell.p99_us)),
];

/// The page of all measurements on a server, named by its address.
pub fn page(address: &str, all: &[MeasuredWorkload]) -> String {
    let mut page = PageDocument::new(format!("weft bench of {address}")).text(
        "Intervals contain the true mean with a confidence of 95%. Latency runs from the write of \
         a batch to its last reply; with a limit of the rate, from when it was due.",
    );
    page = page.table(overview(all)).bars_plot(throughput(all));
    for measured in all {
        page = workload(page, measured);
    }
    page.data(all.iter().map(report::json).collect()).to_html()
}

/// The page of a comparison: a table and a plot for each figure, and the differences.
pub fn comparison(table: &compare::ComparisonTable) -> String {
    let names: Vec<&String> = table.targets.iter().map(|(name, _)| name).collect();
    let title = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let mut page = PageDocument::new(format!("weft bench of {title}"));
    for note in table.notes() {
        page = page.warning(note);
    }
    for (caption, digits, figure) in COMPARED {
        let cell =
            |line: &compare::ComparedLine, at: usize| line.cells[at].figures().and_then(figure);
        let head = [caption.to_owned()].into_iter().chain(names.iter().map(|name| (*name).clone()));
        let mut rows = PageTable::new(head.collect::<Vec<_>>());
        for line in &table.lines {
            let text = |at| cell(line, at).map_or("-".into(), |value| format!("{value:.digits$}"));
            let cells = [line.case.title()].into_iter().chain((0..names.len()).map(text));
            rows = rows.row(cells.collect::<Vec<_>>());
        }
        let series = |(at, name): (usize, &&String)| PlotSeries {
            name: (*name).clone(),
            values: table.lines.iter().map(|line| cell(line, at).map(PlotValue::from)).collect(),
        };
        page = page.heading(caption).table(rows).bars_plot(Plot {
            caption: format!("{caption}, {}", table.label()),
            x: "workload".into(),
            y: caption.into(),
            labels: table.lines.iter().map(|line| line.case.title()).collect(),
            series: names.iter().enumerate().map(series).collect(),
        });
    }
    page = page.heading("Differences").text("Ratios of the means above, with 95% intervals.");
    for line in &table.lines {
        for verdict in &line.verdicts {
            page = page.text(format!("{}: {verdict}", line.case.title()));
        }
    }
    page.data(table.json()).to_html()
}

/// A row for each workload with the mean of each figure.
fn overview(all: &[MeasuredWorkload]) -> PageTable {
    let labels = FIGURES.iter().map(|figure| figure.label.to_owned());
    let head = ["workload".to_owned(), "runs".to_owned()].into_iter().chain(labels);
    all.iter().fold(PageTable::new(head.collect::<Vec<_>>()), |table, measured| {
        let figures = FIGURES.iter().map(|figure| match measured.interval(figure) {
            None => String::new(),
            Some(Interval { mean, .. }) if figure.digits == 0 => grouped(mean as u64),
            Some(Interval { mean, .. }) => format!("{mean:.*}", figure.digits),
        });
        let first = [measured.name(), measured.outcomes.len().to_string()];
        table.row(first.into_iter().chain(figures).collect::<Vec<_>>())
    })
}

/// Requests per second of each workload.
fn throughput(all: &[MeasuredWorkload]) -> Plot {
    let value = |measured: &MeasuredWorkload| {
        let Interval { mean: value, low, high } = measured.interval(&FIGURES[0])?;
        let interval = (low.is_finite() && high.is_finite()).then_some((low, high));
        Some(PlotValue { value, interval })
    };
    Plot {
        caption: "Requests per second".into(),
        x: "workload".into(),
        y: "requests per second".into(),
        labels: all.iter().map(MeasuredWorkload::name).collect(),
        series: vec![PlotSeries { name: "mean".into(), values: all.iter().map(value).collect() }],
    }
}

fn workload(page: PageDocument, measured: &MeasuredWorkload) -> PageDocument {
    let mut page = page.heading(measured.name()).text(report::heading(measured).trim_end());
    for remark in remarks(&measured.load, &measured.outcomes) {
        page = page.warning(remark.text);
    }
    if measured.outcomes.iter().any(|outcome| !outcome.series.is_empty()) {
        let rate = over_time(measured, "requests per second", |sample| sample.per_second);
        let p99 = over_time(measured, "p99 in us", |sample| sample.p99_us);
        page = page.lines_plot(rate).lines_plot(p99);
    }
    let points = distribution(&measured.latency());
    let values = points.iter().map(|(_, us)| Some(PlotValue::from(*us))).collect();
    page.lines_plot(Plot {
        caption: "Distribution of latencies".into(),
        x: "percent of the requests".into(),
        y: "us".into(),
        labels: points.iter().map(|(percent, _)| format!("{percent:.4}")).collect(),
        series: vec![PlotSeries { name: "latency".into(), values }],
    })
}

/// A figure of the series of each run.
fn over_time(measured: &MeasuredWorkload, y: &str, of: fn(&SeriesSample) -> f64) -> Plot {
    let outcomes = &measured.outcomes;
    let longest = outcomes.iter().max_by_key(|outcome| outcome.series.len());
    let count = longest.map_or(0, |outcome| outcome.series.len());
    let step = count.div_ceil(TIMES_MAX).max(1);
    let labels = longest.into_iter().flat_map(|outcome| outcome.series.chunks(step));
    let labels = labels.filter_map(|samples| Some(format!("{:.1}", samples.last()?.seconds)));
    let line = |(index, outcome): (usize, &WindowOutcome)| {
        let mean = |samples: &[SeriesSample]| {
            let mean = samples.iter().map(of).sum::<f64>() / samples.len() as f64;
            Some(PlotValue::from(mean))
        };
        let values = outcome.series.chunks(step).map(mean).collect();
        PlotSeries { name: format!("run {}", index + 1), values }
    };
    Plot {
        caption: format!("{}: {y} over time", measured.name()),
        x: "seconds".into(),
        y: y.into(),
        labels: labels.collect(),
        series: outcomes.iter().enumerate().map(line).collect(),
    }
}
