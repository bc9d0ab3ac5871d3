//! The page of a report, from its results.

use serde_json::{Value as Json, json};

use super::args::ReportExtent;
use super::experiments::Drawn;
use super::machine::MachineFacts;
use super::measure::{MeasuredExperiment, PointCell};
use super::servers::ServerFacts;
use super::verdict::{PointLimit, Results, limit};
use crate::page::{PageDocument, PageTable, Plot, PlotSeries, PlotValue};
use crate::printable::grouped;
use crate::servers::target::{Role, ServerTarget, TargetOrigin};

/// The beginning of the titles of all reports.
pub(super) const TITLE: &str = "Report on ";

/// Threads below this share of a core are not shown, in percent.
const QUIET_PERCENT: f64 = 1.0;

/// The most threads in a cell of a table.
const THREADS_SHOWN: usize = 9;

/// All results of a report.
pub(super) struct Findings<'a> {
    pub machine: MachineFacts,
    pub targets: &'a [ServerTarget],
    pub facts: Vec<ServerFacts>,
    pub extent: ReportExtent,
    pub load_threads: usize,
    pub measured: Vec<MeasuredExperiment>,
    pub is_interrupted: bool,
}

impl Findings<'_> {
    /// The whole page.
    pub fn page(&self) -> PageDocument {
        let results = Results { measured: &self.measured, machine: &self.machine };
        let names: Vec<String> = self.targets.iter().map(|target| target.name.clone()).collect();
        let mut page =
            self.conditions(PageDocument::new(format!("{TITLE}{}", self.subjects_text())));
        if self.is_interrupted {
            page = page.warning("Interrupted: later measurements are missing.");
        }
        for text in self.failures().into_iter().chain(results.warnings(&names)) {
            page = page.warning(text);
        }
        for part in &self.measured {
            page = self.part(page, part);
        }
        page = page.heading("Conclusions");
        for (server, name) in self.subjects() {
            page = results.conclusions(server, &name).into_iter().fold(page, PageDocument::text);
        }
        page.data(self.json())
    }

    /// The failures: each reason once, with the number of points.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<(String, usize)> = Vec::new();
        for part in &self.measured {
            for cells in &part.cells {
                for (cell, target) in cells.iter().zip(self.targets) {
                    let Some(reason) = &cell.failure else { continue };
                    let text = format!("{}, {}: {reason}", part.experiment.name, target.name);
                    match failures.iter_mut().find(|failure| failure.0 == text) {
                        Some(failure) => failure.1 += 1,
                        None => failures.push((text, 1)),
                    }
                }
            }
        }
        let text = |(text, count): (String, usize)| match count {
            1 => format!("Not measured: {text}"),
            count => format!("Not measured at {count} points: {text}"),
        };
        failures.into_iter().map(text).collect()
    }

    /// The number of failed points.
    pub fn failed_count(&self) -> usize {
        let cells = self.measured.iter().flat_map(|part| part.cells.iter().flatten());
        cells.filter(|cell| cell.failure.is_some()).count()
    }

    /// Whether anything was measured.
    pub fn is_empty(&self) -> bool {
        let mut cells = self.measured.iter().flat_map(|part| part.cells.iter().flatten());
        cells.all(|cell| cell.samples.is_empty())
    }

    /// The servers except the floor, with their indexes.
    fn subjects(&self) -> Vec<(usize, String)> {
        let servers = self.targets.iter().enumerate();
        let servers = servers.filter(|(_, target)| target.role != Role::Floor);
        servers.map(|(index, target)| (index, target.name.clone())).collect()
    }

    fn subjects_text(&self) -> String {
        self.subjects().into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    }

    fn conditions(&self, page: PageDocument) -> PageDocument {
        let MachineFacts { processors, model, kernel, memory_bytes, governor } = &self.machine;
        let gigabytes = *memory_bytes as f64 / f64::from(1 << 30);
        let governor = governor.as_ref().map_or(String::new(), |name| format!(", governor {name}"));
        let mut servers = PageTable::new(["server", "version", "settings", "started as"]);
        for (target, facts) in self.targets.iter().zip(&self.facts) {
            servers = servers.row([&target.name, &facts.version, &facts.settings, &facts.origin]);
        }
        let ReportExtent { iterations, window, keys, many_keys, .. } = self.extent;
        let many =
            self.measured.iter().find(|part| part.points.iter().any(|point| point.many_keys));
        let fewest = many.and_then(|part| part.keys.iter().min().copied()).unwrap_or(many_keys);
        let less = match fewest < many_keys {
            true => format!(" (fewer of large values, down to {})", grouped(fewest)),
            false => String::new(),
        };
        page.heading("Conditions")
            .text(format!(
                "{processors} processors ({model}{governor}), {gigabytes:.1} GB of memory, Linux \
                 {kernel}. {}",
                match self.targets.iter().all(is_local) {
                    true => "Servers and load generator run on the same machine.",
                    false => "The load generator runs here; a server, elsewhere.",
                }
            ))
            .text(format!(
                "Measured by weft {}: up to {iterations} windows of up to {:.2} s for each \
                 point, in turn over the servers; the others are paused meanwhile. Load threads: \
                 {}. Random keys: {}, {}{less} where the experiment asks for many. Values have \
                 256 bytes and nothing is pipelined, unless a table says otherwise. \u{b1} is \
                 half of the bootstrapped 95% confidence interval of the mean.",
                env!("CARGO_PKG_VERSION"),
                window.as_secs_f64(),
                self.load_threads,
                grouped(keys),
                grouped(many_keys),
            ))
            .table(servers)
    }

    fn part(&self, page: PageDocument, part: &MeasuredExperiment) -> PageDocument {
        let experiment = part.experiment;
        let mut page = page.heading(experiment.title).text(experiment.about);
        for plot in self.plots(part) {
            page = match experiment.drawn {
                Drawn::Lines => page.lines_plot(plot),
                Drawn::Bars => page.bars_plot(plot),
            };
        }
        if experiment.name == "threads" {
            page = self.thread_plots(part).into_iter().fold(page, PageDocument::bars_plot);
        }
        page.table(self.table(part))
    }

    fn table(&self, part: &MeasuredExperiment) -> PageTable {
        let mut table = PageTable::new([
            part.experiment.axis,
            "series",
            "server",
            "requests/s",
            "\u{b1}",
            "p50 us",
            "p99 us",
            "CPU us/request",
            "threads of the server, % of a core",
            "busiest load thread, %",
            "limit",
        ]);
        for (point, cells) in part.points.iter().zip(&part.cells) {
            for (target, cell) in self.targets.iter().zip(cells) {
                let Some(figures) = figures(cell) else { continue };
                let head = [point.label, point.series, &target.name].map(str::to_owned);
                table.rows.push(head.into_iter().chain(figures).collect());
            }
        }
        table
    }

    /// Throughput: with one server, a line for each series; with several, a plot for each series
    /// with a line for each server.
    fn plots(&self, part: &MeasuredExperiment) -> Vec<Plot> {
        let experiment = part.experiment;
        let plot = |caption: String, series: Vec<PlotSeries>| Plot {
            caption,
            x: experiment.axis.to_owned(),
            y: "requests/s".to_owned(),
            labels: experiment.steps.iter().map(|step| step.label.to_owned()).collect(),
            series,
        };
        let values = |series: &str, server: usize| {
            let points = part.points.iter().zip(&part.cells);
            let points = points.filter(|(point, _)| point.series == series);
            points.map(|(_, cells)| value(&cells[server])).collect::<Vec<_>>()
        };
        let takes_part =
            |server: &usize| part.cells.iter().any(|cells| !cells[*server].samples.is_empty());
        let servers: Vec<usize> = (0..self.targets.len()).filter(takes_part).collect();
        let name = |server: usize| self.targets[server].name.clone();
        match servers.as_slice() {
            [] => Vec::new(),
            [only] => {
                let lines = experiment.series.iter().map(|series| PlotSeries {
                    name: series.label.to_owned(),
                    values: values(series.label, *only),
                });
                vec![plot(format!("{}, {}", experiment.title, name(*only)), lines.collect())]
            }
            several => {
                let one = |series: &'static str| {
                    let lines = several.iter().map(|server| PlotSeries {
                        name: name(*server),
                        values: values(series, *server),
                    });
                    plot(format!("{}, {series}", experiment.title), lines.collect())
                };
                experiment.series.iter().map(|series| one(series.label)).collect()
            }
        }
    }

    /// The CPU of each thread by the setting of io-threads, for each server.
    fn thread_plots(&self, part: &MeasuredExperiment) -> Vec<Plot> {
        let Some(series) = part.experiment.series.first() else { return Vec::new() };
        let points = part.points.iter().zip(&part.cells);
        let points: Vec<_> = points.filter(|(point, _)| point.series == series.label).collect();
        let plot = |server: usize, name: &str| {
            let mut threads: Vec<String> = Vec::new();
            for (name, percent) in points.iter().flat_map(|(_, cells)| cells[server].threads()) {
                if percent >= QUIET_PERCENT && !threads.contains(&name) {
                    threads.push(name);
                }
            }
            let of = |thread: &String| PlotSeries {
                name: thread.clone(),
                values: points
                    .iter()
                    .map(|(_, cells)| {
                        let threads = cells[server].threads();
                        let found = threads.into_iter().find(|(name, _)| name == thread);
                        found.map(|(_, percent)| percent.into())
                    })
                    .collect(),
            };
            Plot {
                caption: format!("CPU of the threads of {name}, {}", series.label),
                x: part.experiment.axis.to_owned(),
                y: "% of a core".to_owned(),
                labels: points.iter().map(|(point, _)| point.label.to_owned()).collect(),
                series: threads.iter().map(of).collect(),
            }
        };
        let plots = self.subjects().into_iter().map(|(server, name)| plot(server, &name));
        plots.filter(|plot| !plot.series.is_empty()).collect()
    }

    /// All figures, for programs.
    fn json(&self) -> Json {
        let parts = self.measured.iter().map(|part| {
            let points = part.points.iter().zip(&part.cells).zip(&part.keys);
            let points = points.map(|((point, cells), keys)| {
                let servers = self.targets.iter().zip(cells);
                let servers = servers
                    .filter(|(_, cell)| !cell.samples.is_empty() || cell.failure.is_some())
                    .map(|(target, cell)| cell_json(&target.name, cell));
                json!({
                    "series": point.series,
                    "label": point.label,
                    "clients": point.clients,
                    "pipeline": point.pipeline,
                    "value_bytes": point.value_bytes,
                    "keys": keys,
                    "servers": servers.collect::<Vec<_>>(),
                })
            });
            json!({ "experiment": part.experiment.name, "points": points.collect::<Vec<_>>() })
        });
        let servers = self.targets.iter().zip(&self.facts).map(|(target, facts)| {
            json!({
                "name": target.name,
                "version": facts.version,
                "settings": facts.settings,
                "origin": facts.origin,
            })
        });
        json!({
            "machine": { "processors": self.machine.processors, "model": self.machine.model },
            "servers": servers.collect::<Vec<_>>(),
            "is_interrupted": self.is_interrupted,
            "experiments": parts.collect::<Vec<_>>(),
        })
    }
}

fn is_local(target: &ServerTarget) -> bool {
    match &target.origin {
        TargetOrigin::Command(_) => true,
        TargetOrigin::Running(endpoint, _) => endpoint.is_local(),
    }
}

fn value(cell: &PointCell) -> Option<PlotValue> {
    let rate = cell.rate()?;
    Some(PlotValue { value: rate.mean, interval: Some((rate.low.max(0.0), rate.high)) })
}

/// The figures of a server in a row of a table, if measured.
fn figures(cell: &PointCell) -> Option<[String; 8]> {
    let rate = cell.rate()?;
    let error = rate.relative_error();
    let mean = |figure: &dyn Fn(&super::measure::WindowSample) -> Option<f64>| cell.mean(figure);
    let whole = |number: Option<f64>| number.map_or(String::new(), |number| format!("{number:.0}"));
    let mut threads = cell.threads();
    threads.retain(|thread| thread.1 >= QUIET_PERCENT);
    threads.truncate(THREADS_SHOWN);
    let threads: Vec<String> =
        threads.iter().map(|(name, percent)| format!("{name} {percent:.0}")).collect();
    Some([
        grouped(rate.mean as u64),
        error.map_or(String::new(), |error| format!("{:.1}%", error * 100.0)),
        whole(mean(&|sample| Some(sample.p50_us))),
        whole(mean(&|sample| Some(sample.p99_us))),
        mean(&|sample| sample.cpu_us).map_or(String::new(), |us| format!("{us:.2}")),
        threads.join(", "),
        whole(mean(&|sample| Some(sample.load_percent))),
        limit(cell).map_or("", limit_name).to_owned(),
    ])
}

fn limit_name(limit: PointLimit) -> &'static str {
    match limit {
        PointLimit::OneThread(_) => "one thread",
        PointLimit::AllThreads(_) => "all threads",
        PointLimit::LoadGenerator => "load generator",
        PointLimit::Machine => "machine",
        PointLimit::RoundTrips => "round trips",
        PointLimit::Unknown => "",
    }
}

fn cell_json(name: &str, cell: &PointCell) -> Json {
    let rate = cell.rate();
    let threads = cell.threads().into_iter();
    let threads = threads.map(|(name, percent)| json!({ "name": name, "busy_percent": percent }));
    json!({
        "name": name,
        "failure": cell.failure,
        "requests_per_second": rate.map(|rate| rate.mean),
        "low": rate.map(|rate| rate.low),
        "high": rate.map(|rate| rate.high),
        "windows": cell.rates(),
        "p50_us": cell.mean(|sample| Some(sample.p50_us)),
        "p99_us": cell.mean(|sample| Some(sample.p99_us)),
        "cpu_us_per_request": cell.mean(|sample| sample.cpu_us),
        "threads": threads.collect::<Vec<_>>(),
        "load_busy_percent": cell.mean(|sample| Some(sample.load_percent)),
        "other_cores": cell.mean(|sample| sample.others),
    })
}
