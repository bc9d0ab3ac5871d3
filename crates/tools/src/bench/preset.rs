//! `cargo xtask bench`: Weft, the floor and the peers side by side, as tables in Markdown.
//!
//! This program is built for development, so it measures nothing itself: it builds the release
//! binary and has its `bench compare`, `bench memory` and `bench stall` do so. This file says how
//! each server is started for which question. Peers are the servers found in a folder that is named
//! by `--peers` or `WEFT_PEERS`; without one, Weft is compared with the floor alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::Failure;

use crate::server;

pub mod tls;

use tls::Certificates;

/// Where `--peers` comes from when it is not given.
const PEERS_VARIABLE: &str = "WEFT_PEERS";

/// The servers that may be found in the `bin` folder of the peers, with their column's name.
const PEERS: &[(&str, &str)] = &[("redis", "redis-server"), ("valkey", "valkey-server")];

/// The column of the server under test.
const SUBJECT: &str = "weft";

/// Workloads and pipeline depth of the tables.
const GET_SET: &str = "get,set";
const COMBINED: &str = "multi_set10,watch_exec,eval_get,evalsha_get,fcall_get,eval_set10,\
                        evalsha_set10,mixed_eval,get,get_acl";
const ON_THREADS: &str = "get,set,mixed_eval";
const PIPELINE: &str = "16";

/// Connections whose memory is measured: fewer than the 10,000 that servers allow by default.
const IDLE_CONNECTIONS: &str = "9000";

/// The figures that count the elements of collections.
const ELEMENTS: &str =
    "integers,small-hashes,big-hash,big-sorted-set,list,small-sets,big-set,stream";

/// Keys that are rewritten.
const CHURNED_KEYS: &str = "200000";

/// What to measure; GET and SET on one pinned core when nothing is said.
#[derive(clap::Args)]
pub struct Options {
    /// Folder whose bin/redis-server and bin/valkey-server are compared; default: $WEFT_PEERS
    #[arg(long, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// Every workload of the bench, on one pinned core
    #[arg(long)]
    all: bool,
    /// Transactions, scripts, functions and the rights of a user, on one pinned core
    #[arg(long)]
    transactions: bool,
    /// GET, SET, and GET beside EVALSHA with I/O threads, all cores shared with the load
    #[arg(long)]
    threads_on: bool,
    /// GET and SET over TLS, on one pinned core
    #[arg(long)]
    tls: bool,
    /// Bytes per key and per connection, and CPU when idle
    #[arg(long)]
    memory: bool,
    /// SET without an append-only file and with one under two policies, all cores shared with the
    /// load
    #[arg(long)]
    append_only: bool,
    /// Memory after many rewrites, with active defragmentation where there is one
    #[arg(long)]
    fragmentation: bool,
    /// The longest reply beside each slow command, with I/O threads
    #[arg(long)]
    stall: bool,
    /// Rounds over all servers, of which the median is taken [default: 5, with --all 1]
    #[arg(long, value_name = "ROUNDS")]
    rounds: Option<u32>,
    /// Seconds of each round [default: 5, with --all 1]
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
}

/// One table: a subcommand of `weft bench` with its servers and further arguments.
struct Question {
    title: &'static str,
    kind: &'static str,
    /// Columns and command lines, in which `{port}` and `{dir}` stand for what the bench picks.
    servers: Vec<(String, Vec<String>)>,
    args: Vec<String>,
}

/// What servers are started from.
struct Programs {
    weft: PathBuf,
    /// Columns and programs.
    peers: Vec<(&'static str, PathBuf)>,
}

/// Builds the release binary and prints a table for each question.
///
/// # Errors
/// Fails when the binary does not build, the folder of peers holds none, or a measurement fails.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let peers = match options.peers.clone().or(std::env::var_os(PEERS_VARIABLE).map(Into::into)) {
        Some(folder) => found_peers(&folder)?,
        None => Vec::new(),
    };
    if peers.is_empty() {
        eprintln!("bench: no peers: name their folder with --peers or {PEERS_VARIABLE}");
    }
    let programs = Programs { weft: server::build(root, true)?.into(), peers };
    let certificates = options.tls.then(Certificates::create).transpose()?;
    for question in questions(options, &programs, certificates.as_ref()) {
        println!("\n{}\n", question.title);
        ask(root, &programs.weft, &question)?;
    }
    Ok(())
}

fn found_peers(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let program = |(name, file): &(&'static str, &str)| (*name, folder.join("bin").join(file));
    let found: Vec<_> = PEERS.iter().map(program).filter(|(_, path)| path.is_file()).collect();
    match found.is_empty() {
        true => Err(format!("{} holds no bin/redis-server or valkey-server", folder.display())),
        false => Ok(found),
    }
}

fn questions(
    options: &Options,
    programs: &Programs,
    certificates: Option<&Certificates>,
) -> Vec<Question> {
    let Options { all, transactions, threads_on: threads, tls, memory: sizes, .. } = *options;
    let Options { append_only: logged, fragmentation, stall, .. } = *options;
    let said = [all, transactions, threads, tls, sizes, logged, fragmentation, stall];
    let plain = !said.contains(&true);
    let mut questions = Vec::new();
    if plain {
        questions.push(pinned(options, programs));
    }
    if options.all {
        questions.push(every_workload(options, programs));
    }
    if options.transactions {
        questions.push(combined(options, programs));
    }
    if options.threads_on {
        questions.push(threads_on(options, programs));
    }
    if let Some(certificates) = certificates {
        questions.push(over_tls(options, programs, certificates));
    }
    if options.memory {
        questions.extend(memory(programs));
    }
    if options.append_only {
        questions.push(append_only(options, programs));
    }
    if options.fragmentation {
        questions.push(churn(programs));
    }
    if options.stall {
        questions.push(stalls(programs));
    }
    questions
}

fn pinned(options: &Options, programs: &Programs) -> Question {
    Question {
        title: "GET and SET: server on core 0, load on core 1, 50 clients, 100,000 values of 256 B",
        kind: "compare",
        servers: programs.servers(&[], 1),
        args: words(&["--workload", GET_SET, "--pipelines", PIPELINE])
            .chain(on_two_cores())
            .chain(extent(options, 5, 5.0))
            .collect(),
    }
}

fn every_workload(options: &Options, programs: &Programs) -> Question {
    Question {
        title: "Every workload: server on core 0, load on core 1, 50 clients",
        kind: "compare",
        servers: programs.servers(&[], 1),
        args: words(&["--all", "--pipelines", PIPELINE])
            .chain(on_two_cores())
            .chain(extent(options, 1, 1.0))
            .collect(),
    }
}

/// Most of these rows say with how many clients and at which depth they are measured.
fn combined(options: &Options, programs: &Programs) -> Question {
    Question {
        title: "Transactions, scripts and users: server on core 0, load on core 1",
        kind: "compare",
        servers: programs.servers(&[], 1),
        args: words(&["--workload", COMBINED, "--pipelines", PIPELINE])
            .chain(on_two_cores())
            .chain(extent(options, 5, 5.0))
            .collect(),
    }
}

/// Peers at both of their settings, since the goal speaks of the best.
fn threads_on(options: &Options, programs: &Programs) -> Question {
    let one = |name: &str| format!("{name}, 1 thread");
    let two = |name: &str| format!("{name}, 2 threads");
    let mut servers = vec![(SUBJECT.to_owned(), programs.weft(&[], 3))];
    for (name, program) in &programs.peers {
        servers.push((two(name), peer(program, &[], 2)));
        servers.push((one(name), peer(program, &[], 1)));
    }
    Question {
        title: "Threads on: weft with io-threads 3, cores shared with a load of 2 threads",
        kind: "compare",
        servers,
        args: words(&["--workload", ON_THREADS, "--pipelines", PIPELINE, "--threads", "2"])
            .chain(extent(options, 5, 5.0))
            .collect(),
    }
}

fn over_tls(options: &Options, programs: &Programs, certificates: &Certificates) -> Question {
    let files = certificates.server_options();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let authority = certificates.authority();
    Question {
        title: "TLS: server on core 0, load on core 1, 50 clients, 100,000 values of 256 B",
        kind: "compare",
        servers: programs.servers(&files, 1),
        args: words(&["--workload", GET_SET, "--tls", "--cacert", &authority])
            .chain(on_two_cores())
            .chain(extent(options, 5, 5.0))
            .collect(),
    }
}

/// Sizes as the servers come, and idleness with threads that could be busy.
fn memory(programs: &Programs) -> [Question; 3] {
    let question = |title, threads, figures| Question {
        title,
        kind: "memory",
        servers: programs.servers(&[], threads),
        args: words(&["--figures", figures, "--connections", IDLE_CONNECTIONS]).collect(),
    };
    [
        question("Resident memory", 1, "keys,expiring-keys,connections"),
        question("Resident memory of 1M elements", 1, ELEMENTS),
        question("Idle, 4 threads", 4, "idle"),
    ]
}

/// Servers execute commands on one thread, since the question is what the file costs beside it.
fn append_only(options: &Options, programs: &Programs) -> Question {
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
    Question {
        title: "SET with an append-only file: cores shared with the load, 50 clients",
        kind: "compare",
        servers: policies.into_iter().flat_map(with).collect(),
        args: words(&["--workload", "set", "--pipelines", PIPELINE, "--no-floor"])
            .chain(extent(options, 5, 5.0))
            .collect(),
    }
}

/// Peers have active defragmentation on.
fn churn(programs: &Programs) -> Question {
    Question {
        title: "Resident memory after 50 rewrites of all values in random sizes over the same data \
                freshly loaded",
        kind: "memory",
        servers: programs.servers(&[], 1),
        args: words(&["--figures", "churn", "--keys", CHURNED_KEYS]).collect(),
    }
}

/// Peers execute commands on one thread whatever `io-threads` says, so they run with 1.
fn stalls(programs: &Programs) -> Question {
    let mut servers = vec![(SUBJECT.to_owned(), programs.weft(&[], 4))];
    let peers = programs.peers.iter();
    servers.extend(peers.map(|(name, program)| ((*name).to_owned(), peer(program, &[], 1))));
    Question {
        title: "Slow commands: the longest reply to other clients, weft with io-threads 4",
        kind: "stall",
        servers,
        args: Vec::new(),
    }
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

/// What all servers understand alike: nothing is saved, so that only requests cost.
fn server_options(more: &[&str], threads: usize) -> Vec<String> {
    let listen: &[&str] = if more.is_empty() { &["--port", "{port}"] } else { more };
    let threads = threads.to_string();
    let rest = ["--dir", "{dir}", "--save", "", "--appendonly", "no", "--io-threads", &threads];
    words(listen).chain(words(&rest)).collect()
}

fn on_two_cores() -> impl Iterator<Item = String> {
    words(&["--pin-servers", "0", "--pin", "1"])
}

fn extent(options: &Options, rounds: u32, seconds: f64) -> impl Iterator<Item = String> {
    let rounds = options.rounds.unwrap_or(rounds).to_string();
    let seconds = options.duration.unwrap_or(seconds).to_string();
    words(&["--rounds", &rounds, "--duration", &seconds]).collect::<Vec<_>>().into_iter()
}

fn words(words: &[&str]) -> impl Iterator<Item = String> {
    words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter()
}

fn ask(root: &Path, weft: &Path, question: &Question) -> Result<(), Failure> {
    let mut command = Command::new(weft);
    command.args(["bench", question.kind, "--markdown", "--subject", SUBJECT]);
    for (name, words) in &question.servers {
        let line = shlex::try_join(words.iter().map(String::as_str))
            .map_err(|e| format!("{name} cannot be started: {e}"))?;
        command.args(["--server", &format!("{name}={line}")]);
    }
    let status = command.args(&question.args).current_dir(root).status();
    let status = status.map_err(|e| format!("{} did not start: {e}", weft.display()))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("no figures for '{}': {status}", question.title)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Options = Options {
        peers: None,
        all: false,
        transactions: false,
        threads_on: false,
        tls: false,
        memory: false,
        append_only: false,
        fragmentation: false,
        stall: false,
        rounds: None,
        duration: None,
    };

    fn programs() -> Programs {
        Programs { weft: "weft".into(), peers: vec![("redis", "peers/bin/redis-server".into())] }
    }

    fn names(options: &Options) -> Vec<Vec<String>> {
        let names = |question: Question| question.servers.into_iter().map(|(name, _)| name);
        let questions = questions(options, &programs(), None).into_iter();
        questions.map(|question| names(question).collect()).collect()
    }

    #[test]
    fn each_option_asks_its_question_of_every_server() {
        assert_eq!(names(&NOTHING), [["weft", "redis"]]);
        let threads = Options { threads_on: true, ..NOTHING };
        assert_eq!(names(&threads), [["weft", "redis, 2 threads", "redis, 1 thread"]]);
        let transactions = Options { transactions: true, ..NOTHING };
        assert_eq!(names(&transactions), [["weft", "redis"]]);
        let memory = Options { memory: true, ..NOTHING };
        assert_eq!(names(&memory), [["weft", "redis"]; 3]);
        let fragmentation = Options { fragmentation: true, ..NOTHING };
        assert_eq!(names(&fragmentation), [["weft", "redis"]]);
        let stall = Options { stall: true, ..NOTHING };
        assert_eq!(names(&stall), [["weft", "redis"]]);
        let append_only = Options { append_only: true, ..NOTHING };
        let policies = ["", ", everysec", ", always"];
        let both = |policy: &str| [format!("weft{policy}"), format!("redis{policy}")];
        assert_eq!(names(&append_only), [policies.map(both).concat()]);
        assert_eq!(names(&Options { threads_on: true, memory: true, ..NOTHING }).len(), 4);
    }

    #[test]
    fn questions_name_rows_of_the_bench() {
        for name in [GET_SET, COMBINED, ON_THREADS].iter().flat_map(|names| names.split(',')) {
            assert!(tools::bench::names::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn rounds_and_seconds_can_be_chosen() {
        let args = |options: &Options| pinned(options, &programs()).args.join(" ");
        assert!(args(&NOTHING).ends_with("--rounds 5 --duration 5"));
        let quick = Options { rounds: Some(1), duration: Some(0.5), ..NOTHING };
        assert!(args(&quick).ends_with("--rounds 1 --duration 0.5"));
    }

    #[test]
    fn servers_get_a_port_threads_and_nothing_to_save() {
        let line = shlex::try_join(programs().weft(&[], 3).iter().map(String::as_str));
        let expected =
            "weft server --port {port} --dir {dir} --save '' --appendonly no --io-threads 3";
        assert_eq!(
            line.map(|line| line.replace("'{port}'", "{port}").replace("'{dir}'", "{dir}")),
            Ok(expected.to_owned())
        );
    }

    #[test]
    fn certificates_last_as_long_as_they_are_held() -> Result<(), Failure> {
        let certificates = Certificates::create()?;
        let file = PathBuf::from(certificates.authority());
        assert!(certificates.server_options().contains(&certificates.authority()));
        assert!(std::fs::read_to_string(&file).is_ok_and(|pem| pem.contains("BEGIN CERTIFICATE")));
        drop(certificates);
        assert!(!file.exists());
        Ok(())
    }
}
