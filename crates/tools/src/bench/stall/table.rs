//! The table of slow commands: what data each needs, how it is sent, and how its replies are read.
//!
//! Commands are templates in the notation of [`workload`](crate::load::workload). The number of
//! elements is `--size`, called N here; `{N}` in a command stands for it and `{500N}` for 500 times
//! as much. DEBUG SLEEP is not in the table: a server decides what it blocks, whatever the work.

/// Requests that store data, outside of the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    /// The command.
    pub command: &'static str,
    /// It is sent N / divisor times; `None` sends it once.
    pub divisor: Option<u64>,
}

/// Connections in addition to those of the slow commands and the victims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    /// How many there are for a million elements.
    pub per_million: u64,
    /// The blocking command that each of them sends, if any.
    pub request: Option<&'static str>,
    /// Whether the requests are measured, or sent before.
    pub measured: bool,
}

/// How the replies of the slow commands are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyReading {
    /// As fast as they come.
    Fast,
    /// 64 KiB each millisecond.
    Slow,
}

/// A slow command, or several at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowCommand {
    /// Its name on the command line.
    pub name: &'static str,
    /// The event, in words, for the tables.
    pub about: &'static str,
    /// Stored once.
    pub data: &'static [Fill],
    /// Stored before each repetition.
    pub before: &'static [Fill],
    /// Further connections.
    pub crowd: Option<Crowd>,
    /// The commands, each on its own connection, 5 ms apart. A transaction is one.
    pub commands: &'static [&'static str],
    /// How many times the commands are sent in one pipeline.
    pub times: u64,
    /// How their replies are read.
    pub reading: ReplyReading,
}

impl SlowCommand {
    const fn data(self, data: &'static [Fill]) -> SlowCommand {
        SlowCommand { data, ..self }
    }

    const fn before(self, before: &'static [Fill]) -> SlowCommand {
        SlowCommand { before, ..self }
    }

    const fn crowd(
        self,
        per_million: u64,
        request: Option<&'static str>,
        measured: bool,
    ) -> SlowCommand {
        SlowCommand { crowd: Some(Crowd { per_million, request, measured }), ..self }
    }

    const fn times(self, times: u64) -> SlowCommand {
        SlowCommand { times, ..self }
    }

    const fn read_slowly(self) -> SlowCommand {
        SlowCommand { reading: ReplyReading::Slow, ..self }
    }
}

impl Crowd {
    /// How many connections there are, at least 1.
    pub fn connections(&self, size: u64) -> u64 {
        (size * self.per_million / 1_000_000).max(1)
    }
}

impl Fill {
    /// How many times the command is sent, at least once.
    pub fn requests(&self, size: u64) -> u64 {
        self.divisor.map_or(1, |divisor| (size / divisor).max(1))
    }
}

const fn slow(name: &'static str, about: &'static str, commands: &'static [&str]) -> SlowCommand {
    let (data, before, crowd): (_, &[Fill], _) = (&[], &[], None);
    SlowCommand {
        name,
        about,
        data,
        before,
        crowd,
        commands,
        times: 1,
        reading: ReplyReading::Fast,
    }
}

/// Sent once.
const fn once(command: &'static str) -> Fill {
    Fill { command, divisor: None }
}

/// Ten elements a request.
const fn tens(command: &'static str) -> Fill {
    Fill { command, divisor: Some(10) }
}

/// Ten elements a request, N / 5 in total.
const fn fifths(command: &'static str) -> Fill {
    Fill { command, divisor: Some(50) }
}

const KEYS: &[Fill] = &[Fill { command: "SET {key} value-of-16-bytes", divisor: Some(1) }];
const LIST: &[Fill] = &[tens("RPUSH list 10*({1000000000..9999999999})")];
const SET: Fill = tens("SADD set 10*({1000000000..9999999999})");
const OTHER_SET: Fill = tens("SADD other 10*({1000000000..9999999999})");
/// N / 5 elements each, since peers take many seconds for the union of two sets of N.
const ZSETS: &[Fill] = &[
    fifths("ZADD zset 10*({100000..999999} {1000000000..9999999999})"),
    fifths("ZADD other 10*({100000..999999} {1000000000..9999999999})"),
];
const HASH: &[Fill] = &[tens("HSET source 10*({1000000000..9999999999} value-of-16-bytes)")];
const ZSET: &[Fill] = &[tens("ZADD source 10*({100000..999999} {1000000000..9999999999})")];
const DOOMED: &[Fill] = &[once("COPY source doomed REPLACE")];
const HASHES: &[Fill] = &[
    HASH[0],
    once("COPY source hash:2"),
    once("COPY source hash:3"),
    once("COPY source hash:4"),
    once("COPY source hash:5"),
    once("SET unrelated value"),
];
const BIG_VALUE: &[Fill] = &[once("SETRANGE big {500N} x")];

/// The request of the waiters, each with its own destination.
const WAIT: Option<&str> = Some("BLMOVE source destination:{key} LEFT RIGHT 0");

/// The command that others wait for.
const SORT: &str = "SORT list STORE sorted";

/// Every slow command, in the order of the tables. The first row has none.
pub const TABLE: &[SlowCommand] = &[
    slow("none", "no slow command", &[]),
    slow("sort-store", "SORT .. STORE of a list of N", &[SORT]).data(LIST),
    slow("keys", "KEYS * of N keys", &["KEYS *"]).data(KEYS),
    slow("smembers", "SMEMBERS of N", &["SMEMBERS set"]).data(&[SET]),
    slow("sunionstore", "SUNIONSTORE of two sets of N", &["SUNIONSTORE result set other"])
        .data(&[SET, OTHER_SET]),
    slow(
        "zunionstore",
        "ZUNIONSTORE of two sorted sets of N / 5",
        &["ZUNIONSTORE result 2 zset other"],
    )
    .data(ZSETS),
    slow("del", "DEL of a hash of N fields", &["DEL doomed"]).data(HASH).before(DOOMED),
    slow("unlink", "UNLINK of a hash of N fields", &["UNLINK doomed"]).data(HASH).before(DOOMED),
    slow("flushall-sync", "FLUSHALL SYNC of 5 hashes of N fields", &["FLUSHALL SYNC"])
        .before(HASHES),
    slow("flushall-async", "FLUSHALL ASYNC of 5 hashes of N fields", &["FLUSHALL ASYNC"])
        .before(HASHES),
    slow("keys-swapdb", "SWAPDB during KEYS * of N keys", &["KEYS *", "SWAPDB 1 2"]).data(KEYS),
    slow(
        "sort-mset",
        "MSET of the destination of SORT .. STORE of N",
        &[SORT, "MSET unrelated 1 sorted 1"],
    )
    .data(LIST),
    slow(
        "sort-rename",
        "RENAME to the destination of SORT .. STORE of N",
        &[SORT, "RENAME other sorted"],
    )
    .data(LIST)
    .before(&[once("SET other value")]),
    slow(
        "sort-pause",
        "CLIENT PAUSE WRITE during SORT .. STORE of N",
        &[SORT, "CLIENT PAUSE 1 WRITE"],
    )
    .data(LIST),
    slow("sort-info", "INFO during SORT .. STORE of N", &[SORT, "INFO everything"]).data(LIST),
    slow("sort-flushall", "FLUSHALL during SORT .. STORE of N", &[SORT, "FLUSHALL"]).before(LIST),
    slow(
        "sort-exec-config",
        "EXEC with CONFIG SET during SORT .. STORE of N",
        &[SORT, "MULTI ; CONFIG SET slowlog-max-len 128 ; GET unrelated ; EXEC"],
    )
    .data(LIST),
    slow(
        "sort-exec-pause",
        "EXEC with CLIENT PAUSE WRITE during SORT .. STORE of N",
        &[SORT, "MULTI ; CLIENT PAUSE 1 WRITE ; GET unrelated ; EXEC"],
    )
    .data(LIST),
    slow("zpopmin", "ZPOPMIN of N members", &["ZPOPMIN doomed {N}"]).data(ZSET).before(DOOMED),
    slow("lrange-slow", "LRANGE of N elements, read slowly", &["LRANGE list 0 -1"])
        .data(LIST)
        .read_slowly(),
    slow("get-big", "GET of a value of 500 N bytes", &["GET big"]).data(BIG_VALUE),
    slow("lrange", "LRANGE of N elements, 20 times in a pipeline", &["LRANGE list 0 -1"])
        .data(LIST)
        .times(20),
    slow("blmove-wait", "clients begin to wait in BLMOVE, then one RPUSH", &["RPUSH source 1"])
        .crowd(3000, WAIT, true),
    slow("blmove-push", "20 RPUSH to a list with waiters in BLMOVE", &["RPUSH source 1"])
        .crowd(3000, WAIT, false)
        .times(20),
    slow("info-all", "INFO all, 100 times in a pipeline", &["INFO all"]).times(100),
    slow("latency-histogram", "LATENCY HISTOGRAM, 100 times in a pipeline", &["LATENCY HISTOGRAM"])
        .times(100),
    slow("hotkeys-get", "HOTKEYS GET, 100 times in a pipeline", &["HOTKEYS GET"])
        .before(&[once("HOTKEYS STOP"), once("HOTKEYS START METRICS 2 CPU NET COUNT 64")])
        .times(100),
    slow("weft-bigkeys", "WEFT BIGKEYS, 100 times in a pipeline", &["WEFT BIGKEYS"]).times(100),
    slow("client-list", "CLIENT LIST with many clients", &["CLIENT LIST"]).crowd(3000, None, false),
];

/// The row of a name.
pub fn find(name: &str) -> Option<&'static SlowCommand> {
    TABLE.iter().find(|row| row.name == name)
}

/// The command with its multiples of N written out.
pub fn sized(command: &str, size: u64) -> String {
    let (mut out, mut rest) = (String::new(), command);
    while let Some((before, inside, after)) = next_multiple(rest) {
        out.push_str(before);
        match inside {
            Ok(factor) => out.push_str(&factor.saturating_mul(size).to_string()),
            Err(other) => out.push_str(&format!("{{{other}}}")),
        }
        rest = after;
    }
    out + rest
}

/// Splits at the next `{...}`: before, the factor of N or else what the braces hold, after.
fn next_multiple(text: &str) -> Option<(&str, Result<u64, &str>, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    let factor = match inside.strip_suffix('N') {
        Some("") => Ok(1),
        Some(factor) => factor.parse().map_err(|_| inside),
        None => Err(inside),
    };
    Some((before, factor, after))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::shape::RequestShape;
    use crate::load::template::Template;

    #[test]
    fn names_are_unique_and_commands_compile() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|other| other.name != row.name), "{}", row.name);
            let fills = row.data.iter().chain(row.before).map(|fill| fill.command);
            let waits = row.crowd.and_then(|crowd| crowd.request);
            for command in fills.chain(row.commands.iter().copied()).chain(waits) {
                let text = sized(command, 1000);
                assert!(Template::compile(&text, &RequestShape::default()).is_ok(), "{}", row.name);
            }
        }
        assert!(TABLE[0].commands.is_empty(), "the measurement without a slow command comes first");
    }

    #[test]
    fn multiples_of_the_size_are_written_out() {
        let cases = [
            ("SETRANGE big {500N} x", "SETRANGE big 1500 x"),
            ("{N}", "3"),
            ("SET {key} {1..9} {xN}", "SET {key} {1..9} {xN}"),
            ("PING", "PING"),
        ];
        cases.iter().for_each(|(command, expected)| assert_eq!(sized(command, 3), *expected));
    }

    #[test]
    fn small_sizes_leave_something_to_send() {
        let crowd = Crowd { per_million: 3000, request: None, measured: false };
        assert_eq!((crowd.connections(1_000_000), crowd.connections(1)), (3000, 1));
        let cases =
            [(once(""), 1), (tens(""), 100), (Fill { command: "", divisor: Some(1) }, 1000)];
        cases.iter().for_each(|(fill, expected)| assert_eq!(fill.requests(1000), *expected));
        assert_eq!(tens("").requests(3), 1);
    }
}
