//! Parameters whose values are in files of their own: how they are read and printed.

use base::number::parse_i64;

use super::latency::{MILLIONTHS, percentile_text};
use super::parameter::{Reason, Special, WRONG_NUMBER, parse_text};
use super::special::{print_addresses, read_addresses};
use super::{Config, NotifiedEvents, SavePoint};

/// `appendfilename`: a name, not a path.
pub(super) const FILE_NAME: Special = Special {
    print: |config| config.append_only.appendfilename.clone(),
    read: |config, args| read_name(&mut config.append_only.appendfilename, args, "file"),
    lines: |config| vec![quoted(&config.append_only.appendfilename)],
    form: "name",
};

/// `appenddirname`: the same.
pub(super) const DIRECTORY_NAME: Special = Special {
    print: |config| config.append_only.appenddirname.clone(),
    read: |config, args| read_name(&mut config.append_only.appenddirname, args, "dir"),
    lines: |config| vec![quoted(&config.append_only.appenddirname)],
    form: "name",
};

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    base::quote::push_quoted(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn read_name(name: &mut String, args: &[Vec<u8>], of: &str) -> Result<(), Reason> {
    let [arg] = args else { return Err(WRONG_NUMBER.into()) };
    let text = parse_text(arg)?;
    // The directory itself and the one above it are no names of something within.
    if text.is_empty() || text.contains('/') || text == "." || text == ".." {
        return Err(format!("append{of}name can't be a path, just a {of}name").into());
    }
    *name = text;
    Ok(())
}

/// The parameter.
pub(super) const NOTIFIED_EVENTS: Special = Special {
    print: |config| config.notify_keyspace_events.print(),
    read: read_events,
    lines: |config| vec![format!("\"{}\"", config.notify_keyspace_events.print())],
    form: "letters",
};

fn read_events(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let [letters] = args else { return Err("wrong number of arguments".into()) };
    let events = NotifiedEvents::parse(letters);
    config.notify_keyspace_events =
        events.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
    Ok(())
}

/// `latency-tracking-info-percentiles`. A single empty argument, or none, means none.
pub(super) const PERCENTILES: Special = Special {
    print: print_percentiles,
    read: read_percentiles,
    lines: |config| {
        let list = print_percentiles(config);
        vec![if list.is_empty() { "\"\"".to_owned() } else { list }]
    },
    form: "number ...",
};

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

/// `metrics-bind`: a list of addresses. A single empty argument, or none, means nowhere.
pub(super) const METRICS_BIND: Special = Special {
    print: |config| config.metrics.bind.join(" "),
    read: |config: &mut Config, args| {
        config.metrics.bind = read_addresses(args)?;
        Ok(())
    },
    lines: |config| vec![print_addresses(&config.metrics.bind)],
    form: "address ...",
};

/// `save`: pairs of seconds and changes, or an empty argument for none. In files, the first line
/// replaces the default and the others add to it.
pub(super) const SAVE: Special = Special {
    print: print_points,
    read: read_points,
    lines: point_lines,
    form: "seconds changes ...",
};

fn print_points(config: &Config) -> String {
    let points = config.saving.save.iter();
    let points = points.map(|SavePoint { seconds, changes }| format!("{seconds} {changes}"));
    points.collect::<Vec<_>>().join(" ")
}

fn point_lines(config: &Config) -> Vec<String> {
    let points = print_points(config);
    vec![if points.is_empty() { "\"\"".to_owned() } else { points }]
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
    if !saving.points_given || points.is_empty() {
        saving.save.clear();
    }
    saving.points_given = true;
    saving.save.extend(points);
    Ok(())
}

/// `dbfilename`: a name without a folder.
pub(super) const FILENAME: Special = Special {
    print: |config| config.saving.dbfilename.clone(),
    read: |config, args| {
        let [arg] = args else { return Err(WRONG_NUMBER.into()) };
        let name = parse_text(arg)?;
        if name.contains('/') {
            return Err("dbfilename can't be a path, just a filename".into());
        }
        config.saving.dbfilename = name;
        Ok(())
    },
    lines: |config| {
        let mut out = Vec::new();
        base::quote::push_quoted(&mut out, config.saving.dbfilename.as_bytes());
        vec![String::from_utf8_lossy(&out).into_owned()]
    },
    form: "name",
};

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
    fn percentiles_are_numbers_up_to_a_hundred() {
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
