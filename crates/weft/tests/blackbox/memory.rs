//! MEMORY USAGE compared with the allocator, for every encoding.

use test_support::{encode, eventually};

use crate::{Client, Server};

/// The largest difference in per cent.
const PERCENT_MAX: f64 = 10.0;
/// Requests in a pipeline.
const BATCH: usize = 200;

/// The requests that create keys of one encoding.
struct Case {
    encoding: &'static str,
    keys: usize,
    /// How often the requests are sent for each key.
    times: usize,
    /// `{k}` is the key, `{j}` counts from 1, `{x9}` is 9 bytes, and `{2*a|b}` is the words a1, b1,
    /// a2 and b2.
    requests: &'static [&'static str],
}

const fn case(
    encoding: &'static str,
    keys: usize,
    times: usize,
    requests: &'static [&'static str],
) -> Case {
    Case { encoding, keys, times, requests }
}

const CASES: &[Case] = &[
    case("int", 30_000, 1, &["SET {k} 123456789"]),
    case("embstr", 30_000, 1, &["SET {k} {x13}"]),
    case("raw", 4_000, 1, &["SET {k} {x500}"]),
    case("raw", 100, 1, &["SET {k} {x100000}"]),
    case("raw", 200, 40, &["APPEND {k} {x250}"]),
    case("listpack", 6_000, 1, &["RPUSH {k} {20*element:}"]),
    case("quicklist", 50, 100, &["RPUSH {k} {20*element:{j}:}"]),
    case("quicklist", 20, 20, &["RPUSH {k} {x20000}"]),
    case("intset", 6_000, 1, &["SADD {k} {50*100000}"]),
    case("listpack", 6_000, 1, &["SADD {k} {20*member:}"]),
    case("hashtable", 30, 100, &["SADD {k} {20*member:{j}:}"]),
    case("listpack", 5_000, 1, &["HSET {k} {20*field:|value:}"]),
    case("hashtable", 30, 100, &["HSET {k} {20*field:{j}:|value:{j}:}"]),
    case(
        "listpackex",
        5_000,
        1,
        &["HSET {k} {20*field:|value:}", "HEXPIRE {k} 1000 FIELDS 20 {20*field:}"],
    ),
    case(
        "hashtable",
        30,
        50,
        &["HSET {k} {20*field:{j}:|value:}", "HEXPIRE {k} 1{j}00 FIELDS 20 {20*field:{j}:}"],
    ),
    case("listpack", 5_000, 1, &["ZADD {k} {20*|member:}"]),
    case("skiplist", 30, 100, &["ZADD {k} {20*{j}|member:{j}:}"]),
    case("stream", 60, 1_000, &["XADD {k} {j} field value:{j}"]),
    case(
        "stream",
        60,
        300,
        &[
            "XADD {k} {j} field value:{j}",
            "XGROUP CREATE {k} group 0",
            "XREADGROUP GROUP group me STREAMS {k} >",
        ],
    ),
];

/// Sends requests in pipelines.
struct Pipeline<'a> {
    client: &'a mut Client,
    bytes: Vec<u8>,
    requests: usize,
}

impl<'a> Pipeline<'a> {
    fn new(client: &'a mut Client) -> Self {
        Self { client, bytes: Vec::new(), requests: 0 }
    }

    fn send(&mut self, words: &str) {
        let words: Vec<Vec<u8>> = words.split(' ').flat_map(expand).collect();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        self.bytes.extend(encode(&words));
        self.requests += 1;
        if self.requests == BATCH {
            self.finish();
        }
    }

    /// Reads all replies and returns the sum of those that are integers.
    fn finish(&mut self) -> i64 {
        self.client.send_raw(&std::mem::take(&mut self.bytes));
        let replies = (0..std::mem::take(&mut self.requests)).map(|_| self.client.read());
        replies.map(|reply| if reply.is_int() { reply.int() } else { 0 }).sum()
    }
}

/// The words that a word of a request stands for.
fn expand(word: &str) -> Vec<Vec<u8>> {
    let inside = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inside.and_then(|inside| inside.split_once('*')) {
        Some((count, parts)) => (1..=count.parse().unwrap())
            .flat_map(|n: usize| parts.split('|').map(move |part| format!("{part}{n}").into()))
            .collect(),
        None => {
            let len = inside.and_then(|inside| inside.strip_prefix('x')?.parse().ok());
            vec![len.map_or_else(|| word.as_bytes().to_vec(), |len| vec![b'x'; len])]
        }
    }
}

/// The bytes that the allocator has handed out, after all pending frees.
fn used(server: &Server) -> f64 {
    eventually("all is freed", || server.info("lazyfree_pending_objects") == "0");
    server.info("allocator_allocated").parse().unwrap()
}

/// Adds the keys of a case, and compares their usage with the memory that was taken. Returns the
/// figures if they differ.
fn difference(server: &Server, Case { encoding, keys, times, requests }: &Case) -> Option<String> {
    let mut client = server.client();
    client.ok("FLUSHALL SYNC");
    // Memory that each shard needs once is allocated before.
    let mut pipeline = Pipeline::new(&mut client);
    for key in 0..8_000 {
        pipeline.send(&format!("SET base:{key} {key}"));
        pipeline.send(&format!("HSET hash:{key} field value"));
        pipeline.send(&format!("HEXPIRE hash:{key} 100000 FIELDS 1 field"));
    }
    pipeline.finish();
    let before = used(server);
    let mut pipeline = Pipeline::new(&mut client);
    for key in 0..*keys {
        for time in 1..=*times {
            for request in *requests {
                let request = request.replace("{k}", &format!("key:{key}"));
                pipeline.send(&request.replace("{j}", &time.to_string()));
            }
        }
    }
    pipeline.finish();
    assert_eq!(client.ask("OBJECT ENCODING key:1").text(), *encoding, "{requests:?}");
    let taken = used(server) - before;
    let mut pipeline = Pipeline::new(&mut client);
    let told: i64 = (0..*keys)
        .map(|key| {
            pipeline.send(&format!("MEMORY USAGE key:{key}"));
            pipeline.finish()
        })
        .sum();
    let percent = (told as f64 / taken - 1.0) * 100.0;
    let is_wrong = percent.abs() > PERCENT_MAX;
    is_wrong.then(|| format!("{encoding}: {told} told, {taken} taken, {percent:+.1}%"))
}

#[test]
fn usage_is_what_the_allocator_says() {
    let start = || Server::start(&["--io-threads", "1", "--hz", "1"]);
    let server = start();
    for (number, case) in CASES.iter().enumerate() {
        let Some(wrong) = difference(&server, case) else { continue };
        // How many tables of shards grow depends on the hashes of keys, which a start chooses: the
        // median of three starts counts.
        let again: Vec<String> = (0..2).filter_map(|_| difference(&start(), case)).collect();
        assert!(again.is_empty(), "case {number}: {wrong}, {again:?}");
    }
}
