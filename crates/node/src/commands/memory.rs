//! MEMORY (<https://redis.io/docs/latest/commands/memory-usage/>).

use base::number::parse_i64;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, ShardScope, Spec};
use engine::{Cx, Error};
use resp::{Args, Reply};
use store::Lookup;

use super::any_handler::AnyHandler;
use super::footprint::{Footprint, percent};
use super::help::{help, help_spec};
use super::map_writer::MapWriter;
use crate::execution::node_cx::NodeCx;

const ALL_SHARDS: &str = "request_policy:all_shards";
const REPORT: &[&str] = &["nondeterministic_output", ALL_SHARDS, "response_policy:special"];

const fn part(name: &'static str, arity: i32) -> Spec {
    Spec::new(name, arity, Group::Server, "4.0.0")
}

/// MEMORY. USAGE looks at a key; the other subcommands ask the process, on the main thread.
pub const ROWS: &[Row<AnyHandler>] = &[Row::container(
    part("memory", -2)
        .summary("A container for commands on the use of memory.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("doctor", 2)
                .summary("Returns a diagnosis of the use of memory.")
                .flags(Flags::MAIN)
                .scope(ShardScope::KeysAndFree)
                .tips(REPORT),
            AnyHandler::Node(doctor),
        ),
        Row::new(help_spec(Group::Server, "4.0.0"), AnyHandler::Node(help)),
        Row::new(
            part("malloc-stats", 2)
                .summary("Returns the report of the allocator.")
                .complexity("Grows with the allocator's arenas; may be slow.")
                .flags(Flags::MAIN)
                .scope(ShardScope::KeysAndFree)
                .tips(REPORT),
            AnyHandler::Node(malloc_stats),
        ),
        Row::new(
            part("purge", 2)
                .summary("Returns unused memory of the allocator to the system.")
                .complexity("Grows with the memory to return; may be slow.")
                .flags(Flags::MAIN)
                .tips(&[ALL_SHARDS, "response_policy:all_succeeded"]),
            AnyHandler::Node(purge),
        ),
        Row::new(
            part("stats", 2)
                .summary("Returns how much memory is used for which purpose.")
                .flags(Flags::MAIN)
                .scope(ShardScope::KeysAndFree)
                .tips(REPORT),
            AnyHandler::Node(stats),
        ),
        Row::new(
            part("usage", -3)
                .summary("Returns the bytes of a key and its value.")
                .complexity("O(N) with N samples.")
                .flags(Flags::READONLY)
                .keys(&[KeySpec::one(2, Access::RO)])
                .arguments(&[
                    Argument::key(),
                    Argument::new("count", Shape::Integer).after("SAMPLES").optional(),
                ]),
            AnyHandler::Data(usage),
        ),
    ],
)];

fn usage(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 2);
    args.seek(3);
    while args.remaining() > 0 {
        let count = if args.take_word("samples") { args.next() } else { None };
        if parse_i64(count.ok_or(Error::Syntax)?).ok_or(Error::NotInteger)? < 0 {
            return Err(Error::Syntax);
        }
    }
    let (db, turn) = cx.db(key);
    match db.lookup(turn, key, Lookup::Quiet) {
        Some(stored) => reply.len(stored.memory_bytes()),
        None => reply.null(),
    }
    Ok(())
}

fn purge(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.outside(|host| host.purge_memory());
    reply.ok();
    Ok(())
}

fn malloc_stats(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.verbatim("txt", cx.outside(|host| host.allocator_report()).as_bytes());
    Ok(())
}

fn stats(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let memory = Footprint::take(cx);
    let mut pairs = MapWriter::begin(reply);
    pairs.number("peak.allocated", memory.peak());
    pairs.number("total.allocated", memory.used());
    pairs.number("startup.allocated", memory.process.startup_bytes);
    // There are no replicas and no cluster. `aof.buffer` is 0 too: INFO shows the log's buffer.
    let replication = ["replication.backlog", "replica.fullsync.buffer", "clients.slaves"];
    for absent in replication.into_iter().chain(["cluster.links", "aof.buffer"]) {
        pairs.number(absent, 0);
    }
    pairs.number("clients.normal", memory.client_bytes);
    pairs.number("lua.caches", memory.scripts.scripts.0);
    pairs.number("functions.caches", memory.scripts.libraries.0);
    pairs.number("script.VMs", memory.scripts.vm_bytes);
    for (number, db) in memory.dbs.iter().enumerate().filter(|(_, db)| db.keys != 0) {
        let mut inner = MapWriter::begin(pairs.field(&format!("db.{number}")));
        inner.number("overhead.hashtable.main", db.slot_bytes);
        // An expiry is part of its key's entry: there is no second table.
        inner.number("overhead.hashtable.expires", 0);
        inner.end();
    }
    pairs.number("overhead.db.hashtable.lut", memory.slot_bytes());
    // A table grows in place, without a second one.
    pairs.number("overhead.db.hashtable.rehashing", 0);
    let keys = memory.keys();
    pairs.number("overhead.total", memory.overhead());
    pairs.number("db.dict.rehashing.count", 0);
    pairs.number("keys.count", keys);
    pairs.number("keys.bytes-per-key", memory.net().checked_div(keys).unwrap_or(0));
    pairs.number("dataset.bytes", memory.dataset());
    pairs.field("dataset.percentage").double(percent(memory.dataset(), memory.net()));
    pairs.field("peak.percentage").double(percent(memory.used(), memory.peak()));
    pairs.number("allocator.allocated", memory.process.allocated_bytes);
    pairs.number("allocator.active", memory.process.active_bytes);
    pairs.number("allocator.resident", memory.process.resident_bytes);
    pairs.number("allocator.muzzy", memory.process.muzzy_bytes);
    for (ratio_name, bytes_name, (ratio, bytes)) in [
        ("allocator-fragmentation.ratio", "allocator-fragmentation.bytes", memory.fragmentation()),
        ("allocator-rss.ratio", "allocator-rss.bytes", memory.retained()),
        ("rss-overhead.ratio", "rss-overhead.bytes", memory.rss_overhead()),
        ("fragmentation", "fragmentation.bytes", memory.total_fragmentation()),
    ] {
        pairs.field(ratio_name).double(ratio);
        pairs.number(bytes_name, bytes);
    }
    pairs.end();
    Ok(())
}

/// Below this use the doctor has no remarks.
const REMARKABLE_BYTES_MIN: u64 = 5 << 20;
/// Lost memory below this causes no remark, whatever its ratio.
const LOST_BYTES_MIN: i64 = 10 << 20;
/// Mean bytes per client above which the doctor remarks on clients.
const CLIENT_BYTES_MAX: u64 = 200 << 10;

fn doctor(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let memory = Footprint::take(cx);
    let clients = cx.worker.node.clients.len();
    reply.verbatim("txt", diagnosis(&memory, clients as u64).as_bytes());
    Ok(())
}

fn diagnosis(memory: &Footprint, clients: u64) -> String {
    if memory.used() < REMARKABLE_BYTES_MIN {
        return "The server holds next to nothing: there is nothing to say about its memory.\n"
            .to_owned();
    }
    let lost =
        |(ratio, bytes): (f64, i64), ratio_max: f64| ratio > ratio_max && bytes > LOST_BYTES_MIN;
    let remarks = [
        (
            memory.peak() > memory.used() / 2 * 3,
            "Peak: at some time the use was at least half as much again. The system may still \
             count that memory to this process; MEMORY PURGE returns unused pages.",
        ),
        (
            lost(memory.fragmentation(), 1.1),
            "Fragmentation: many pages hold few blocks, as after deletions of keys of mixed sizes.",
        ),
        (
            lost(memory.retained(), 1.1),
            "Unused pages: the allocator retains memory that MEMORY PURGE would return.",
        ),
        (
            lost(memory.rss_overhead(), 1.1),
            "Outside the allocator: the process uses more memory than its allocator, such as \
             stacks and code.",
        ),
        (
            memory.client_bytes / clients.max(1) > CLIENT_BYTES_MAX,
            "Clients: pending requests and unsent replies use much memory. CLIENT LIST shows the \
             clients; client-output-buffer-limit can limit them.",
        ),
    ];
    let found: Vec<&str> =
        remarks.iter().filter(|(holds, _)| *holds).map(|(_, remark)| *remark).collect();
    match found.is_empty() {
        true => "Nothing is unusual about the use of memory.\n".to_owned(),
        false => found.join("\n\n") + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ProcessInfo;
    use crate::state::script_registry::ScriptFigures;

    #[track_caller]
    fn check(process: ProcessInfo, client_bytes: u64, starts: &[&str]) {
        let awaited = (0, 0);
        let scripts = ScriptFigures::default();
        let memory =
            Footprint { process, dbs: Vec::new(), client_bytes, awaited, scripts, log_bytes: 0 };
        let text = diagnosis(&memory, 1);
        let remarks: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(remarks.len(), starts.len(), "{text}");
        assert!(remarks.iter().zip(starts).all(|(remark, start)| remark.starts_with(start)));
    }

    #[test]
    fn the_doctor_remarks_on_each_problem() {
        let mb = 1 << 20;
        let healthy = ProcessInfo {
            used_bytes: 100 * mb,
            used_peak_bytes: 110 * mb,
            allocated_bytes: 100 * mb,
            active_bytes: 105 * mb,
            resident_bytes: 110 * mb,
            rss_bytes: 115 * mb,
            ..ProcessInfo::default()
        };
        check(ProcessInfo { used_bytes: mb, ..ProcessInfo::default() }, 0, &["The server holds"]);
        check(healthy.clone(), 0, &["Nothing is unusual"]);
        check(ProcessInfo { used_peak_bytes: 200 * mb, ..healthy.clone() }, 0, &["Peak"]);
        let loose =
            ProcessInfo { active_bytes: 120 * mb, resident_bytes: 150 * mb, ..healthy.clone() };
        check(ProcessInfo { rss_bytes: 151 * mb, ..loose }, 0, &["Fragmentation", "Unused pages"]);
        check(ProcessInfo { rss_bytes: 150 * mb, ..healthy.clone() }, 0, &["Outside"]);
        check(healthy, mb, &["Clients"]);
    }
}
