//! Conclusions from figures that are known.

use super::experiments::TABLE;
use super::machine::MachineFacts;
use super::measure::{MeasuredExperiment, PointCell, WindowSample};
use super::verdict::{PointLimit, Results, limit};

/// A cell of windows with these rates, on a machine with an idle processor.
fn cell(rates: &[f64], threads: &[(&str, f64)], load_percent: f64) -> PointCell {
    let sample = |per_second: &f64| WindowSample {
        per_second: *per_second,
        p50_us: 100.0,
        p99_us: 200.0,
        cpu_us: Some(5.0),
        threads: threads.iter().map(|(name, percent)| ((*name).to_owned(), *percent)).collect(),
        load_percent,
        others: Some(0.0),
        idle_share: Some(0.2),
        nulls_per_reply: 0.0,
    };
    PointCell { samples: rates.iter().map(sample).collect(), failure: None }
}

/// An experiment on one server with a cell for each of its points.
fn measured(name: &str, cell: impl Fn(&str, &str) -> PointCell) -> MeasuredExperiment {
    let experiment = TABLE.iter().find(|row| row.name == name).unwrap_or(&TABLE[0]);
    let points = experiment.points();
    let cells = points.iter().map(|point| vec![cell(point.series, point.label)]).collect();
    MeasuredExperiment { experiment, keys: vec![1000; points.len()], points, cells }
}

fn machine() -> MachineFacts {
    MachineFacts {
        processors: 4,
        model: "a model".into(),
        kernel: "6.1".into(),
        memory_bytes: 1 << 30,
        governor: None,
    }
}

/// Windows around a rate, with little noise.
fn around(rate: f64) -> [f64; 6] {
    [0.99, 1.0, 1.01, 1.005, 0.995, 1.0].map(|factor| factor * rate)
}

#[test]
fn the_limit_is_the_busiest_part() {
    let one = |threads: &[(&str, f64)], load| limit(&cell(&[1.0], threads, load));
    let main = PointLimit::OneThread("main".into());
    assert_eq!(one(&[("main", 98.0), ("io-1", 40.0)], 50.0), Some(main.clone()));
    assert_eq!(one(&[("main", 98.0)], 99.0), Some(main));
    assert_eq!(
        one(&[("io-1", 97.0), ("io-2", 95.0), ("main", 2.0)], 50.0),
        Some(PointLimit::AllThreads(2))
    );
    assert_eq!(one(&[("io-1", 60.0)], 98.0), Some(PointLimit::LoadGenerator));
    assert_eq!(one(&[("io-1", 60.0)], 50.0), Some(PointLimit::RoundTrips));
    assert_eq!(one(&[], 50.0), Some(PointLimit::Unknown));
    let mut full = cell(&[1.0], &[("io-1", 60.0)], 50.0);
    full.samples[0].idle_share = Some(0.01);
    assert_eq!(limit(&full), Some(PointLimit::Machine));
    assert_eq!(limit(&PointCell::default()), None);
}

#[test]
fn the_smallest_setting_that_is_as_fast_is_chosen() {
    let labels = ["1", "2", "4", "8"];
    let cases = [
        ([100.0, 190.0, 191.0, 150.0], "io-threads 2 for", "+1% ("),
        ([100.0, 150.0, 220.0, 300.0], "io-threads 8 for", "the most that was measured"),
        ([100.0, 90.0, 60.0, 40.0], "io-threads 1 for", "-10% ("),
    ];
    for (rates, choice, next) in cases {
        let at = |label: &str| labels.iter().position(|own| *own == label).unwrap_or(0);
        let rate = |label: &str| rates[at(label)];
        let part =
            measured("threads", |_, label| cell(&around(rate(label)), &[("main", 50.0)], 50.0));
        let results = Results { measured: &[part], machine: &machine() };
        let text = results.conclusions(0, "weft").join(" ");
        assert!(text.contains(choice) && text.contains(next), "{text}");
        assert!(!text.contains("scatter"), "{text}");
    }
}

#[test]
fn noise_is_reported() {
    let wild = [50.0, 150.0, 100.0, 20.0, 180.0, 90.0];
    let part = measured("threads", |_, _| cell(&wild, &[("main", 99.0)], 50.0));
    let results = Results { measured: &[part], machine: &machine() };
    let text = results.conclusions(0, "weft").join(" ");
    assert!(text.contains("scatter too much") && text.contains("may be noise"), "{text}");
    let warnings = results.warnings(&["weft".to_owned()]).join(" ");
    assert!(warnings.contains("the machine is noisy"), "{warnings}");
}

#[test]
fn doubtful_figures_have_warnings() {
    let part = measured("clients", |series, label| {
        let is_limited = (series, label) == ("GET", "400");
        let mut cell =
            cell(&around(100.0), &[("main", 50.0)], if is_limited { 99.0 } else { 50.0 });
        for sample in &mut cell.samples {
            sample.others = Some(0.7);
            sample.nulls_per_reply = if (series, label) == ("GET", "1") { 0.25 } else { 0.0 };
        }
        cell
    });
    let results = Results { measured: &[part], machine: &machine() };
    let warnings = results.warnings(&["weft".to_owned()]);
    let expected = [
        "Scaling with clients: GET, 1, weft: 25% of the replies found nothing",
        "at: Scaling with clients: GET, 400, weft.",
        "Other programs used 0.7 cores",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(warning.contains(expected), "{warning}");
    }
}
