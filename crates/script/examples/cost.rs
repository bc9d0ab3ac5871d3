//! The cost of a script in this crate alone: `cargo run --release -p script --example cost`.
//!
//! The host replies at once as a real one would, so the figures include everything except the
//! commands: finding the script, the tables of keys and arguments, the calls, and both conversions.

#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use resp::{Args, Out, Reply, Span};
use script::{LogLevel, Script, ScriptInput, ScriptReplication, Tick, Vm, VmHost};

const MEMORY_BYTES_MAX: usize = 256 << 20;

struct Canned(Instant);

impl VmHost for Canned {
    fn call(&mut self, args: Args<'_>, _resp3: bool, out: &mut Out) {
        let reply: &[u8] = match args.name() {
            b"GET" => b"$10\r\n0123456789\r\n",
            b"INCR" => b":1\r\n",
            b"LRANGE" => return out.bytes.extend_from_slice(&list()),
            _ => b"+OK\r\n",
        };
        out.bytes.extend_from_slice(reply);
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn acl_check(&mut self, _: Args<'_>) -> Option<bool> {
        Some(true)
    }

    fn set_replication(&mut self, _: ScriptReplication) {}

    fn clock(&mut self) -> Duration {
        self.0.elapsed()
    }

    fn seed(&mut self) -> u64 {
        1
    }

    fn tick(&mut self) -> Tick {
        Tick::Continue(self.0.elapsed())
    }
}

/// The processor time of this thread, which other processes disturb less.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn list() -> Vec<u8> {
    let mut list = b"*100\r\n".to_vec();
    (0..100).for_each(|_| list.extend_from_slice(b"$10\r\n0123456789\r\n"));
    list
}

fn main() {
    let mut vm = Vm::new(MEMORY_BYTES_MAX).expect("a VM");
    let mut host = Canned(Instant::now());
    let mut measure = |name: &str, body: &str, keys: usize, rounds: u32| {
        let script = Arc::new(Script::new(body.as_bytes()).expect("a script"));
        vm.load_script(&script).expect("the script compiles");
        let (bytes, spans) = (b"key:000001value:0000000001", [Span::new(0, 10), Span::new(10, 16)]);
        let args = Args::new(bytes, &spans, &[]);
        let input = ScriptInput { args, first_key: 0, keys };
        let mut out = Out::default();
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let start = cpu_time();
            for _ in 0..rounds {
                out.clear();
                let mut reply = Reply::new(&mut out, false);
                let loaded = vm.script_by_body(body.as_bytes()).expect("it is loaded");
                vm.eval_script(&mut host, &loaded, input, &mut reply).expect("the script runs");
            }
            best = best.min((cpu_time() - start) / rounds);
        }
        println!("{name:32} {best:>12.3?}");
    };
    measure("return 1", "return 1", 1, 100_000);
    measure("one GET", "return redis.call('GET', KEYS[1])", 1, 100_000);
    let sets = "for i = 1, 10 do redis.call('SET', KEYS[1], ARGV[1]) end return 1";
    measure("ten SETs", sets, 1, 20_000);
    measure("LRANGE of 100", "return redis.call('LRANGE', KEYS[1], 0, -1)", 1, 10_000);
    let limiter = "local n = redis.call('INCR', KEYS[1]) if n == 1 then \
                   redis.call('EXPIRE', KEYS[1], ARGV[1]) end return n";
    measure("rate limiter", limiter, 1, 50_000);
    measure("loop of a million", "local x = 0 for i = 1, 1000000 do x = x + i end return x", 1, 5);
    let calls = "local function f(a) return a end for i = 1, 1000000 do f(i) end return 1";
    measure("a million calls", calls, 1, 5);
    measure("tostring x 1000", "for i = 1, 1000 do local s = tostring(i) end", 1, 100);
    let bits = "local x = 0 for i = 1, 1000 do x = bit.bxor(x, bit.lshift(i, 3)) end return x";
    measure("bit x 1000", bits, 1, 100);
    measure("pcall x 1000", "for i = 1, 1000 do pcall(type, i) end", 1, 100);
}
