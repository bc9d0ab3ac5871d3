//! Files on a disk whose fsync fails, or whose calls take seconds: `strace` injects both into a
//! real server. Without the right to trace, nothing is tested.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use test_support::eventually;

use crate::undisturbed::undisturbed;
use crate::{Client, Server};

const ON: &[&str] = &["--save", "", "--appendonly", "yes"];
const CALLS: &str = "fdatasync,fsync";
const MISCONF: &str = "MISCONF Errors writing to the AOF file: Input/output error";

/// Injects faults into the calls of a server until it is dropped.
struct Spoiler(Child);

impl Spoiler {
    /// `how` is as in `strace -e inject=CALLS:how`. `None` if this machine does not allow tracing.
    fn attach(server: &Server, how: &str) -> Option<Self> {
        Self::attach_to(CALLS, server, how)
    }

    fn attach_to(calls: &str, server: &Server, how: &str) -> Option<Self> {
        let id = server.process().0;
        let tracer = Command::new("strace")
            .args(["-f", "-qq", "-o", "/dev/null", "-p", &id.to_string()])
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{how}")])
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = tracer else {
            eprintln!("strace is missing: skipped");
            return None;
        };
        let mut spoiler = Self(child);
        let is_traced = |status: String| !status.contains("TracerPid:\t0\n");
        loop {
            let threads = fs::read_dir(format!("/proc/{id}/task")).unwrap();
            let mut statuses = threads.map(|thread| thread.unwrap().path().join("status"));
            if statuses.all(|path| fs::read_to_string(path).map(is_traced).unwrap_or(true)) {
                return Some(spoiler);
            }
            if spoiler.0.try_wait().unwrap().is_some() {
                eprintln!("strace may not trace: skipped");
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Spoiler {
    fn drop(&mut self) {
        // It detaches from the server when it ends; if the server is gone, it has ended.
        test_support::send_signal(self.0.id(), "INT");
        let _ = self.0.wait();
    }
}

fn is_durable(client: &mut Client, timeout_ms: u32) -> bool {
    client.ask(&format!("WAITAOF 1 0 {timeout_ms}")).items()[0].int() == 1
}

#[test]
fn after_a_failed_fsync_a_new_base_comes_first() {
    undisturbed(|| {
        for policy in ["everysec", "always"] {
            let server = Server::start(&[ON, &["--appendfsync", policy]].concat());
            let (mut client, mut writer) = (server.client(), server.client());
            client.ok("SET k v");
            assert!(is_durable(&mut client, 0));
            let Some(spoiler) = Spoiler::attach(&server, "error=EIO") else { return };
            writer.send("SET last v");
            eventually("fsync fails", || server.info("aof_last_write_status") == "err");
            eventually("writes are refused", || client.ask("SET k w").text().starts_with(MISCONF));
            assert_eq!(client.ask("GET k").text(), "v", "{policy}: reads are served");
            if policy == "everysec" {
                assert_eq!(writer.read().text(), "OK");
                assert!(!is_durable(&mut writer, 50), "what failed is not called durable");
            }
            drop(spoiler);
            let began = Instant::now();
            eventually("it recovers", || client.ask("SET k after").text() == "OK");
            assert!(began.elapsed() < Duration::from_secs(5), "not in time: {:?}", began.elapsed());
            if policy == "always" {
                assert_eq!(writer.read().text(), "OK");
            }
            assert!(is_durable(&mut writer, 0) && is_durable(&mut client, 0));
            let manifest = fs::read_to_string(server.path("appendonlydir/appendonly.aof.manifest"));
            let manifest = manifest.unwrap();
            assert!(!manifest.contains("appendonly.aof.1.incr.aof"), "{manifest}");
            let server = server.kill_and_start(ON);
            let mut client = server.client();
            assert_eq!(client.ask("GET k").text(), "after", "{policy}");
            assert_eq!(client.ask("GET last").text(), "v", "{policy}");
        }
    });
}

#[test]
fn nothing_is_lost_by_a_kill_while_an_fsync_takes_seconds() {
    let server = Server::start(ON);
    let mut client = server.client();
    let Some(spoiler) = Spoiler::attach(&server, "delay_enter=3000000") else { return };
    client.ok("SET first v");
    // After this timeout, the fsync is running.
    assert!(!is_durable(&mut client, 1500));
    let began = Instant::now();
    (0..2000).for_each(|n| client.ok(&format!("SET key:{n} {n}")));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(!is_durable(&mut client, 1));
    let server = server.kill_and_start(ON);
    drop(spoiler);
    let mut client = server.client();
    assert_eq!(client.ask("DBSIZE").int(), 2001);
    assert_eq!(client.ask("GET key:1999").text(), "1999");
}

#[test]
fn only_flushall_waits_for_the_name_of_a_file() {
    undisturbed(|| {
        const TAKES: Duration = Duration::from_secs(3);
        let server = Server::start(&["--save", "", "--io-threads", "1"]);
        let (mut client, mut other) = (server.client(), server.client());
        client.ok("SET k v");
        let how = format!("delay_enter={}", TAKES.as_micros());
        let Some(_spoiler) = Spoiler::attach_to("/^rename", &server, &how) else { return };
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        let (began, mut is_sent) = (Instant::now(), false);
        while !is_sent {
            let asked = Instant::now();
            let page = client.ask("INFO persistence").text();
            assert!(asked.elapsed() < TAKES / 2, "not in time: INFO took {:?}", asked.elapsed());
            assert!(page.contains("rdb_bgsave_in_progress:1"), "after {:?}", began.elapsed());
            if began.elapsed() > TAKES / 6 {
                other.send("FLUSHALL");
                is_sent = true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(other.read().text(), "OK");
        // The file exists by now, or the save was given up before.
        let is_there = server.path("dump.rdb").exists();
        eventually("it is over", || server.info("rdb_bgsave_in_progress") == "0");
        assert_eq!(server.path("dump.rdb").exists(), is_there);
    });
}
