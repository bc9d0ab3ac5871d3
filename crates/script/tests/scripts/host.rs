//! A server of a few commands and types, enough for scripts to call.

use std::collections::BTreeMap;
use std::time::Duration;

use resp::{Args, Out, Reply};
use script::{LogLevel, ScriptReplication, Tick, VmHost};

enum Stored {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
}

/// The server; see this module. Each tick advances the time.
#[derive(Default)]
pub struct Server {
    keys: BTreeMap<Vec<u8>, Stored>,
    /// The lines of `redis.log`.
    pub logged: Vec<(LogLevel, Vec<u8>)>,
    /// The argument of `redis.set_repl`.
    pub replication: Option<ScriptReplication>,
    /// The number of ticks.
    pub ticks: u64,
    /// The number of ticks after which the script is killed.
    pub kill_at: Option<u64>,
    /// The number of calls.
    pub calls: u64,
}

const WRONG_TYPE: &[u8] = b"WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_INTEGER: &[u8] = b"ERR value is not an integer or out of range";

impl VmHost for Server {
    fn call(&mut self, args: Args<'_>, resp3: bool, out: &mut Out) {
        self.calls += 1;
        let mut reply = Reply::new(out, resp3);
        if let Err(text) = self.execute(args, &mut reply) {
            reply.error(text);
        }
    }

    fn log(&mut self, level: LogLevel, line: &[u8]) {
        self.logged.push((level, line.to_vec()));
    }

    fn acl_check(&mut self, args: Args<'_>) -> Option<bool> {
        match args.name().to_ascii_lowercase().as_slice() {
            b"get" | b"set" => Some(true),
            b"flushall" => Some(false),
            _ => None,
        }
    }

    fn set_replication(&mut self, targets: ScriptReplication) {
        self.replication = Some(targets);
    }

    fn clock(&mut self) -> Duration {
        Duration::from_micros(self.ticks)
    }

    fn seed(&mut self) -> u64 {
        self.calls
    }

    fn tick(&mut self) -> Tick {
        self.ticks += 1;
        match self.kill_at {
            Some(at) if self.ticks >= at => Tick::Kill,
            _ => Tick::Continue(Duration::from_micros(10 * self.ticks)),
        }
    }
}

impl Server {
    fn execute(&mut self, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), &'static [u8]> {
        let key = args.at(1).unwrap_or_default().to_vec();
        match (args.name().to_ascii_lowercase().as_slice(), args.len()) {
            (b"ping", 1) => reply.simple("PONG"),
            (b"echo", 2) => reply.bulk(args.text(1)),
            (b"set", 3) => {
                self.keys.insert(key, Stored::Text(args.text(2).to_vec()));
                reply.ok();
            }
            (b"get", 2) => match self.keys.get(&key) {
                None => reply.null(),
                Some(Stored::Text(text)) => reply.bulk(text),
                Some(_) => return Err(WRONG_TYPE),
            },
            (b"del", 2) => reply.int(i64::from(self.keys.remove(&key).is_some())),
            (b"incr", 2) => {
                let number = match self.keys.get(&key) {
                    None => 0,
                    Some(Stored::Text(text)) => base::number::parse_i64(text).ok_or(NOT_INTEGER)?,
                    Some(_) => return Err(WRONG_TYPE),
                };
                let text = (number + 1).to_string().into_bytes();
                self.keys.insert(key, Stored::Text(text));
                reply.int(number + 1);
            }
            (b"rpush", 3..) => {
                let list = self.keys.entry(key).or_insert_with(|| Stored::List(Vec::new()));
                let Stored::List(list) = list else { return Err(WRONG_TYPE) };
                list.extend(args.iter().skip(2).map(<[u8]>::to_vec));
                reply.len(list.len());
            }
            (b"lrange", 4) => match self.keys.get(&key) {
                None => reply.array(0),
                Some(Stored::List(list)) => {
                    reply.array(list.len());
                    list.iter().for_each(|element| reply.bulk(element));
                }
                Some(_) => return Err(WRONG_TYPE),
            },
            (b"hset", 4) => {
                let hash = self.keys.entry(key).or_insert_with(|| Stored::Hash(BTreeMap::new()));
                let Stored::Hash(hash) = hash else { return Err(WRONG_TYPE) };
                let old = hash.insert(args.text(2).to_vec(), args.text(3).to_vec());
                reply.int(i64::from(old.is_none()));
            }
            (b"hgetall", 2) => match self.keys.get(&key) {
                None => reply.map(0),
                Some(Stored::Hash(hash)) => {
                    reply.map(hash.len());
                    for (field, value) in hash {
                        reply.bulk(field);
                        reply.bulk(value);
                    }
                }
                Some(_) => return Err(WRONG_TYPE),
            },
            (b"debug", 3) => protocol(args.text(2), reply)?,
            (b"subscribe", _) => {
                return Err(b"ERR This Redis command is not allowed from script");
            }
            (b"set" | b"get" | b"echo" | b"incr" | b"del" | b"lrange" | b"rpush" | b"hset", _) => {
                return Err(b"ERR Wrong number of args calling Redis command from script");
            }
            _ => return Err(b"ERR Unknown Redis command called from script"),
        }
        Ok(())
    }
}

/// DEBUG PROTOCOL: a reply of each type.
fn protocol(kind: &[u8], reply: &mut Reply<'_>) -> Result<(), &'static [u8]> {
    let three = |reply: &mut Reply<'_>| (0..3).for_each(|number| reply.int(number));
    match kind {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        b"double" => reply.double(3141.0 / 1000.0),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            three(reply);
        }
        b"set" => {
            reply.set(3);
            three(reply);
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.int(number);
                reply.bool(number == 1);
            }
        }
        b"bignum" if reply.resp3() => reply.raw(b"(1234567999999999999999999999999999999\r\n"),
        b"bignum" => reply.bulk(b"1234567999999999999999999999999999999"),
        b"true" => reply.bool(true),
        b"false" => reply.bool(false),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        _ => return Err(b"ERR Wrong protocol type name."),
    }
    Ok(())
}
