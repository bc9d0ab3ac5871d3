//! Client-side caches on several threads: no cache keeps a value that is older than a write whose
//! reply preceded the cache's last request.
//!
//! Each key has one writer, which counts up. A cache keeps values until it is notified that their
//! keys have changed. It sends PING now and then: the reply follows the notifications of all writes
//! with earlier replies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

use test_support::{eventually, request};

use crate::{Client, Server, Value};

const WRITERS: usize = 8;
const KEYS: usize = 4 * WRITERS;

/// How a cache tracks keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Default,
    OptIn,
    Broadcast,
    /// By notifications to another connection, which speaks RESP2.
    Redirect,
}

const MODES: [Mode; 4] = [Mode::Default, Mode::OptIn, Mode::Broadcast, Mode::Redirect];

/// The state that all clients of the test share.
struct World {
    /// The last version of each key whose write has a reply.
    answered: Vec<AtomicU64>,
    done: AtomicBool,
    hits: AtomicU64,
    told: AtomicU64,
}

impl World {
    fn answered(&self) -> Vec<u64> {
        self.answered.iter().map(|version| version.load(Ordering::SeqCst)).collect()
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }
}

/// The values that a cache keeps.
#[derive(Default)]
struct Kept {
    values: BTreeMap<usize, u64>,
    /// Keys whose GET has no reply yet, without a change since.
    reading: BTreeSet<usize>,
}

impl Kept {
    /// Handles a notification: an array of names, or null.
    fn forget(&mut self, names: &Value) {
        let Value::Many(_, names) = names else {
            *self = Self::default();
            return;
        };
        for name in names {
            let key = name.text()[1..].parse().unwrap();
            self.values.remove(&key);
            self.reading.remove(&key);
        }
    }

    fn keep(&mut self, key: usize, version: u64) {
        if self.reading.remove(&key) {
            self.values.insert(key, version);
        }
    }

    /// Checks that no value is older than these versions.
    #[track_caller]
    fn check(&self, versions: &[u64], mode: Mode) {
        for (key, version) in &self.values {
            assert!(*version >= versions[*key], "{mode:?}: k{key} is {version}: {versions:?}");
        }
    }
}

fn version(reply: &Value) -> u64 {
    match reply {
        Value::Null(_) => 0,
        reply => reply.text().parse().unwrap(),
    }
}

/// Writes versions of its own keys by many commands.
fn write(server: &Server, world: &World, writer: usize) {
    let mut client = server.client();
    let mut round = 0;
    while !world.is_done() {
        round += 1;
        for key in (0..KEYS).filter(|key| key % WRITERS == writer) {
            let version = world.answered[key].load(Ordering::SeqCst) + 1;
            match (round + key) % 5 {
                0 => client.ok(&format!("SET k{key} {version}")),
                1 => assert_eq!(client.ask(&format!("INCR k{key}")).int() as u64, version),
                2 => {
                    let queued = [format!("DEL k{key}"), format!("SET k{key} {version}")];
                    client.ok("MULTI");
                    queued.iter().for_each(|command| drop(client.ask(command)));
                    assert_eq!(client.ask("EXEC").items().len(), 2);
                }
                3 => {
                    let script = b"return redis.call('set', KEYS[1], ARGV[1])";
                    let (key, version) = (format!("k{key}"), version.to_string());
                    let args: [&[u8]; 5] =
                        [b"EVAL", script, b"1", key.as_bytes(), version.as_bytes()];
                    client.ask_args(&args).text();
                }
                _ => {
                    client.ok(&format!("SET new{key} {version}"));
                    client.ok(&format!("RENAME new{key} k{key}"));
                }
            }
            world.answered[key].store(version, Ordering::SeqCst);
        }
    }
}

/// A cache and its connection. Each function fails when the connection is lost.
struct Cache<'a> {
    world: &'a World,
    mode: Mode,
    client: Client,
    kept: Arc<Mutex<Kept>>,
    /// The connection that gets the notifications is lost.
    is_deaf: Arc<AtomicBool>,
}

impl<'a> Cache<'a> {
    fn connect(server: &Server, world: &'a World, mode: Mode) -> io::Result<Self> {
        let mut client = Client::try_tcp(server.address())?;
        let (kept, is_deaf) = <(Arc<Mutex<Kept>>, Arc<AtomicBool>)>::default();
        let options = match mode {
            Mode::Default => String::new(),
            Mode::OptIn => " OPTIN".to_owned(),
            Mode::Broadcast => " BCAST PREFIX k NOLOOP".to_owned(),
            Mode::Redirect => {
                let mut told = Client::try_tcp(server.address())?;
                told.send_lossy(&request("CLIENT ID"));
                let id = told.try_read()?.int();
                told.send_lossy(&request("SUBSCRIBE __redis__:invalidate"));
                told.try_read()?;
                let (kept, is_deaf) = (Arc::clone(&kept), Arc::clone(&is_deaf));
                thread::spawn(move || {
                    while let Ok(message) = told.try_read() {
                        kept.lock().unwrap().forget(&message.items()[2]);
                    }
                    is_deaf.store(true, Ordering::SeqCst);
                });
                format!(" REDIRECT {id}")
            }
        };
        if mode != Mode::Redirect {
            client.send_lossy(&request("HELLO 3"));
            client.try_read()?;
        }
        client.send_lossy(&request(&format!("CLIENT TRACKING ON{options}")));
        let reply = client.try_read()?;
        if mode == Mode::Redirect && reply.is_error() {
            // The other connection was killed meanwhile.
            return Err(io::ErrorKind::NotConnected.into());
        }
        assert_eq!(reply.text(), "OK");
        Ok(Self { world, mode, client, kept, is_deaf })
    }

    /// The next reply. Notifications before it are handled.
    fn read(&mut self) -> io::Result<Value> {
        loop {
            let reply = self.client.try_read()?;
            match &reply {
                Value::Many(_, items) if items.first() == Some(&Value::bulk(b"invalidate")) => {
                    self.world.told.fetch_add(1, Ordering::Relaxed);
                    self.kept.lock().unwrap().forget(&items[1]);
                }
                _ => return Ok(reply),
            }
        }
    }

    fn ask(&mut self, words: &str) -> io::Result<Value> {
        self.client.send_lossy(&request(words));
        self.read()
    }

    /// Gets keys that are not in the cache. With `lent`, another thread executes the last one.
    fn get(&mut self, keys: [usize; 2], lent: bool) -> io::Result<()> {
        let mut requests = Vec::new();
        let versions = self.world.answered();
        let mut asked = Vec::new();
        for key in keys {
            let mut kept = self.kept.lock().unwrap();
            if kept.values.contains_key(&key) {
                self.world.hits.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            kept.reading.insert(key);
            if self.mode == Mode::OptIn {
                requests.extend(request("CLIENT CACHING YES"));
            }
            match lent {
                true => {
                    requests.extend(request("MULTI"));
                    requests.extend(request(&format!("GET k{key}")));
                    requests.extend(request("CONFIG GET hz"));
                    requests.extend(request("EXEC"));
                }
                false => requests.extend(request(&format!("GET k{key}"))),
            }
            asked.push(key);
        }
        self.client.send_lossy(&requests);
        for key in asked {
            if self.mode == Mode::OptIn {
                self.read()?;
            }
            let reply = match lent {
                false => self.read()?,
                true => {
                    (0..3).try_for_each(|_| self.read().map(drop))?;
                    self.read()?.items()[0].clone()
                }
            };
            let found = version(&reply);
            assert!(found >= versions[key], "{:?}: an old k{key}", self.mode);
            self.kept.lock().unwrap().keep(key, found);
        }
        Ok(())
    }

    /// Checks the kept values. Notifications on another connection may arrive a moment later.
    fn check(&mut self) -> io::Result<()> {
        let versions = self.world.answered();
        assert_eq!(self.ask("PING")?.text(), "PONG");
        if self.mode != Mode::Redirect {
            self.kept.lock().unwrap().check(&versions, self.mode);
            return Ok(());
        }
        let is_deaf = || self.is_deaf.load(Ordering::SeqCst);
        eventually("all notifications arrive", || {
            let is_old = |(key, version): (&usize, &u64)| *version < versions[*key];
            is_deaf() || !self.kept.lock().unwrap().values.iter().any(is_old)
        });
        match is_deaf() {
            true => Err(io::ErrorKind::NotConnected.into()),
            false => Ok(()),
        }
    }

    fn work(&mut self, from: usize) -> io::Result<()> {
        let mut round = from;
        while !self.world.is_done() {
            round += 1;
            let keys = [round * 7 % KEYS, (round * 11 + 5) % KEYS];
            self.get(keys, round.is_multiple_of(13))?;
            if round.is_multiple_of(5) {
                self.check()?;
            }
        }
        self.check()
    }
}

/// Moves clients to other threads, and kills some that are no writers.
fn disturb(server: &Server, world: &World) {
    let mut client = server.client();
    let mut round = 0;
    while !world.is_done() {
        round += 1;
        client.ok(&format!("CONFIG SET io-threads {}", 1 + round % 4));
        thread::sleep(Duration::from_millis(60));
        let list = client.ask("CLIENT LIST").text();
        let caches: Vec<&str> = list
            .lines()
            .filter(|line| line.contains(" flags=t") || line.contains(" sub=1 "))
            .filter_map(|line| line.split([' ', '=']).nth(1))
            .collect();
        if let Some(id) = caches.get(round % caches.len().max(1)) {
            client.ask(&format!("CLIENT KILL ID {id}"));
        }
    }
}

#[test]
fn caches_never_keep_overwritten_values() {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let world = World {
        answered: (0..KEYS).map(|_| AtomicU64::new(0)).collect(),
        done: AtomicBool::new(false),
        hits: AtomicU64::new(0),
        told: AtomicU64::new(0),
    };
    let (server, world) = (&server, &world);
    thread::scope(|scope| {
        // A failure ends the other clients.
        let ends = |work: &mut dyn FnMut()| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            if let Err(cause) = result {
                world.done.store(true, Ordering::SeqCst);
                std::panic::resume_unwind(cause);
            }
        };
        for writer in 0..WRITERS {
            scope.spawn(move || ends(&mut || write(server, world, writer)));
        }
        for nth in 0..8 {
            scope.spawn(move || {
                ends(&mut || loop {
                    let cache = Cache::connect(server, world, MODES[nth % MODES.len()]);
                    // A killed cache starts again.
                    match cache.and_then(|mut cache| cache.work(nth)) {
                        Err(_) if !world.is_done() => {}
                        _ => return,
                    }
                });
            });
        }
        scope.spawn(move || ends(&mut || disturb(server, world)));
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(3) && !world.is_done() {
            thread::sleep(Duration::from_millis(10));
        }
        world.done.store(true, Ordering::SeqCst);
    });
    let [hits, told] = [&world.hits, &world.told].map(|count| count.load(Ordering::Relaxed));
    assert!(hits > 100 && told > 100, "{hits} hits, told {told} times");
}
