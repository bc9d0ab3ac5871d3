//! How soon a script notices that it must end: `cargo run --release -p script --example steps`.
//!
//! Each script runs for a second and is then killed. The figure is the longest processor time
//! between two checks with the host, during which neither a kill nor another client is served.
#![allow(clippy::expect_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use resp::{Args, Out, Reply};
use script::{LogLevel, Script, ScriptInput, ScriptReplication, Tick, Vm, VmHost};

const MEMORY_BYTES_MAX: usize = 256 << 20;
const RUN: Duration = Duration::from_secs(1);

struct Watch {
    start: Instant,
    last_cpu: Duration,
    longest: Duration,
}

/// The processor time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

impl VmHost for Watch {
    fn call(&mut self, _: Args<'_>, _: bool, out: &mut Out) {
        out.bytes.extend_from_slice(b"+PONG\r\n");
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn acl_check(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn set_replication(&mut self, _: ScriptReplication) {}

    fn clock(&mut self) -> Duration {
        self.start.elapsed()
    }

    fn seed(&mut self) -> u64 {
        0
    }

    fn tick(&mut self) -> Tick {
        let cpu = cpu_time();
        self.longest = self.longest.max(cpu - self.last_cpu);
        self.last_cpu = cpu;
        let elapsed = self.start.elapsed();
        if elapsed > RUN { Tick::Kill } else { Tick::Continue(elapsed) }
    }
}

const SCRIPTS: &[&str] = &[
    "while true do end",
    "while true do redis.call('ping') end",
    "while true do string.rep('x', 5e7) end",
    "while true do string.rep('abc', 2e7) end",
    "local s = string.rep('a', 3e7) while true do string.upper(s) end",
    "local s = string.rep('a', 3e7) while true do local t = s .. 'x' end",
    "local s = string.rep('a', 3e7) while true do string.gsub(s, 'a', 'b') end",
    "local s = string.rep('a', 3e7) while true do string.find(s, '.-.-.-b') end",
    "local s, p = string.rep('a', 3e7), string.rep('a', 1e7) .. 'b' while true do s:find(p, \
     1, true) end",
    "local t = {} for i = 1, 5e6 do t[i] = i * 7919 % 1e6 end while true do table.sort(t) end",
    "local t = {} for i = 1, 5e6 do t[i] = 'x' end while true do table.concat(t) end",
    "local t = {} for i = 1, 5e6 do t[i] = i end while true do table.insert(t, 1, 0) \
     table.remove(t, 1) end",
    "local t = {} for i = 1, 5e6 do t[i] = i end while true do local n = #t + table.maxn(t) end",
    "local t = {} for i = 1, 2e6 do t['k' .. i] = i end while true do for k in pairs(t) do end end",
    "local t = {} for i = 1, 2e6 do t['k' .. i] = i end for k in pairs(t) do t[k] = nil end \
     while true do next(t) end",
    "while true do local t = {} for i = 1, 5e6 do t[i] = {} end end",
    "local t = {} for i = 1, 1e6 do t[i] = i end while true do cjson.encode(t) end",
    "local s = '[' .. string.rep('1,', 1e6) .. '1]' while true do cjson.decode(s) end",
    "local t = {} for i = 1, 1e6 do t[i] = i end while true do \
     cmsgpack.unpack(cmsgpack.pack(t)) end",
    "local t = {} for i = 1, 1e5 do t[i] = i end while true do select('#', unpack(t)) end",
    "local s = string.rep('x', 1e7) while true do redis.sha1hex(s) end",
    "local s = 'return ' .. string.rep('1+', 5e5) .. '1' while true do loadstring(s) end",
    "local s = string.rep('local x = {1,2,3} ', 5e4) while true do loadstring(s) end",
    "local s = string.rep('9', 1e7) while true do tonumber(s) end",
    "local s = string.rep('x', 3e7) while true do string.format('%s', s) end",
    "local s = string.rep('x', 3e7) local t = s .. 'a' local u = s .. 'b' while true do \
     local b = t < u end",
];

fn main() {
    for body in SCRIPTS {
        let mut vm = Vm::new(MEMORY_BYTES_MAX).expect("a VM");
        let script = Arc::new(Script::new(body.as_bytes()).expect("a script"));
        let loaded = vm.load_script(&script).expect("it compiles");
        let (start, last_cpu) = (Instant::now(), cpu_time());
        let mut watch = Watch { start, last_cpu, longest: Duration::ZERO };
        let mut out = Out::default();
        let input = ScriptInput { args: Args::new(&[], &[], &[]), first_key: 0, keys: 0 };
        let result = vm.eval_script(&mut watch, &loaded, input, &mut Reply::new(&mut out, false));
        let text = result.expect_err("it does not end by itself").text;
        let end = if text.starts_with(b"ERR Script killed") { "killed" } else { "failed" };
        let after = cpu_time() - watch.last_cpu;
        let Watch { longest, .. } = watch;
        println!("{longest:>9.1?} then {after:>9.1?} {end}  {body}");
    }
}
