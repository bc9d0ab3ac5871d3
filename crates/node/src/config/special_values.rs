//! How the parameters of files, events, latency, metrics, replication and saving are read and
//! printed.

use base::number::parse_i64;

use super::distributed::PrimaryAddress;
use super::parameter::{Kind, Reason, Slot, Special, WRONG_NUMBER, parse_text};
use super::saving::PointsGiven;
use super::special::{file_words, is_host, read_addresses};
use super::{Config, NotifiedEvents, SavePoint};

/// The name of a file or directory, without a path.
pub(super) const fn name(
    slot: Slot<String>,
    check: fn(&str, &Config) -> Result<(), Reason>,
) -> Kind {
    Kind::CheckedText { slot, check, form: "name" }
}

/// Checks `appendfilename`.
pub(super) fn check_append_file(name: &str, _: &Config) -> Result<(), Reason> {
    check_append_name(name, "file")
}

/// Checks `appenddirname`.
pub(super) fn check_append_directory(name: &str, _: &Config) -> Result<(), Reason> {
    check_append_name(name, "dir")
}

fn check_append_name(name: &str, of: &str) -> Result<(), Reason> {
    // `.` and `..` name the directory and its parent, not an entry in it.
    match name.is_empty() || name.contains('/') || name == "." || name == ".." {
        true => Err(format!("append{of}name can't be a path, just a {of}name").into()),
        false => Ok(()),
    }
}

/// Checks `dbfilename`.
pub(super) fn check_rdb_file(name: &str, _: &Config) -> Result<(), Reason> {
    match name.contains('/') {
        true => Err("dbfilename can't be a path, just a filename".into()),
        false => Ok(()),
    }
}

/// `notify-keyspace-events`.
pub(super) const NOTIFIED_EVENTS: Special = Special {
    print: |config| config.notify_keyspace_events.print(),
    read: read_events,
    lines: Some(|config| vec![format!("\"{}\"", config.notify_keyspace_events.print())]),
    form: "letters",
};

fn read_events(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let [letters] = args else { return Err("wrong number of arguments".into()) };
    let events = NotifiedEvents::parse(letters);
    config.notify_keyspace_events =
        events.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
    Ok(())
}

pub(super) const MILLIONTHS: f64 = 1e6;

/// A percentile in millionths of a per cent as Redis writes it: `99.9`.
pub fn percentile_text(millionths: u32) -> String {
    let text = format!("{:.6}", f64::from(millionths) / MILLIONTHS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `latency-tracking-info-percentiles`. An empty argument, or none, means no percentiles.
pub(super) const PERCENTILES: Special =
    Special { print: print_percentiles, read: read_percentiles, lines: None, form: "number ..." };

fn print_percentiles(config: &Config) -> String {
    let percentiles = config.latency.tracking_info_percentiles.iter();
    percentiles.map(|millionths| percentile_text(*millionths)).collect::<Vec<_>>().join(" ")
}

fn read_percentiles(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let args = if matches!(args, [only] if only.is_empty()) { &[] } else { args };
    let mut percentiles = Vec::with_capacity(args.len());
    for arg in args {
        let Some(percent) = base::number::parse_f64(arg) else {
            return Err("Invalid latency-tracking-info-percentiles parameters".into());
        };
        if !(0.0..=100.0).contains(&percent) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .into(),
            );
        }
        percentiles.push((percent * MILLIONTHS).round() as u32);
    }
    config.latency.tracking_info_percentiles = percentiles;
    Ok(())
}

/// `metrics-bind`: a list of addresses. An empty argument, or none, disables the metrics server.
pub(super) const METRICS_BIND: Special = Special {
    print: |config| config.metrics.bind.join(" "),
    read: |config: &mut Config, args| {
        config.metrics.bind = read_addresses(args)?;
        Ok(())
    },
    lines: Some(|config| vec![file_words(&config.metrics.bind)]),
    form: "address ...",
};

/// `metrics-allowed-hosts`: a list of names. An empty argument, or none, allows no names.
pub(super) const METRICS_HOSTS: Special = Special {
    print: |config| config.metrics.allowed_hosts.join(" "),
    read: |config: &mut Config, args| {
        let names: Vec<String> =
            args.iter().map(|arg| parse_text(arg)).collect::<Result<_, _>>()?;
        if names.iter().any(|name| name.contains(['/', ':'])) {
            return Err("a host is a name without scheme and port".into());
        }
        if !names.iter().all(|name| is_host(name)) {
            return Err("a host is a name of letters, digits, hyphens, underscores and dots".into());
        }
        config.metrics.allowed_hosts = names.into_iter().filter(|name| !name.is_empty()).collect();
        Ok(())
    },
    lines: Some(|config| vec![file_words(&config.metrics.allowed_hosts)]),
    form: "name ...",
};

/// `save`: pairs of seconds and changes; an empty argument means none. In a file, the first line,
/// and the first after an `include`, replaces the points so far, and later lines add to it.
pub(super) const SAVE: Special =
    Special { print: print_points, read: read_points, lines: None, form: "seconds changes ..." };

fn print_points(config: &Config) -> String {
    let points = config.saving.save.iter();
    let points = points.map(|SavePoint { seconds, changes }| format!("{seconds} {changes}"));
    points.collect::<Vec<_>>().join(" ")
}

fn read_points(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    const INVALID: &str = "Invalid save parameters";
    let args = if matches!(args, [only] if only.is_empty()) { &[] } else { args };
    let number = |arg: &[u8], min: i64| {
        let number = parse_i64(arg).filter(|number| *number >= min);
        number.and_then(|number| u32::try_from(number).ok()).ok_or(INVALID)
    };
    let (pairs, rest) = args.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(INVALID.into());
    }
    let points = pairs.iter().map(|[seconds, changes]| {
        Ok(SavePoint { seconds: number(seconds, 1)?, changes: number(changes, 0)? })
    });
    let points = points.collect::<Result<Vec<_>, &str>>()?;
    let saving = &mut config.saving;
    if !saving.points_given.0 || points.is_empty() {
        saving.save.clear();
    }
    saving.points_given = PointsGiven(true);
    saving.save.extend(points);
    Ok(())
}

/// `replicaof`: a host and a port, or `no one`. A single empty argument means none, too.
pub(super) const REPLICA_OF: Special = Special {
    print: |config| match &config.replication.replicaof {
        Some(PrimaryAddress { host, port }) => format!("{host} {port}"),
        None => String::new(),
    },
    read: |config, args| {
        config.replication.replicaof = read_replica_of(args)?;
        Ok(())
    },
    lines: Some(|config| {
        let primary = config.replication.replicaof.iter();
        let words = primary.flat_map(|at| [at.host.clone(), at.port.to_string()]);
        vec![file_words(&words.collect::<Vec<_>>())]
    }),
    form: "host port | no one",
};

fn read_replica_of(args: &[Vec<u8>]) -> Result<Option<PrimaryAddress>, Reason> {
    match args {
        [only] if only.is_empty() => Ok(None),
        [no, one] if no.eq_ignore_ascii_case(b"no") && one.eq_ignore_ascii_case(b"one") => Ok(None),
        [host, port] => {
            let port = parse_i64(port).and_then(|port| u16::try_from(port).ok());
            Ok(Some(PrimaryAddress { host: parse_text(host)?, port: port.ok_or(INVALID_PORT)? }))
        }
        _ => Err(WRONG_NUMBER.into()),
    }
}

const INVALID_PORT: &str = "Invalid master port";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: Result<&str, &str>) {
        let mut config = Config::default();
        let args: Vec<_> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        let result = read_percentiles(&mut config, &args).map(|()| print_percentiles(&config));
        assert_eq!(result.as_deref(), expected.map_err(|reason| reason.into()).as_deref());
    }

    #[test]
    fn percentiles_are_numbers_from_0_to_100() {
        check(&[], Ok(""));
        check(&[""], Ok(""));
        check(&["0", "50.0", "99.99", "1e2"], Ok("0 50 99.99 100"));
        check(&["0.0000001"], Ok("0"));
        let invalid = Err("Invalid latency-tracking-info-percentiles parameters");
        check(&["50", "x"], invalid);
        check(&["nan"], invalid);
        check(&["50", ""], invalid);
        let range =
            Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
        check(&["100.1"], range);
        check(&["-1"], range);
        check(&["inf"], range);
    }
}
