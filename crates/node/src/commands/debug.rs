//! DEBUG (<https://redis.io/docs/latest/commands/debug/>): the parts that test suites of clients
//! use.
//!
//! As in Redis, its subcommands have no rows, and a parameter restricts the clients that may use
//! it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use command::{Flags, Group, Row, ShardScope, Spec};
use engine::digest::DatasetDigest;
use engine::{Error, ScriptError, ServerError, echo_start};
use persist::ByteCount;
use persist::rdb::encode::value_type;
use persist::rdb::{ValueEncoder, ValueType};
use resp::{Args, Reply};
use script::LogLevel;
use store::{Entry, Lookup, Stored};

use crate::config::Config;
use crate::execution::executor::ECHOED_BYTES_MAX;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::host::Crash;

/// The command.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("debug", -2, Group::Server, "1.0.0")
        .summary("A container for commands that test the server and its clients.")
        .complexity("That of the subcommand.")
        .flags(
            Flags::ADMIN
                .with(Flags::NOSCRIPT)
                .with(Flags::LOADING)
                .with(Flags::STALE)
                .with(Flags::SYSTEM)
                .with(Flags::MAIN),
        )
        .scope(ShardScope::EachShard),
    debug,
)];

/// The largest size for QUICKLIST-PACKED-THRESHOLD.
const PACKED_BYTES_MAX: u64 = (1 << 32) - (1 << 20);

fn debug(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let permit = cx.worker.node.config().enable_debug_command;
    if !permit.allows(cx.session.record.is_local()) {
        return Err(ServerError::DebugForbidden.into());
    }
    let name = args.text(1).to_ascii_lowercase();
    match (name.as_slice(), args.len()) {
        (b"help", 2) => help(reply),
        (b"aof-flush-sleep", 3) => delay_log(cx, args, reply),
        (b"config-rewrite-force-all", 2) => {
            super::config::rewrite_file(cx, true)?;
            reply.ok();
        }
        (b"digest", 2) => digest(cx, reply)?,
        (b"digest-value", 2..) => digest_values(cx, args, reply)?,
        (b"error", 3) => reply.error(args.text(2)),
        (b"listpack", 3) => listpack(cx, args.text(2), reply)?,
        (b"log", 3) => {
            let line = [b"DEBUG LOG: ", args.text(2)].concat();
            cx.outside(|host| host.log(LogLevel::Warning, &line));
            reply.ok();
        }
        (b"object", 3) => object(cx, args.text(2), reply)?,
        (b"populate", 3..=5) => super::populate::populate(cx, args, reply)?,
        (b"protocol", 3) => protocol(reply, args.text(2))?,
        (b"quicklist-packed-threshold", 3) => set_packed_threshold(args, reply)?,
        (b"loadaof", 2) => {
            super::reload::load_append_only(cx)?;
            reply.ok();
        }
        (b"panic", 2) => cx.outside(|host| host.crash(Crash::Panic)),
        (b"pause-cron", 3) => {
            cx.worker.node.cron_paused.store(is_on(args), Ordering::Relaxed);
            reply.ok();
        }
        (b"reload", 2..) => {
            super::reload::reload(cx, args)?;
            reply.ok();
        }
        (b"replybuffer", 4) => {
            // Without effect: clients have no buffer for replies that could be resized.
            let word = args.text(2).to_ascii_lowercase();
            match word.as_slice() {
                b"peak-reset-time" | b"resizing" => reply.ok(),
                _ => return Err(Error::Syntax),
            }
        }
        (b"segfault", 2) => cx.outside(|host| host.crash(Crash::Fault)),
        (b"set-active-expire", 3) => {
            cx.worker.node.active_expire.store(is_on(args), Ordering::Relaxed);
            reply.ok();
        }
        (b"set-disable-deny-scripts", 3) => {
            set(cx, |config| config.scripts.allow_noscript = is_on(args));
            reply.ok();
        }
        (b"set-skip-checksum-validation", 3) => {
            set(cx, |config| config.saving.restores_unchecked = is_on(args));
            reply.ok();
        }
        (b"sleep", 3) => sleep(cx, args, reply),
        _ => {
            let name = echo_start(args.text(1), ECHOED_BYTES_MAX);
            return Err(Error::SubcommandForm(name, "DEBUG"));
        }
    }
    Ok(())
}

/// Has no effect: only an element above the limit of a chunk is a chunk of its own.
fn set_packed_threshold(args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), ServerError> {
    let size = base::size::parse_bytes(args.text(2)).and_then(|n| u64::try_from(n).ok());
    size.filter(|size| *size <= PACKED_BYTES_MAX).ok_or(ServerError::PackedThreshold)?;
    reply.ok();
    Ok(())
}

/// Makes the log's thread wait so many microseconds before it writes. As in Redis, text that is not
/// a number counts as 0.
fn delay_log(cx: &NodeCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) {
    let micros = base::number::parse_i64(args.text(2)).unwrap_or(0);
    let micros = u64::try_from(micros).unwrap_or(0);
    cx.worker.node.log_delay_us.store(micros, Ordering::Relaxed);
    reply.ok();
}

fn sleep(cx: &NodeCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) {
    let seconds = base::number::parse_f64(args.text(2)).unwrap_or(0.0);
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    cx.outside(|host| host.sleep(time));
    reply.ok();
}

/// Whether the third argument is a number other than 0. As in Redis, other text counts as 0.
fn is_on(args: &Args<'_>) -> bool {
    base::number::parse_i64(args.text(2)).is_some_and(|number| number != 0)
}

/// Changes a field of the configuration that has no parameter. A running script sees no change.
fn set(cx: &mut NodeCx<'_>, change: impl FnOnce(&mut Config)) {
    let node = &cx.worker.node;
    cx.outside(|_| {
        let _one_at_a_time = node.config_change.lock();
        let mut config = Config::clone(&node.config());
        change(&mut config);
        node.set_config(config);
    });
    cx.worker.take_over_config();
}

/// DEBUG OBJECT: describes a value and its encoding.
fn object(cx: &mut NodeCx<'_>, key: &[u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.worker.turn.key(key);
    let shard = cx.worker.node.map.shard_of(key.hash);
    let (db, turn) = (cx.session.db, &cx.worker.turn);
    let mut text = None;
    cx.shards.visit(shard, &mut |shard| {
        // As in Redis, an expired key is shown and not removed.
        text = shard.db(db).lookup_even_expired(key).map(|stored| {
            let (place, encoding) = (stored.key().as_ptr(), stored.encoding());
            // As in Redis, these are seconds under the LFU policies too.
            let (used, idle) = (stored.access_clock(), stored.seconds_since_use(turn));
            let count = engine::generic::object::references(stored, turn);
            let length = serialized_length(stored);
            format!(
                "Value at:{place:p} refcount:{count} encoding:{encoding} serializedlength:{length} \
                 lru:{used} lru_seconds_idle:{idle}"
            )
        });
    })?;
    reply.simple(&text.ok_or(Error::NoSuchKey)?);
    Ok(())
}

/// The bytes of a value in an RDB file, without its type. As in Redis, the earliest expiry in front
/// of a hash is not counted.
fn serialized_length(stored: Stored<'_>) -> u64 {
    let mut bytes = ByteCount::default();
    let Ok(()) = ValueEncoder::new(true).value(stored, &mut bytes);
    match value_type(stored) {
        ValueType::HashExpiring | ValueType::HashListpackExpiring => bytes.0 - 8,
        _ => bytes.0,
    }
}

/// The elements of a packed value as they are stored. Redis prints them to the server's standard
/// output instead.
fn listpack(cx: &mut NodeCx<'_>, key: &[u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.worker.turn.key(key);
    let shard = cx.worker.node.map.shard_of(key.hash);
    let (db, turn) = (cx.session.db, &mut cx.worker.turn);
    let mut result = Err(Error::NoSuchKey);
    cx.shards.visit(shard, &mut |shard| {
        let Some(stored) = shard.db(db).lookup(turn, key, Lookup::Quiet) else { return };
        let Some(list) = stored.packed() else {
            result = Err(ServerError::NotPacked.into());
            return;
        };
        reply.array(list.len());
        for element in list.iter() {
            match element {
                Entry::Bytes(text) => reply.bulk(text),
                Entry::Integer(number) => reply.int(number),
            }
        }
        result = Ok(());
    })?;
    result
}

/// The digest of all keys and values of all databases.
fn digest(cx: &mut NodeCx<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut visited = cx.take_visited();
    let mut contents = vec![None::<DatasetDigest>; cx.worker.node.databases];
    let of_all = visited.kept.chunks_exact(DatasetDigest::BYTES);
    contents
        .iter_mut()
        .zip(of_all)
        .for_each(|(content, kept)| *content = DatasetDigest::of_bytes(kept));
    let turn = &mut cx.worker.turn;
    while visited.shards < cx.worker.node.map.len() {
        let mut belongs = true;
        let seen = cx.shards.visit(visited.shards, &mut |shard| {
            belongs = visited.belongs_to(turn.keys.generation(None));
            for db in shard.dbs().filter(|_| belongs) {
                let content = &mut contents[db.number()];
                db.scan(turn, 0, usize::MAX, &mut |stored| {
                    let mut own = DatasetDigest::default();
                    own.chain(stored.key());
                    own.chain_value(stored);
                    content.get_or_insert_default().join_digest(own);
                });
            }
        });
        if seen == Err(ScriptError::ShardInUse) {
            let of_all = contents.iter().map(|content| content.unwrap_or_default().bytes());
            visited.kept = of_all.flatten().collect();
            return cx.keep_visited(visited);
        }
        seen?;
        if !belongs {
            visited.restart();
            return cx.keep_visited(visited);
        }
        visited.shards += 1;
    }
    let mut all = DatasetDigest::default();
    for (number, content) in contents.iter().enumerate() {
        if let Some(content) = content {
            // The number distinguishes the same data in different databases.
            all.chain(&(number as u32).to_be_bytes());
            all.merge(*content);
        }
    }
    reply.simple(&all.text());
    Ok(())
}

/// The digests of the values under some keys, independent of the keys' names.
fn digest_values(cx: &mut NodeCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut visited = cx.take_visited();
    let (db, turn) = (cx.session.db, &cx.worker.turn);
    reply.array(args.len() - 2);
    let mark = reply.mark();
    reply.raw(&std::mem::take(&mut visited.kept));
    for name in args.iter().skip(2 + visited.found) {
        let key = turn.key(name);
        let mut digest = DatasetDigest::default();
        let seen = cx.shards.visit(cx.worker.node.map.shard_of(key.hash), &mut |shard| {
            if let Some(stored) = shard.db(db).lookup_even_expired(key) {
                digest.chain_value(stored);
            }
        });
        if seen == Err(ScriptError::ShardInUse) {
            visited.kept = reply.out().bytes[mark.bytes..].to_vec();
            return cx.keep_visited(visited);
        }
        seen?;
        visited.found += 1;
        reply.simple(&digest.text());
    }
    Ok(())
}

/// A value of one type of the protocol, for tests of clients.
fn protocol(reply: &mut Reply<'_>, kind: &[u8]) -> Result<(), Error> {
    const BIG: &[u8] = b"1234567999999999999999999999999999999";
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        b"double" => reply.double(3141.0 / 1000.0),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|n| reply.int(n));
        }
        b"map" => {
            reply.map(3);
            for n in 0..3 {
                reply.int(n);
                reply.bool(n == 1);
            }
        }
        b"attrib" => {
            if reply.resp3() {
                reply.raw(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.int(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !reply.resp3() => return Err(ServerError::NeedsResp3.into()),
        b"push" => {
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.int(42);
        }
        b"true" => reply.bool(true),
        b"false" => reply.bool(false),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"bignum" if reply.resp3() => {
            reply.raw(b"(");
            reply.raw(BIG);
            reply.raw(b"\r\n");
        }
        b"bignum" => reply.bulk(BIG),
        _ => return Err(ServerError::ProtocolType.into()),
    }
    Ok(())
}

/// DEBUG HELP. The subcommands have no rows from which it could be generated.
fn help(reply: &mut Reply<'_>) {
    let lines = [
        "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "AOF-FLUSH-SLEEP <microseconds>",
        "    Delays each write to the append-only file.",
        "CONFIG-REWRITE-FORCE-ALL",
        "    Writes every parameter to the configuration file, like CONFIG REWRITE.",
        "DIGEST",
        "    Returns a digest of all data, which is equal for equal data.",
        "DIGEST-VALUE [<key> ...]",
        "    Returns a digest of each key's value, or zeros without a value.",
        "ERROR <text>",
        "    Returns an error with this text.",
        "HELP",
        "    Prints this text.",
        "LISTPACK <key>",
        "    Returns the elements of a packed value in order, including scores and expiry times.",
        "LOADAOF",
        "    Empties the keyspace and loads the append-only file, while other clients are paused.",
        "LOG <text>",
        "    Writes a line to the server's log.",
        "OBJECT <key>",
        "    Describes how and where the value of a key is stored.",
        "PANIC",
        "    Crashes the server with a panic, with a report in its log.",
        "POPULATE <count> [<prefix>] [<size>]",
        "    Adds string keys, by default key:0, key:1 ..., without logging them.",
        "PROTOCOL <type>",
        "    Returns a value of a type: string, integer, double, bignum, null, array, set, map,",
        "    attrib, push, verbatim, true or false.",
        "QUICKLIST-PACKED-THRESHOLD <size>",
        "    Has no effect: list elements above the limit of a chunk have chunks of their own.",
        "RELOAD [NOSAVE] [NOFLUSH] [MERGE]",
        "    Saves all data, removes it and loads it again. NOSAVE loads the existing file;",
        "    NOFLUSH keeps the data, of which the file may contain keys only with MERGE.",
        "SEGFAULT",
        "    Crashes the server with an invalid memory access, with a report in its log.",
        "SET-ACTIVE-EXPIRE <0|1>",
        "    Enables or disables the search for expired keys; access removes them in any case.",
        "SET-DISABLE-DENY-SCRIPTS <0|1>",
        "    Lets scripts call commands that are denied to them, except those on scripts and",
        "    transactions.",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
        "    Lets RESTORE skip the check of checksums.",
        "SLEEP <seconds>",
        "    Blocks the main thread. Fractions are allowed.",
    ];
    reply.array(lines.len());
    for line in lines {
        reply.simple(line);
    }
}
