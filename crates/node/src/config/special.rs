//! Parameters with their own form of values: `bind`, `io-threads`, the lists of processors,
//! `client-output-buffer-limit`, `maxmemory-clients`, `activedefrag`, `shutdown-on-sigint`,
//! `shutdown-on-sigterm` and `oom-score-adj-values`.

use base::number::parse_i64;
use base::quote::push_quoted;
use base::size::parse_bytes;

use super::fields::{ClientsLimit, SignalShutdown};
use super::parameter::{
    Kind, Notation, Reason, Slot, Special, WRONG_NUMBER, not_among, parse_number, parse_text,
    parse_yes_no,
};
use super::{BIND_ADDRESSES_MAX, Config, IO_THREADS_MAX, IoThreads, OutputLimit, OutputLimits};

/// `bind`: a list of addresses. A single empty argument, or none, means no TCP.
pub(super) const BIND: Special = Special {
    print: |config| config.bind.join(" "),
    read: |config, args| {
        config.bind = read_addresses(args)?;
        Ok(())
    },
    lines: Some(|config| vec![file_words(&config.bind)]),
    form: "address ...",
};

pub(super) fn read_addresses(args: &[Vec<u8>]) -> Result<Vec<String>, Reason> {
    if args.len() > BIND_ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    let args = if matches!(args, [only] if only.is_empty()) { &[] } else { args };
    let addresses: Vec<_> = args.iter().map(|arg| parse_text(arg)).collect::<Result<_, _>>()?;
    // Two spaces in CONFIG SET give an empty address, which cannot be bound.
    if addresses.iter().any(|address| address.is_empty() || !is_host(address)) {
        return Err("Failed to bind to specified addresses.".into());
    }
    Ok(addresses)
}

/// Whether no byte is impossible in a host name or an address, which may name its interface.
pub(super) fn is_host(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:%*".contains(&byte))
}

/// A list of words on a line of a file, in quotes where the line could be misread otherwise.
pub(super) fn file_words(words: &[String]) -> String {
    if words.is_empty() {
        return "\"\"".to_owned();
    }
    let word = |word: &String| match !word.is_empty() && is_host(word) {
        true => word.clone(),
        false => {
            let mut quoted = Vec::new();
            push_quoted(&mut quoted, word.as_bytes());
            String::from_utf8_lossy(&quoted).into_owned()
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// `io-threads`: a number, or `auto`.
pub(super) const IO_THREADS: Special =
    Special { print: print_io_threads, read: read_io_threads, lines: None, form: "auto | number" };

fn print_io_threads(config: &Config) -> String {
    match config.io_threads {
        IoThreads::Auto => "auto".to_owned(),
        IoThreads::Count(count) => count.to_string(),
    }
}

fn read_io_threads(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let [arg] = args else { return Err(WRONG_NUMBER.into()) };
    config.io_threads = if arg.eq_ignore_ascii_case(b"auto") {
        IoThreads::Auto
    } else {
        let count = parse_number(arg, Notation::Decimal, 1, i64::from(IO_THREADS_MAX))?;
        IoThreads::Count(count as u16)
    };
    Ok(())
}

/// Processors in the kernel's affinity masks.
const CPUS_MAX: usize = 1024;

/// A list of processors in the form of `taskset`.
pub(super) const fn cpu_list(slot: Slot<String>) -> Kind {
    Kind::CheckedText { slot, check: check_cpu_list, form: "number[-number[:step]],..." }
}

fn check_cpu_list(text: &str, _: &Config) -> Result<(), Reason> {
    match text.is_empty() || cpus(text).is_some() {
        true => Ok(()),
        false => Err("argument must be a list of processors, such as 0-3,5 or 0-6:2".into()),
    }
}

/// The processors of a list; `None` if it is malformed.
pub fn cpus(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| text.parse().ok().filter(|number| *number < CPUS_MAX);
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if part == range => (number(range)?, number(range)?),
            None => return None,
        };
        let step = number(step).filter(|step| *step > 0)?;
        if first > last {
            return None;
        }
        cpus.extend((first..=last).step_by(step));
    }
    Some(cpus)
}

/// `client-output-buffer-limit`: class, hard limit, soft limit and seconds for one or more classes.
/// Other classes keep their limits.
pub(super) const OUTPUT_LIMITS: Special = Special {
    print: print_output_limits,
    read: read_output_limits,
    lines: Some(|config| {
        let limits = &config.client_output_buffer_limit;
        let line = |class: &str, limit: &OutputLimit| {
            let (hard, soft) = (with_unit(limit.hard_bytes), with_unit(limit.soft_bytes));
            format!("{class} {hard} {soft} {}", limit.soft_seconds)
        };
        vec![
            line("normal", &limits.normal),
            line("replica", &limits.replica),
            line("pubsub", &limits.pubsub),
        ]
    }),
    form: "class hard-limit soft-limit soft-seconds ...",
};

fn print_output_limits(config: &Config) -> String {
    let limits = &config.client_output_buffer_limit;
    let one = |class: &str, limit: &OutputLimit| {
        format!("{class} {} {} {}", limit.hard_bytes, limit.soft_bytes, limit.soft_seconds)
    };
    // Redis prints the old name of the replica class, which tools expect.
    [one("normal", &limits.normal), one("slave", &limits.replica), one("pubsub", &limits.pubsub)]
        .join(" ")
}

fn read_output_limits(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let mut limits = config.client_output_buffer_limit;
    let (groups, []) = args.as_chunks::<4>() else {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    };
    for group in groups {
        read_output_limit(&mut limits, group)?;
    }
    config.client_output_buffer_limit = limits;
    Ok(())
}

fn read_output_limit(
    limits: &mut OutputLimits,
    [class, hard, soft, seconds]: &[Vec<u8>; 4],
) -> Result<(), Reason> {
    let limit = match class.to_ascii_lowercase().as_slice() {
        b"normal" => &mut limits.normal,
        b"slave" | b"replica" => &mut limits.replica,
        b"pubsub" => &mut limits.pubsub,
        _ => return Err("Invalid client class specified in buffer limit configuration.".into()),
    };
    let bytes = |arg: &[u8]| parse_bytes(arg).and_then(|bytes| u64::try_from(bytes).ok());
    let seconds = parse_number(seconds, Notation::Decimal, 0, i64::from(i32::MAX));
    let (Some(hard_bytes), Some(soft_bytes), Ok(seconds)) = (bytes(hard), bytes(soft), seconds)
    else {
        return Err(
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.".into()
        );
    };
    *limit = OutputLimit { hard_bytes, soft_bytes, soft_seconds: seconds as u32 };
    Ok(())
}

/// `maxmemory-clients`: bytes, or a share of `maxmemory`.
pub(super) const CLIENTS_LIMIT: Special = Special {
    print: |config| match config.eviction.maxmemory_clients {
        ClientsLimit::Bytes(bytes) => bytes.to_string(),
        ClientsLimit::Percent(percent) => format!("{percent}%"),
    },
    read: |config, args| {
        let [arg] = args else { return Err(WRONG_NUMBER.into()) };
        config.eviction.maxmemory_clients = read_clients_limit(arg)?;
        Ok(())
    },
    lines: Some(|config| match config.eviction.maxmemory_clients {
        ClientsLimit::Bytes(bytes) => vec![with_unit(bytes)],
        ClientsLimit::Percent(percent) => vec![format!("{percent}%")],
    }),
    form: "bytes | percent%",
};

fn read_clients_limit(arg: &[u8]) -> Result<ClientsLimit, Reason> {
    const FORM: &str = "argument must be a memory or percent value";
    if let Some(percent) = arg.strip_suffix(b"%") {
        let percent = parse_i64(percent).filter(|percent| *percent >= 0).ok_or(FORM)?;
        return match u32::try_from(percent) {
            // As in Redis, 0% means no limit.
            Ok(0) => Ok(ClientsLimit::Bytes(0)),
            Ok(percent @ ..=100) => Ok(ClientsLimit::Percent(percent)),
            _ => Err("percentage argument must be less or equal to 100".into()),
        };
    }
    let bytes = parse_bytes(arg).and_then(|bytes| u64::try_from(bytes).ok()).ok_or(FORM)?;
    Ok(ClientsLimit::Bytes(bytes))
}

/// `activedefrag`: always `no`.
pub(super) const ACTIVE_DEFRAG: Special = Special {
    print: |_| "no".to_owned(),
    read: |_, args| {
        let [arg] = args else { return Err(WRONG_NUMBER.into()) };
        if parse_yes_no(arg)? {
            return Err("Active defragmentation cannot be enabled: values are not moved. Memory \
                that is freed is used for later values, and MEMORY PURGE returns whole pages that \
                are unused"
                .into());
        }
        Ok(())
    },
    lines: None,
    form: "no",
};

/// `shutdown-on-sigint`: `default`, or options of SHUTDOWN.
pub(super) const ON_SIGINT: Special = Special {
    print: |config| print_shutdown(config.shutdown_on_sigint),
    read: |config, args| {
        config.shutdown_on_sigint = read_shutdown(args)?;
        Ok(())
    },
    lines: None,
    form: SHUTDOWN_FORM,
};

/// `shutdown-on-sigterm`: `default`, or options of SHUTDOWN.
pub(super) const ON_SIGTERM: Special = Special {
    print: |config| print_shutdown(config.shutdown_on_sigterm),
    read: |config, args| {
        config.shutdown_on_sigterm = read_shutdown(args)?;
        Ok(())
    },
    lines: None,
    form: SHUTDOWN_FORM,
};

const SHUTDOWN_FORM: &str = "default | [save | nosave] [now] [force]";

fn print_shutdown(shutdown: SignalShutdown) -> String {
    let SignalShutdown { save, nosave, now, force } = shutdown;
    let options = [(save, "save"), (nosave, "nosave"), (now, "now"), (force, "force")];
    let given: Vec<&str> = options.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    if given.is_empty() { "default".to_owned() } else { given.join(" ") }
}

fn read_shutdown(args: &[Vec<u8>]) -> Result<SignalShutdown, Reason> {
    const OPTIONS: &[&str] = &["default", "save", "nosave", "now", "force"];
    let mut shutdown = SignalShutdown::default();
    for arg in args {
        match arg.to_ascii_lowercase().as_slice() {
            b"default" => {}
            b"save" => shutdown.save = true,
            b"nosave" => shutdown.nosave = true,
            b"now" => shutdown.now = true,
            b"force" => shutdown.force = true,
            _ => return Err(not_among(OPTIONS)),
        }
    }
    if args.is_empty() {
        return Err(not_among(OPTIONS));
    }
    if shutdown.save && shutdown.nosave {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    Ok(shutdown)
}

/// `oom-score-adj-values`: for a master, a replica, and background children.
pub(super) const OOM_SCORES: Special = Special {
    print: print_oom_scores,
    read: read_oom_scores,
    lines: None,
    form: "master replica child",
};

fn print_oom_scores(config: &Config) -> String {
    config.oom_score_adj_values.map(|value| value.to_string()).join(" ")
}

fn read_oom_scores(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let [_, _, _] = args else { return Err(WRONG_NUMBER.into()) };
    let mut values = [0; 3];
    for (value, arg) in values.iter_mut().zip(args) {
        *value = parse_number(arg, Notation::Decimal, -2000, 2000)
            .map_err(|_| "Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?
            as i32;
    }
    config.oom_score_adj_values = values;
    Ok(())
}

/// Bytes in the largest unit that leaves no remainder, as written in a configuration file.
pub(super) fn with_unit(bytes: u64) -> String {
    for (shift, unit) in [(30, "gb"), (20, "mb"), (10, "kb")] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::cpus;

    #[test]
    fn lists_of_processors_are_parsed() {
        assert_eq!(cpus("0"), Some(vec![0]));
        assert_eq!(cpus("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(cpus("1-6:2,0"), Some(vec![1, 3, 5, 0]));
        for wrong in ["", "a", "1-", "-1", "3-1", "1,", "1:2", "0-4:0", "1024", "0 1"] {
            assert_eq!(cpus(wrong), None, "{wrong}");
        }
    }
}
