//! INFO (<https://redis.io/docs/latest/commands/info/>): sections of `name:value` lines.
//!
//! Names are those of Redis, because tools look for them. A line is shown only if its value is
//! correct. The counters of features that do not exist are zero.

mod persistence;
mod sections;
mod statistics;

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::Error;
use resp::{Args, Reply};

use super::footprint::Footprint;
use crate::config::Config;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::worker::Worker;
use crate::state::node::Node;
use crate::stats::hot_keys::HotkeysSession;
use crate::stats::totals::ThreadSums;

/// The command. It runs on the main thread, which can ask for the figures of the process.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("info", -1, Group::Server, "1.0.0")
        .summary("Returns information about the server and its statistics.")
        .flags(Flags::LOADING.with(Flags::STALE).with(Flags::MAIN))
        .category(command::Category::DANGEROUS)
        .scope(command::ShardScope::KeysAndFree)
        .arguments(&[Argument::new("section", Shape::String).optional().multiple()])
        .history(&[("7.0.0", "Takes several sections.")])
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
    info,
)];

/// One section.
struct Section {
    /// Its heading; a request may write it in any case.
    name: &'static str,
    /// Whether it is shown if no section is given.
    default: bool,
    write: fn(&InfoInput<'_>, &mut InfoPage),
}

/// The sections in the order in which they are shown, which does not depend on the request.
const SECTIONS: &[Section] = &[
    Section { name: "Server", default: true, write: sections::server },
    Section { name: "Clients", default: true, write: sections::clients },
    Section { name: "Memory", default: true, write: sections::memory },
    Section { name: "Persistence", default: true, write: persistence::write },
    Section { name: "Threads", default: true, write: statistics::threads },
    Section { name: "Stats", default: true, write: statistics::stats },
    Section { name: "Replication", default: true, write: sections::replication },
    Section { name: "CPU", default: true, write: sections::cpu },
    Section { name: "Hotkeys", default: true, write: sections::hotkeys },
    Section { name: "Modules", default: true, write: |_, _| {} },
    Section { name: "Commandstats", default: false, write: statistics::commands },
    Section { name: "Errorstats", default: true, write: statistics::errors },
    Section { name: "Latencystats", default: false, write: statistics::latencies },
    Section { name: "Cluster", default: true, write: sections::cluster },
    Section { name: "Keyspace", default: true, write: sections::keyspace },
    Section { name: "Keysizes", default: true, write: sections::key_sizes },
];

impl Section {
    fn is_asked_for(&self, asked: &[&[u8]]) -> bool {
        let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        asked.is_empty() && self.default
            || asked.iter().any(|word| {
                is(word, self.name)
                    || is(word, "all")
                    || is(word, "everything")
                    || self.default && is(word, "default")
            })
    }
}

/// The data from which sections are written.
struct InfoInput<'a> {
    node: &'a Node,
    worker: &'a Worker,
    config: &'a Config,
    memory: &'a Footprint,
    /// The counters of each thread, by number.
    threads: &'a [ThreadSums],
    /// The session of HOTKEYS, also after its end.
    hotkeys: Option<&'a HotkeysSession>,
    /// The sum over all threads.
    total: &'a ThreadSums,
}

/// The text so far.
#[derive(Default)]
struct InfoPage {
    text: String,
}

impl InfoPage {
    fn heading(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push_str("\r\n");
        }
        self.text.push_str(&format!("# {name}\r\n"));
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        self.text.push_str(&format!("{name}:{value}\r\n"));
    }

    /// Writes a number of bytes, and a `_human` line with a unit.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.line(name, bytes);
        let mut human = Vec::new();
        base::size::push_human_bytes(&mut human, bytes);
        self.line(&format!("{name}_human"), String::from_utf8_lossy(&human));
    }

    /// Writes the counters of features that do not exist.
    fn zeros(&mut self, names: &[&str]) {
        for name in names {
            self.line(name, 0);
        }
    }
}

fn info(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let asked: Vec<&[u8]> = args.collect();
    let memory = Footprint::take(cx);
    let node = &cx.worker.node;
    let config = node.config();
    let threads = node.thread_sums();
    let mut total = ThreadSums::default();
    for thread in &threads {
        total.add(thread);
    }
    let hotkeys = node.hotkeys.lock().clone();
    let snapshot = InfoInput {
        node,
        hotkeys: hotkeys.as_deref(),
        worker: cx.worker,
        config: &config,
        memory: &memory,
        threads: &threads,
        total: &total,
    };
    // The sections need no keyspace.
    let page = cx.outside(|_| {
        let mut page = InfoPage::default();
        for section in SECTIONS.iter().filter(|section| section.is_asked_for(&asked)) {
            if section.name == "Hotkeys" && snapshot.hotkeys.is_none() {
                continue;
            }
            page.heading(section.name);
            (section.write)(&snapshot, &mut page);
        }
        page
    });
    reply.verbatim("txt", page.text.as_bytes());
    Ok(())
}
