//! `--scan`, `--bigkeys`, `--memkeys`, `--hotkeys`: walks over all keys that report some.
//!
//! Ctrl-C ends a walk with the findings so far. A terminal shows a bar with the time left;
//! otherwise each finding is printed immediately.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use base::quote::push_quoted;
use indicatif::{ProgressBar, ProgressStyle};

use super::walk::{KeyWalk, ask_all, key_count};
use super::{Caught, catch_interrupt, lost};
use crate::cli::format::Output;
use crate::cli::options::Options;
use crate::cli::output::{CliEnd, print};
use crate::cli::session::CliSession;
use crate::client::reply::ServerReply;

/// The steps of SCAN between two pauses.
const PAUSE_STEPS: u64 = 100;

/// Keys that `--hotkeys` names.
const HOT_KEYS_MAX: usize = 16;

/// The keys between two lines of progress.
const PROGRESS_KEYS: u64 = 1_000_000;

/// The figures of the keys of one type.
struct KeyType {
    name: String,
    /// The command for the number of elements of a key, and their name.
    size: Option<(&'static str, &'static str)>,
    keys: u64,
    total: u64,
    biggest: u64,
    biggest_key: Option<String>,
}

/// The types of values with the command for their size and its unit, in the order of redis-cli.
const TYPES: [(&str, &str, &str); 6] = [
    ("list", "LLEN", "items"),
    ("hash", "HLEN", "fields"),
    ("stream", "XLEN", "entries"),
    ("string", "STRLEN", "bytes"),
    ("set", "SCARD", "members"),
    ("zset", "ZCARD", "members"),
];

/// `--scan`: all keys, one a line.
pub fn list(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let interrupt = catch_interrupt()?;
    let is_standard = session.terms.style.output == Output::Standard;
    let mut walk = KeyWalk::new(options, 1);
    let mut out = BufWriter::new(io::stdout().lock());
    while let Some(keys) = walk.step(session)? {
        for key in keys {
            let mut line = Vec::new();
            if is_standard {
                push_quoted(&mut line, &key);
            } else {
                line = key;
            }
            line.push(b'\n');
            write(&mut out, &line)?;
        }
        out.flush().or_else(|error| write_failed(&error))?;
        if interrupt.take() {
            break;
        }
    }
    Ok(())
}

fn write(out: &mut impl Write, bytes: &[u8]) -> Result<(), CliEnd> {
    out.write_all(bytes).or_else(|error| write_failed(&error))
}

fn write_failed(error: &io::Error) -> Result<(), CliEnd> {
    match error.kind() {
        ErrorKind::BrokenPipe => Err(CliEnd::OutputClosed),
        _ => Err(CliEnd::failed(format!("cannot write the output: {error}"))),
    }
}

/// `--bigkeys`: the keys with the most elements.
pub fn find_big(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    find_largest(options, session, false)
}

/// `--memkeys`: the keys that take the most memory.
pub fn find_large(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    find_largest(options, session, true)
}

/// The progress of a walk.
struct WalkProgress {
    total: i64,
    sampled: u64,
    bar: Option<ProgressBar>,
}

impl WalkProgress {
    fn begin(session: &mut CliSession, what: &str) -> Result<WalkProgress, CliEnd> {
        let total = key_count(session)?;
        let text = format!(
            "\n# Scanning the entire keyspace to find {what} keys as well as\n\
             # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
             # per 100 SCAN commands (not usually needed).\n\n"
        );
        print(text.as_bytes())?;
        // For replicas of a cluster; other servers may refuse it.
        session.ask(&["READONLY"]).map_err(lost)?;
        let bar = io::stdout().is_terminal().then(|| {
            let bar = ProgressBar::new(u64::try_from(total).unwrap_or(0));
            let template = "{percent:>3}% {wide_bar} {pos} of {len} keys, {eta} left";
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        Ok(WalkProgress { total, sampled: 0, bar })
    }

    /// The percentage at the beginning of every line.
    fn percent(&self) -> String {
        let percent = 100.0 * self.sampled as f64 / self.total as f64;
        format!("[{percent:05.2}%]")
    }

    fn report(&self, percent: &str, finding: &str) -> Result<(), CliEnd> {
        match &self.bar {
            Some(_) => Ok(()),
            None => print(format!("{percent} {finding}\n").as_bytes()),
        }
    }

    fn count(&mut self, percent: &str) -> Result<(), CliEnd> {
        self.sampled += 1;
        if self.sampled.is_multiple_of(PROGRESS_KEYS) {
            self.report(percent, &format!("Sampled {} keys so far", self.sampled))?;
        }
        Ok(())
    }

    /// Moves the bar and returns whether the user interrupted the walk.
    fn end_step(&self, interrupt: &Caught) -> bool {
        if let Some(bar) = &self.bar {
            bar.set_position(self.sampled);
        }
        interrupt.take()
    }

    fn end(&self, percent: &str, interrupted: bool) -> Result<(), CliEnd> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let begin = if interrupted { format!("{percent} ") } else { String::new() };
        let text = format!(
            "\n-------- summary -------\n\n{begin}Sampled {} keys in the keyspace!\n",
            self.sampled
        );
        print(text.as_bytes())
    }
}

fn find_largest(options: &Options, session: &mut CliSession, memory: bool) -> Result<(), CliEnd> {
    let interrupt = catch_interrupt()?;
    let mut types: Vec<KeyType> = TYPES.iter().map(|row| KeyType::new(row.0, Some(*row))).collect();
    let mut progress = WalkProgress::begin(session, "biggest")?;
    let mut walk = KeyWalk::new(options, PAUSE_STEPS);
    let (mut key_bytes, mut interrupted) = (0_u64, false);
    let mut percent = progress.percent();
    while let Some(keys) = walk.step(session)? {
        percent = progress.percent();
        let of_keys = types_of(session, &keys, &mut types)?;
        let sizes = sizes_of(session, options, &keys, &of_keys, &types, memory)?;
        for ((key, at), size) in keys.iter().zip(of_keys).zip(sizes) {
            let Some(at) = at else { continue };
            key_bytes += key.len() as u64;
            let kind = &mut types[at];
            kind.keys += 1;
            kind.total += size;
            if size > kind.biggest {
                let (name, unit, key) = (&kind.name, kind.unit(memory), quoted(key));
                let finding = format!("Biggest {name:<6} found so far {key} with {size} {unit}");
                progress.report(&percent, &finding)?;
                (kind.biggest, kind.biggest_key) = (size, Some(key));
            }
            progress.count(&percent)?;
        }
        interrupted = progress.end_step(&interrupt);
        if interrupted {
            break;
        }
    }
    progress.end(&percent, interrupted)?;
    print(summary(&types, progress.sampled, key_bytes, memory).as_bytes())
}

fn summary(types: &[KeyType], sampled: u64, key_bytes: u64, memory: bool) -> String {
    let average = if key_bytes > 0 { key_bytes as f64 / sampled as f64 } else { 0.0 };
    let mut text = format!("Total key length in bytes is {key_bytes} (avg len {average:.2})\n\n");
    for kind in types {
        if let Some(key) = &kind.biggest_key {
            let (name, size, unit) = (&kind.name, kind.biggest, kind.unit(memory));
            text.push_str(&format!("Biggest {name:>6} found {key} has {size} {unit}\n"));
        }
    }
    text.push('\n');
    for kind in types {
        let share = |part: f64, whole: u64| if whole > 0 { part / whole as f64 } else { 0.0 };
        text.push_str(&format!(
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
            kind.keys,
            kind.name,
            kind.total,
            kind.unit(memory),
            share(100.0 * kind.keys as f64, sampled),
            share(kind.total as f64, kind.keys),
        ));
    }
    text
}

impl KeyType {
    fn new(name: &str, row: Option<(&str, &'static str, &'static str)>) -> KeyType {
        let size = row.map(|(_, command, unit)| (command, unit));
        KeyType { name: name.into(), size, keys: 0, total: 0, biggest: 0, biggest_key: None }
    }

    fn unit(&self, memory: bool) -> &'static str {
        if memory { "bytes" } else { self.size.map_or("?", |(_, unit)| unit) }
    }
}

fn quoted(key: &[u8]) -> String {
    let mut out = Vec::new();
    push_quoted(&mut out, key);
    String::from_utf8_lossy(&out).into_owned()
}

/// The type of each key, as an index of `types`; `None` for a key that no longer exists.
fn types_of(
    session: &mut CliSession,
    keys: &[Vec<u8>],
    types: &mut Vec<KeyType>,
) -> Result<Vec<Option<usize>>, CliEnd> {
    let requests: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![b"TYPE".as_slice(), key]).collect();
    let mut found = Vec::with_capacity(keys.len());
    for reply in ask_all(session, &requests)? {
        let ServerReply::Status(name) = &reply else {
            let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
            return Err(CliEnd::failed(format!("TYPE returned an error: {text}")));
        };
        let name = String::from_utf8_lossy(name);
        let known = types.iter().position(|kind| kind.name == name);
        found.push(match known {
            None if name == "none" => None,
            None => {
                types.push(KeyType::new(&name, None));
                Some(types.len() - 1)
            }
            known => known,
        });
    }
    Ok(found)
}

/// The size of each key; 0 for a type without a command for it.
fn sizes_of(
    session: &mut CliSession,
    options: &Options,
    keys: &[Vec<u8>],
    of_keys: &[Option<usize>],
    types: &[KeyType],
    memory: bool,
) -> Result<Vec<u64>, CliEnd> {
    let samples = options.modes.memkeys_samples.map(|samples| samples.to_string());
    let mut sizes = vec![0; keys.len()];
    let (mut asked, mut requests) = (Vec::new(), Vec::new());
    for (at, (key, of_key)) in keys.iter().zip(of_keys).enumerate() {
        let Some(kind) = of_key.and_then(|at| types.get(at)) else { continue };
        let mut request: Vec<&[u8]> = match kind.size {
            _ if memory => vec![b"MEMORY", b"USAGE", key],
            Some((command, _)) => vec![command.as_bytes(), key],
            None => continue,
        };
        if let Some(samples) = samples.as_ref().filter(|_| memory) {
            request.extend([b"SAMPLES", samples.as_bytes()]);
        }
        asked.push((at, if memory { "MEMORY USAGE" } else { kind.size.map_or("", |size| size.0) }));
        requests.push(request);
    }
    for (reply, (at, command)) in ask_all(session, &requests)?.iter().zip(asked) {
        match reply {
            ServerReply::Int(size) => sizes[at] = u64::try_from(*size).unwrap_or(0),
            _ => say!(
                "Warning:  {command} on '{}' failed (may have changed type)",
                String::from_utf8_lossy(&keys[at])
            ),
        }
    }
    Ok(sizes)
}

/// `--hotkeys`: the keys that are used most often.
pub fn find_hot(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let interrupt = catch_interrupt()?;
    let mut progress = WalkProgress::begin(session, "hot")?;
    let mut walk = KeyWalk::new(options, PAUSE_STEPS);
    // From the least used to the most used.
    let mut hot: Vec<(u64, String)> = Vec::new();
    let (mut percent, mut interrupted) = (progress.percent(), false);
    while let Some(keys) = walk.step(session)? {
        percent = progress.percent();
        let requests: Vec<Vec<&[u8]>> =
            keys.iter().map(|key| vec![b"OBJECT".as_slice(), b"FREQ", key]).collect();
        for (reply, key) in ask_all(session, &requests)?.iter().zip(&keys) {
            progress.count(&percent)?;
            let often = match reply {
                ServerReply::Int(often) => u64::try_from(*often).unwrap_or(0),
                ServerReply::Error(error) => {
                    let error = String::from_utf8_lossy(error);
                    return Err(CliEnd::failed(format!("Error: {error}")));
                }
                // The key no longer exists.
                _ => 0,
            };
            let is_full = hot.len() == HOT_KEYS_MAX;
            if often == 0 || (is_full && hot.first().is_some_and(|least| often <= least.0)) {
                continue;
            }
            let key = quoted(key);
            let finding = format!("Hot key {key} found so far with counter {often}");
            progress.report(&percent, &finding)?;
            if is_full {
                hot.remove(0);
            }
            let at = hot.partition_point(|(other, _)| *other < often);
            hot.insert(at, (often, key));
        }
        interrupted = progress.end_step(&interrupt);
        if interrupted {
            break;
        }
    }
    progress.end(&percent, interrupted)?;
    let lines = hot
        .iter()
        .rev()
        .map(|(often, key)| format!("hot key found with counter: {often}\tkeyname: {key}\n"));
    print(lines.collect::<String>().as_bytes())
}
