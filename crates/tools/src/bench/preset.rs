//! `weft bench preset`: Weft, the floor and the peers side by side, as Markdown tables.
//!
//! A preset is a list of command lines of `bench compare`, `bench memory` and `bench stall`: how
//! the servers are started, and under which load. Nothing is measured here. Peers are the servers
//! found in a folder; without one, Weft is compared with the floor only.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Parser;

use super::args::{BenchArgs, BenchPreset, PresetArgs};
use super::server_table::{ended, print};
use crate::Error;
use crate::interrupt::interrupted_flag;
use crate::servers::certificates::SelfSigned;

/// Names the folder of the peers when `--peers` is not given.
const PEERS_VARIABLE: &str = "WEFT_PEERS";

/// The peers' columns, with their programs in `bin` of the folder.
const PEERS: &[(&str, &str)] = &[("redis", "redis-server"), ("valkey", "valkey-server")];

/// The column of the server under test.
const SUBJECT: &str = "weft";

/// Workloads and pipeline depth of the tables.
const GET_SET: &str = "get,set";
const COMBINED: &str = "multi_set10,watch_exec,eval_get,evalsha_get,fcall_get,eval_set10,\
                        evalsha_set10,mixed_eval,get,get_acl";
const ON_THREADS: &str = "get,set,mixed_eval";
const PIPELINE: &str = "16";

/// The server on core 0, the load on core 1.
const TWO_CORES: [&str; 4] = ["--pin-servers", "0", "--pin", "1"];

/// Connections whose memory is measured: fewer than the 10,000 that servers allow by default.
const IDLE_CONNECTIONS: &str = "9000";

/// The figures that count the elements of collections.
const ELEMENTS: &str =
    "integers,small-hashes,big-hash,big-sorted-set,list,small-sets,big-set,stream";

/// Keys that are rewritten.
const CHURNED_KEYS: &str = "200000";

/// One table: a subcommand of `weft bench` with its servers and further arguments.
struct Question {
    title: &'static str,
    kind: &'static str,
    /// Columns and command lines, in which the bench fills in `{port}` and `{dir}`.
    servers: Vec<(String, Vec<String>)>,
    args: Vec<String>,
}
struct Programs {
    weft: PathBuf,
    /// Columns and programs.
    peers: Vec<(&'static str, PathBuf)>,
}

/// The command line of a question.
#[derive(Debug, Parser)]
#[command(name = "weft bench", disable_help_flag = true)]
struct PresetLine {
    #[command(flatten)]
    args: BenchArgs,
}

/// Prints the tables of the presets, each by `measure`, or the command lines that print them.
pub(super) fn print_tables(
    args: &PresetArgs,
    measure: fn(BenchArgs) -> Result<(), Error>,
) -> Result<(), Error> {
    let peers = match args.peers.clone().or(std::env::var_os(PEERS_VARIABLE).map(Into::into)) {
        Some(folder) => found_peers(&folder)?,
        None => Vec::new(),
    };
    if peers.is_empty() {
        say!("no peers: name their folder with --peers or {PEERS_VARIABLE}");
    }
    let weft = std::env::current_exe().map_err(Error::io("find this program's file"))?;
    let programs = Programs { weft, peers };
    let certificates = match args.presets.contains(&BenchPreset::Tls) {
        true => Some(SelfSigned::create()?),
        false => None,
    };
    let (stop, mut failed) = (interrupted_flag()?, 0);
    for question in questions(args, &programs, certificates.as_ref()) {
        let words = question.words()?;
        if args.show {
            let line = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
            print(&format!("weft {line}\n"))?;
            continue;
        }
        print(&format!("\n{}\n\n", question.title))?;
        match measure(parsed(&words)?) {
            Ok(()) => {}
            Err(Error::NotMeasured { count }) => failed += count,
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                say!("{}: FAILED: {error}", question.title);
                failed += 1;
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
    }
    // The command lines that were shown name its files.
    if let (true, Some(files)) = (args.show, certificates) {
        say!("the certificate lies in {}", files.keep().display());
    }
    ended(false, failed)
}

fn parsed(words: &[String]) -> Result<BenchArgs, Error> {
    let line = PresetLine::try_parse_from(words);
    line.map(|line| line.args).map_err(|error| Error::Usage(error.to_string()))
}

fn found_peers(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, Error> {
    // Servers are started in their own folders, where a relative path would not be found.
    let folder = folder.canonicalize().map_err(Error::io(format!("open {}", folder.display())))?;
    let program = |(name, file): &(&'static str, &str)| (*name, folder.join("bin").join(file));
    let found: Vec<_> = PEERS.iter().map(program).filter(|(_, path)| path.is_file()).collect();
    match found.is_empty() {
        true => {
            let text = format!("{} holds no bin/redis-server or valkey-server", folder.display());
            Err(Error::Usage(text))
        }
        false => Ok(found),
    }
}

fn questions(
    args: &PresetArgs,
    programs: &Programs,
    certificates: Option<&SelfSigned>,
) -> Vec<Question> {
    let on_core = |title, load: &[&str], rounds, seconds| {
        let question = Question::new(title, "compare", programs.servers(&[], 1), load);
        question.with(&TWO_CORES).lasting(args, rounds, seconds)
    };
    let of = |preset: &BenchPreset| match preset {
        BenchPreset::GetSet => vec![on_core(
            "GET and SET: server on core 0, load on core 1, 50 clients, 100,000 values of 256 B",
            &["--workload", GET_SET, "--pipelines", PIPELINE],
            5,
            5.0,
        )],
        BenchPreset::All => vec![on_core(
            "Every workload: server on core 0, load on core 1, 50 clients",
            &["--all", "--pipelines", PIPELINE],
            1,
            1.0,
        )],
        // Most of these rows say with how many clients and at which depth they are measured.
        BenchPreset::Transactions => vec![on_core(
            "Transactions, scripts and users: server on core 0, load on core 1",
            &["--workload", COMBINED, "--pipelines", PIPELINE],
            5,
            5.0,
        )],
        BenchPreset::Threads => vec![threads_on(args, programs)],
        BenchPreset::Tls => {
            certificates.map(|files| over_tls(args, programs, files)).into_iter().collect()
        }
        BenchPreset::Memory => memory(programs).into(),
        BenchPreset::AppendOnly => vec![append_only(args, programs)],
        // Peers have active defragmentation on.
        BenchPreset::Fragmentation => vec![Question::new(
            "Resident memory after 50 rewrites of all values in random sizes over the same data \
             freshly loaded",
            "memory",
            programs.servers(&[], 1),
            &["--figures", "churn", "--keys", CHURNED_KEYS],
        )],
        BenchPreset::Stall => vec![stalls(programs)],
    };
    args.presets.iter().flat_map(of).collect()
}

/// Peers run at both of their settings, and the better one counts.
fn threads_on(args: &PresetArgs, programs: &Programs) -> Question {
    let one = |name: &str| format!("{name}, 1 thread");
    let two = |name: &str| format!("{name}, 2 threads");
    let mut servers = vec![(SUBJECT.to_owned(), programs.weft(&[], 3))];
    for (name, program) in &programs.peers {
        servers.push((two(name), peer(program, &[], 2)));
        servers.push((one(name), peer(program, &[], 1)));
    }
    let title = "Threads on: weft with io-threads 3, cores shared with a load of 2 threads";
    let load = ["--workload", ON_THREADS, "--pipelines", PIPELINE, "--threads", "2"];
    Question::new(title, "compare", servers, &load).lasting(args, 5, 5.0)
}

fn over_tls(args: &PresetArgs, programs: &Programs, certificates: &SelfSigned) -> Question {
    let files = certificates.server_options();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let title = "TLS: server on core 0, load on core 1, 50 clients, 100,000 values of 256 B";
    let load = ["--workload", GET_SET, "--tls", "--cacert", &certificates.authority()];
    let question = Question::new(title, "compare", programs.servers(&files, 1), &load);
    question.with(&TWO_CORES).lasting(args, 5, 5.0)
}

/// Sizes with one thread, idle CPU with threads that could be busy.
fn memory(programs: &Programs) -> [Question; 3] {
    let question = |title, threads, figures| {
        let load = ["--figures", figures, "--connections", IDLE_CONNECTIONS];
        Question::new(title, "memory", programs.servers(&[], threads), &load)
    };
    [
        question("Resident memory", 1, "keys,expiring-keys,connections"),
        question("Resident memory of 1M elements", 1, ELEMENTS),
        question("Idle, 4 threads", 4, "idle"),
    ]
}

/// With one thread for commands, so that the rows show the cost of the file.
fn append_only(args: &PresetArgs, programs: &Programs) -> Question {
    let policies: [(&str, &[&str]); 3] = [
        ("", &[]),
        (", everysec", &["--appendonly", "yes", "--appendfsync", "everysec"]),
        (", always", &["--appendonly", "yes", "--appendfsync", "always"]),
    ];
    let with = |(policy, more): (&str, &[&str])| {
        let named = move |(name, command): (String, Vec<String>)| {
            (format!("{name}{policy}"), command.into_iter().chain(words(more)).collect())
        };
        programs.servers(&[], 1).into_iter().map(named).collect::<Vec<_>>()
    };
    let title = "SET with an append-only file: cores shared with the load, 50 clients";
    let load = ["--workload", "set", "--pipelines", PIPELINE, "--no-floor"];
    let servers = policies.into_iter().flat_map(with).collect();
    Question::new(title, "compare", servers, &load).lasting(args, 5, 5.0)
}

/// Peers execute commands on one thread whatever `io-threads` says, so they run with 1. All threads
/// of Weft have clients, however few processors there are: with clients on two threads only, two
/// slow commands would leave no other thread to measure.
fn stalls(programs: &Programs) -> Question {
    let all_threads = words(&["--io-threads-always-active", "yes"]);
    let weft = programs.weft(&[], 4).into_iter().chain(all_threads).collect();
    let mut servers = vec![(SUBJECT.to_owned(), weft)];
    let peers = programs.peers.iter();
    servers.extend(peers.map(|(name, program)| ((*name).to_owned(), peer(program, &[], 1))));
    let title = "Slow commands: the longest reply to other clients, weft with io-threads 4";
    Question::new(title, "stall", servers, &[])
}

impl Programs {
    /// Weft and every peer with as many threads.
    fn servers(&self, more: &[&str], threads: usize) -> Vec<(String, Vec<String>)> {
        let peers = self.peers.iter();
        let peers = peers.map(|(name, program)| ((*name).to_owned(), peer(program, more, threads)));
        std::iter::once((SUBJECT.to_owned(), self.weft(more, threads))).chain(peers).collect()
    }

    fn weft(&self, more: &[&str], threads: usize) -> Vec<String> {
        let mut command = vec![self.weft.display().to_string(), "server".to_owned()];
        command.extend(server_options(more, threads));
        command
    }
}

fn peer(program: &Path, more: &[&str], threads: usize) -> Vec<String> {
    let mut command = vec![program.display().to_string()];
    command.extend(server_options(more, threads));
    command
}

/// The options that all servers have; nothing is saved, so that only requests cost.
fn server_options(more: &[&str], threads: usize) -> Vec<String> {
    let listen: &[&str] = if more.is_empty() { &["--port", "{port}"] } else { more };
    let threads = threads.to_string();
    let rest = ["--dir", "{dir}", "--save", "", "--appendonly", "no", "--io-threads", &threads];
    words(listen).chain(words(&rest)).collect()
}

fn words(words: &[&str]) -> impl Iterator<Item = String> {
    words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter()
}

impl Question {
    fn new(
        title: &'static str,
        kind: &'static str,
        servers: Vec<(String, Vec<String>)>,
        args: &[&str],
    ) -> Question {
        Question { title, kind, servers, args: words(args).collect() }
    }

    /// With further arguments.
    fn with(mut self, more: &[&str]) -> Question {
        self.args.extend(words(more));
        self
    }

    /// With so many rounds of so many seconds, unless the command line says otherwise.
    fn lasting(self, args: &PresetArgs, rounds: u16, seconds: f64) -> Question {
        let rounds = args.rounds.unwrap_or(rounds).to_string();
        let seconds = args.duration.map_or(seconds, |time| time.as_secs_f64()).to_string();
        self.with(&["--rounds", &rounds, "--duration", &seconds])
    }

    /// The words of its command line after the name of the program.
    fn words(&self) -> Result<Vec<String>, Error> {
        let mut all: Vec<String> =
            words(&["bench", self.kind, "--markdown", "--subject", SUBJECT]).collect();
        for (name, command) in &self.servers {
            let line = shlex::try_join(command.iter().map(String::as_str));
            let line = line.map_err(|e| Error::Usage(format!("{name} cannot be started: {e}")))?;
            all.extend(["--server".to_owned(), format!("{name}={line}")]);
        }
        all.extend(self.args.iter().cloned());
        Ok(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use clap::ValueEnum;

    use super::*;

    fn args(presets: &[BenchPreset]) -> PresetArgs {
        let presets = presets.to_vec();
        PresetArgs { presets, peers: None, rounds: None, duration: None, show: false }
    }

    fn asked(args: &PresetArgs) -> Vec<Question> {
        let peers = vec![("redis", "peers/bin/redis-server".into())];
        let certificates = SelfSigned::create().unwrap();
        questions(args, &Programs { weft: "weft".into(), peers }, Some(&certificates))
    }

    fn names(presets: &[BenchPreset]) -> Vec<Vec<String>> {
        let names = |question: Question| question.servers.into_iter().map(|(name, _)| name);
        asked(&args(presets)).into_iter().map(|question| names(question).collect()).collect()
    }

    #[test]
    fn each_preset_measures_every_server() {
        let both = ["weft", "redis"];
        for (preset, questions) in [
            (BenchPreset::GetSet, 1),
            (BenchPreset::GetSet, 1),
            (BenchPreset::All, 1),
            (BenchPreset::Transactions, 1),
            (BenchPreset::Tls, 1),
            (BenchPreset::Memory, 3),
            (BenchPreset::Fragmentation, 1),
            (BenchPreset::Stall, 1),
        ] {
            assert_eq!(names(&[preset]), vec![both; questions], "{preset:?}");
        }
        let threads = ["weft", "redis, 2 threads", "redis, 1 thread"];
        assert_eq!(names(&[BenchPreset::Threads]), [threads]);
        let policies = ["", ", everysec", ", always"];
        let of = |policy: &str| [format!("weft{policy}"), format!("redis{policy}")];
        assert_eq!(names(&[BenchPreset::AppendOnly]), [policies.map(of).concat()]);
        assert_eq!(names(&[BenchPreset::Threads, BenchPreset::Memory]).len(), 4);
    }

    #[test]
    fn every_question_is_a_command_line() {
        for question in asked(&args(BenchPreset::value_variants())) {
            let parsed = parsed(&question.words().unwrap());
            assert!(parsed.is_ok_and(|args| args.command.is_some()), "{}", question.title);
        }
    }

    #[test]
    fn rounds_and_seconds_can_be_chosen() {
        let line = |args: &PresetArgs| asked(args)[0].args.join(" ");
        assert!(line(&args(&[BenchPreset::GetSet])).ends_with("--rounds 5 --duration 5"));
        let (rounds, duration) = (Some(1), Some(Duration::from_millis(500)));
        let quick = PresetArgs { rounds, duration, ..args(&[BenchPreset::GetSet]) };
        assert!(line(&quick).ends_with("--rounds 1 --duration 0.5"));
    }

    #[test]
    fn servers_get_a_port_threads_and_nothing_to_save() {
        let words = asked(&args(&[BenchPreset::Stall]))[0].words().unwrap();
        let line = words.iter().find(|word| word.starts_with("weft=")).unwrap();
        assert_eq!(
            line.replace("'{port}'", "{port}").replace("'{dir}'", "{dir}"),
            "weft=weft server --port {port} --dir {dir} --save '' --appendonly no --io-threads 4 \
             --io-threads-always-active yes"
        );
        let peer = words.iter().find(|word| word.starts_with("redis=")).unwrap();
        assert!(peer.ends_with("--io-threads 1"), "{peer}");
    }
}
