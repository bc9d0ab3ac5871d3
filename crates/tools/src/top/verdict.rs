//! The limit of a server, and the setting to change.
//!
//! The verdict depends on a few numbers of one interval, so that it can be tested without a server.
//! It names the first limit in a fixed order: limits that stop the service come before limits of
//! its speed.

/// A thread that is busy for more than this share of the time has no capacity left.
const BUSY: f64 = 0.85;
/// A thread below this share is idle, compared with a busy one.
const QUIET: f64 = 0.5;
/// The free processors that another thread needs.
const FREE_PROCESSORS: f64 = 0.5;
/// The share of its limit above which memory is short.
const FULL: f64 = 0.95;
/// The bytes per second above which a 10 Gbit/s link may be the limit.
const NETWORK_BYTES: f64 = 0.8 * 10e9 / 8.0;
/// Fewer commands per second than this are not judged.
const IDLE_COMMANDS: f64 = 100.0;

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// Every I/O thread executes commands.
    Weft,
    /// The main thread executes all commands.
    Redis,
    /// The same.
    Valkey,
}

/// The numbers that decide a verdict.
#[derive(Clone, Debug)]
pub(super) struct Measures {
    pub(super) kind: ServerKind,
    pub(super) is_loading: bool,
    /// Why commands that change keys fail.
    pub(super) writes_fail: Option<&'static str>,
    pub(super) commands_per_second: f64,
    /// The load of the main thread, 0 to 1, if it is known.
    pub(super) main: Option<f64>,
    /// The loads of the I/O threads that have clients.
    pub(super) io: Vec<f64>,
    /// I/O threads, the main thread included.
    pub(super) threads: usize,
    /// The number of processors of the server, and how many of the host's are free.
    pub(super) processors: Option<(usize, f64)>,
    pub(super) used_memory: f64,
    /// 0 without a limit.
    pub(super) maxmemory: f64,
    pub(super) evicts_nothing: bool,
    pub(super) evicted_per_second: f64,
    pub(super) rss: f64,
    pub(super) system_memory: f64,
    /// Bytes in and out.
    pub(super) bytes_per_second: f64,
}

/// The limit of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LimitVerdict {
    /// In one or two words, for programs.
    pub(super) limit: &'static str,
    /// The reason.
    pub(super) finding: String,
    /// The advised change.
    pub(super) advice: String,
}

fn verdict(limit: &'static str, finding: String, advice: impl Into<String>) -> LimitVerdict {
    LimitVerdict { limit, finding, advice: advice.into() }
}

fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}

pub(super) fn judge(m: &Measures) -> LimitVerdict {
    if m.is_loading {
        let finding = "keys are being loaded".to_owned();
        return verdict("loading", finding, "wait: INFO persistence has loading_eta_seconds");
    }
    if let Some(what) = m.writes_fail {
        let finding = format!("writes are refused or not kept: {what} has failed");
        return verdict("disk", finding, "the server's log says why; most often the disk is full");
    }
    memory(m).or_else(|| threads(m)).or_else(|| network(m)).unwrap_or_else(|| client(m))
}

fn memory(m: &Measures) -> Option<LimitVerdict> {
    let share = m.used_memory / m.maxmemory;
    if m.maxmemory > 0.0 && share > FULL && (m.evicted_per_second > 0.0 || m.evicts_nothing) {
        let finding = match m.evicts_nothing {
            true => format!("memory is at {} of maxmemory, and nothing is evicted", percent(share)),
            false => format!(
                "memory is at {} of maxmemory: {:.0} keys a second are evicted",
                percent(share),
                m.evicted_per_second
            ),
        };
        let advice = match m.evicts_nothing {
            true => "raise maxmemory, or set maxmemory-policy to allkeys-lru for a cache",
            false => "raise maxmemory if the hit rate is too low",
        };
        return Some(verdict("memory", finding, advice));
    }
    if m.system_memory > 0.0 && m.rss / m.system_memory > FULL {
        let finding = format!(
            "the process has {} of the memory of the machine",
            percent(m.rss / m.system_memory)
        );
        return Some(verdict("memory", finding, "set maxmemory below three quarters of it"));
    }
    None
}

fn threads(m: &Measures) -> Option<LimitVerdict> {
    let busiest = m.io.iter().copied().fold(0.0, f64::max);
    let least = m.io.iter().copied().fold(f64::INFINITY, f64::min);
    let main = m.main.unwrap_or(0.0);
    if m.io.is_empty() || m.threads <= 1 {
        return (main > BUSY).then(|| single_thread(m, main));
    }
    if m.kind != ServerKind::Weft && main > BUSY {
        return Some(single_executor(main, busiest));
    }
    if m.kind == ServerKind::Weft && main > BUSY {
        let finding = format!("the main thread is busy for {} of its time", percent(main));
        let advice = "it runs only what is about the process, unless io-threads-execute says \
                      otherwise: CONFIG SET io-threads-execute all; INFO commandstats shows what \
                      it runs";
        return Some(verdict("main thread", finding, advice));
    }
    if busiest <= BUSY {
        return None;
    }
    if m.io.len() > 1 && least < QUIET {
        let finding = format!(
            "one I/O thread is busy for {} of its time, another for {}",
            percent(busiest),
            percent(least)
        );
        let advice = "slow commands or few large clients hold one thread: see the slow log and \
                      CLIENT LIST, and spread requests over more connections";
        return Some(verdict("one I/O thread", finding, advice));
    }
    let finding = format!("the I/O threads are busy for up to {} of their time", percent(busiest));
    Some(match m.processors {
        Some((_, free)) if free < FREE_PROCESSORS => {
            let advice = "no processor of this host is free: a larger machine, or the load \
                          generator elsewhere, would bring more";
            verdict("processors", finding, advice)
        }
        _ => verdict("I/O threads", finding, more_threads(m)),
    })
}

/// The setting for one more thread.
fn more_threads(m: &Measures) -> String {
    let wanted = m.threads + 1;
    match m.kind {
        ServerKind::Weft => format!("CONFIG SET io-threads {wanted}"),
        ServerKind::Redis | ServerKind::Valkey => {
            format!("io-threads {wanted} in the configuration file, and a restart")
        }
    }
}

/// The verdict on a single thread.
fn single_thread(m: &Measures, main: f64) -> LimitVerdict {
    let finding = format!("the only thread is busy for {} of its time", percent(main));
    match m.processors {
        Some((_, free)) if free < FREE_PROCESSORS => {
            let advice = "no processor of this host is free: a larger machine, or the load \
                          generator elsewhere, would bring more";
            verdict("processors", finding, advice)
        }
        _ => {
            let advice = match m.kind {
                // One I/O thread serves no more than the main thread without it.
                ServerKind::Weft => "CONFIG SET io-threads 3, or auto".to_owned(),
                _ => more_threads(m),
            };
            verdict("main thread", finding, advice)
        }
    }
}

fn single_executor(main: f64, busiest: f64) -> LimitVerdict {
    let finding = format!(
        "the main thread, which executes all commands, is busy for {} of its time, the I/O \
         threads for up to {}",
        percent(main),
        percent(busiest)
    );
    let advice = "more I/O threads bring nothing: pipeline, avoid the slowest commands, or spread \
                  the keys over several servers";
    verdict("main thread", finding, advice)
}

fn network(m: &Measures) -> Option<LimitVerdict> {
    (m.bytes_per_second > NETWORK_BYTES).then(|| {
        let finding = format!("{:.1} Gbit/s go over the network", m.bytes_per_second * 8.0 / 1e9);
        verdict("network", finding, "compare with the speed of the link; make values smaller")
    })
}

fn client(m: &Measures) -> LimitVerdict {
    if m.commands_per_second < IDLE_COMMANDS {
        let finding = "hardly any commands come".to_owned();
        return verdict("none", finding, "nothing to change");
    }
    let busiest = m.io.iter().copied().chain(m.main).fold(0.0, f64::max);
    if let Some((processors, free)) = m.processors
        && free < FREE_PROCESSORS
    {
        let finding = format!(
            "no processor of the host is free, and no thread of the server is busy for more than \
             {} of its time, on {processors} processors",
            percent(busiest)
        );
        let advice = "other processes have them, perhaps the load generator: run those elsewhere";
        return verdict("processors", finding, advice);
    }
    let finding = format!(
        "the server waits for its clients: no thread is busy for more than {} of its time",
        percent(busiest)
    );
    verdict("clients", finding, "more connections, or pipelining, bring more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(kind: ServerKind) -> Measures {
        Measures {
            kind,
            is_loading: false,
            writes_fail: None,
            commands_per_second: 1e5,
            main: Some(0.1),
            io: vec![0.3, 0.3],
            threads: 3,
            processors: Some((4, 2.0)),
            used_memory: 1e9,
            maxmemory: 0.0,
            evicts_nothing: true,
            evicted_per_second: 0.0,
            rss: 1e9,
            system_memory: 8e9,
            bytes_per_second: 1e6,
        }
    }

    /// The limit and the beginning of the advice.
    #[track_caller]
    fn check(edit: impl Fn(&mut Measures), expected: [(&str, &str); 3]) {
        for (kind, (limit, advice)) in
            [ServerKind::Weft, ServerKind::Redis, ServerKind::Valkey].into_iter().zip(expected)
        {
            let mut measures = quiet(kind);
            edit(&mut measures);
            let verdict = judge(&measures);
            assert_eq!(verdict.limit, limit, "{kind:?}: {verdict:?}");
            assert!(verdict.advice.starts_with(advice), "{kind:?}: {verdict:?}");
        }
    }

    #[test]
    fn each_limit_is_found() {
        let more = "more connections";
        check(|_| (), [("clients", more); 3]);
        check(|m| m.commands_per_second = 5.0, [("none", "nothing"); 3]);
        check(|m| m.is_loading = true, [("loading", "wait"); 3]);
        check(|m| m.writes_fail = Some("the last save"), [("disk", "the server's log"); 3]);
        let restart = "io-threads 4 in the configuration file";
        check(
            |m| m.io = vec![0.9, 0.95],
            [
                ("I/O threads", "CONFIG SET io-threads 4"),
                ("I/O threads", restart),
                ("I/O threads", restart),
            ],
        );
        check(
            |m| (m.io, m.processors) = (vec![0.9, 0.95], Some((2, 0.1))),
            [("processors", "no processor"); 3],
        );
        check(|m| m.processors = Some((4, 0.1)), [("processors", "other processes"); 3]);
        check(|m| m.io = vec![0.2, 0.95], [("one I/O thread", "slow commands"); 3]);
        check(|m| m.bytes_per_second = 1.2e9, [("network", "compare"); 3]);
        check(
            |m| m.main = Some(0.95),
            [
                ("main thread", "it runs only"),
                ("main thread", "more I/O threads bring nothing"),
                ("main thread", "more I/O threads bring nothing"),
            ],
        );
    }

    #[test]
    fn a_single_thread_is_the_limit_when_it_is_busy() {
        let single = |m: &mut Measures| {
            (m.main, m.io, m.threads) = (Some(0.95), Vec::new(), 1);
        };
        let restart = "io-threads 2 in the configuration file";
        check(
            single,
            [
                ("main thread", "CONFIG SET io-threads 3"),
                ("main thread", restart),
                ("main thread", restart),
            ],
        );
        check(
            |m| {
                single(m);
                m.processors = Some((1, 0.0));
            },
            [("processors", "no processor"); 3],
        );
        // The load of a server on another host is unknown.
        check(
            |m| (m.main, m.io, m.threads) = (None, Vec::new(), 1),
            [("clients", "more connections"); 3],
        );
    }

    #[test]
    fn memory_comes_before_threads() {
        check(
            |m| (m.maxmemory, m.io) = (1.01e9, vec![0.99, 0.99]),
            [("memory", "raise maxmemory, or set maxmemory-policy"); 3],
        );
        check(
            |m| (m.maxmemory, m.evicts_nothing, m.evicted_per_second) = (1.01e9, false, 5.0),
            [("memory", "raise maxmemory if"); 3],
        );
        // A full cache that evicts nothing now is normal.
        check(
            |m| (m.maxmemory, m.evicts_nothing) = (1.01e9, false),
            [("clients", "more connections"); 3],
        );
        check(|m| m.rss = 7.9e9, [("memory", "set maxmemory below"); 3]);
    }
}
