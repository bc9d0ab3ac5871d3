//! Every logged command must be one that Redis 7.0 and Valkey 8 know, with its options: a replica
//! that meets another command inside MULTI loses the whole transaction, and only its log says so.
//!
//! All transcripts check what they log, so each command of the table is checked with all examples.

/// Commands and their options up to Redis 7.0. After the name come the number of leading
/// arguments and what may follow:
///
/// - `WORD`, an option; `WORD=` has one value, `WORD==` two, `WORD=A|B` one of these, `WORD=~` one
///   after an optional `=` or `~`, `WORD=#` as many as there are keys
/// - `N`, a number or an entry identifier
/// - `*`, anything up to the end; `*N`, the same, from a number on
/// - `#`, a number of keys, and the keys
const KNOWN: &str = "
append 2
bitfield 1 GET== SET=== INCRBY=== OVERFLOW=WRAP|SAT|FAIL
bitop|and 1 *
bitop|or 1 *
bitop|xor 1 *
bitop|not 2
copy 2 DB= REPLACE
decr 1
decrby 2
del 0 *
flushall 0 ASYNC SYNC
flushdb 0 ASYNC SYNC
function|delete 1
function|flush 0 ASYNC SYNC
function|load 0 REPLACE *
function|restore 1 FLUSH APPEND REPLACE
georadius 5 COUNT= ANY ASC DESC STORE= STOREDIST=
georadiusbymember 4 COUNT= ANY ASC DESC STORE= STOREDIST=
geosearchstore 2 FROMMEMBER= FROMLONLAT== BYRADIUS== BYBOX=== ASC DESC COUNT= ANY STOREDIST
hdel 1 *
hincrby 3
hmset 1 *
hset 1 *
hsetnx 3
incr 1
incrby 2
linsert 1 BEFORE== AFTER==
lmove 2 LEFT RIGHT
lpop 1 N
lpush 1 *
lpushx 1 *
lrem 3
lset 3
ltrim 3
move 2
mset 0 *
msetnx 0 *
persist 1
pexpireat 2
pfadd 1 *
pfcount 0 *
pfdebug|todense 1
pfmerge 1 *
rename 2
renamenx 2
restore 3 REPLACE ABSTTL IDLETIME= FREQ=
rpop 1 N
rpoplpush 2
rpush 1 *
rpushx 1 *
sadd 1 *
sdiffstore 1 *
set 2 NX XX KEEPTTL PXAT=
setbit 3
setnx 2
setrange 3
sinterstore 1 *
smove 3
sort 1 BY= LIMIT== GET= ASC DESC ALPHA STORE=
srem 1 *
sunionstore 1 *
swapdb 2
unlink 0 *
xack 2 *
xadd 1 NOMKSTREAM MAXLEN=~ MINID=~ LIMIT= *N
xclaim 4 N TIME= RETRYCOUNT= FORCE JUSTID LASTID=
xdel 1 *
xgroup|create 3 MKSTREAM ENTRIESREAD=
xgroup|createconsumer 3
xgroup|delconsumer 3
xgroup|destroy 2
xgroup|setid 3 ENTRIESREAD=
xsetid 2 ENTRIESADDED= MAXDELETEDID=
xtrim 1 MAXLEN=~ MINID=~ LIMIT=
zadd 1 NX XX GT LT CH INCR *N
zdiffstore 1 #
zincrby 3
zinterstore 1 # WEIGHTS=# AGGREGATE=SUM|MIN|MAX
zpopmax 1 N
zpopmin 1 N
zrangestore 4 BYSCORE BYLEX REV LIMIT==
zrem 1 *
zremrangebylex 3
zremrangebyrank 3
zremrangebyscore 3
zunionstore 1 # WEIGHTS=# AGGREGATE=SUM|MIN|MAX
";

/// Newer commands that are logged all the same, for reasons that hold for all old peers.
const NEWER: &str = "
# Old peers have no fields that expire. These follow only commands that clients of old peers lack.
hpersist 1 FIELDS *
hpexpireat 2 NX XX GT LT FIELDS *
";

/// Asserts that the oldest peers know a logged command.
#[track_caller]
pub fn check(args: &[Vec<u8>]) {
    let args: Vec<_> = args.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    assert!(is_known(&args), "Redis 7.0 or Valkey 8 does not know this command: {args:?}");
}

fn is_known(args: &[&str]) -> bool {
    let [name, args @ ..] = args else { return false };
    KNOWN.lines().chain(NEWER.lines()).any(|line| {
        let mut words = line.split(' ');
        let (word, len) = (words.next().unwrap_or_default(), words.next());
        let Some(len) = len.and_then(|len| len.parse().ok()) else { return false };
        let args = match word.split_once('|') {
            None => name.eq_ignore_ascii_case(word).then_some(args),
            Some((word, sub)) => args
                .split_first()
                .filter(|(first, _)| name.eq_ignore_ascii_case(word) && is(first, sub))
                .map(|(_, args)| args),
        };
        let args = args.and_then(|args| args.split_at_checked(len));
        args.is_some_and(|(_, args)| are_known(args, &words.collect::<Vec<_>>()))
    })
}

fn is(arg: &str, word: &str) -> bool {
    arg.eq_ignore_ascii_case(word)
}

fn is_number(arg: &str) -> bool {
    arg.starts_with(|first: char| "0123456789+-.".contains(first)) || arg.starts_with("inf")
}

/// Whether the arguments after the leading ones are these options.
fn are_known(mut args: &[&str], options: &[&str]) -> bool {
    let mut keys = 0;
    if options.first() == Some(&"#") {
        let Some((count, rest)) = args.split_first() else { return false };
        keys = count.parse().unwrap_or(0);
        args = rest.get(keys..).unwrap_or_default();
    }
    while let Some((arg, rest)) = args.split_first() {
        let named = options.iter().find(|option| is(arg, option.split('=').next().unwrap()));
        let Some(option) = named else {
            if options.contains(&"*") || options.contains(&"*N") && is_number(arg) {
                return true;
            }
            if !(options.contains(&"N") && is_number(arg)) {
                return false;
            }
            args = rest;
            continue;
        };
        let (_, value) = option.split_once('=').unwrap_or((option, "none"));
        let values = match value {
            "none" => 0,
            "#" => keys,
            "~" => 1 + usize::from(rest.first().is_some_and(|arg| ["=", "~"].contains(arg))),
            more if more.chars().all(|char| char == '=') => 1 + more.len(),
            choice => {
                let is_one = |arg: &&str| choice.split('|').any(|word| is(arg, word));
                if !rest.first().is_some_and(is_one) {
                    return false;
                }
                1
            }
        };
        let Some(rest) = rest.get(values..) else { return false };
        args = rest;
    }
    true
}

#[test]
fn newer_names_and_options_are_found() {
    for (request, expected) in [
        ("SET k v PXAT 1", true),
        ("SET k v IFEQ w", false),
        ("HSETEX h KEEPTTL FIELDS 1 f v", false),
        ("xadd s maxlen ~ 5 LIMIT 3 1-1 f v", true),
        ("XADD s MAXLEN 5 ACKED 1-1 f v", false),
        ("XTRIM s MAXLEN = 5 DELREF", false),
        ("BITOP ONE d a", false),
        ("BITOP or d a b", true),
        ("GEOSEARCHSTORE d k BYPOLYGON 3 1 1 2 2 3 1", false),
        ("ZADD z NX CH 1 a", true),
        ("ZADD z NEW 1 a", false),
        ("ZUNIONSTORE d 2 a b WEIGHTS 1 2 AGGREGATE max", true),
        ("ZUNIONSTORE d 2 a b AGGREGATE COUNT", false),
        ("LPOP k 2", true),
        ("LPOP k 2 x", false),
        ("XGROUP CREATE s g", false),
        ("BITFIELD k INCRBY u8 0 1 GET u8 0", true),
    ] {
        let args: Vec<&str> = request.split(' ').collect();
        assert_eq!(is_known(&args), expected, "{request}");
    }
}
