//! Kills and pauses clients, moves them between threads, and changes the configuration under them.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use test_support::Value;

use crate::actor::act;
use crate::connection::Connection;
use crate::trouble::{Trouble, expect, wrong};
use crate::world::World;

/// A pause of a client at most, in milliseconds.
const PAUSE_MS_MAX: u32 = 80;

/// Disturbs until the run is over.
pub fn disturb(world: &World) {
    act(world, "disturber", false, |connection| {
        thread::sleep(Duration::from_millis(fastrand::u64(0..30)));
        match fastrand::u32(0..12) {
            0..3 => kill_one(world, connection),
            3 => kill_kind(world, connection),
            4..6 => pause(world, connection),
            6..9 if world.is_weft => configure(world, connection),
            9 => work_slowly(world, connection),
            _ => look(world, connection),
        }
    });
    // The final checks do not wait for a pause.
    if let Ok(mut connection) = Connection::open(&world.endpoint, false) {
        let _ = connection.ask(&["CLIENT", "UNPAUSE"]);
    }
}

fn kill_one(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let list = connection.ask(&["CLIENT", "LIST"])?;
    let text = String::from_utf8_lossy(list.bytes().unwrap_or_default()).into_owned();
    let ids: Vec<&str> =
        text.split(['\n', ' ']).filter_map(|field| field.strip_prefix("id=")).collect();
    if ids.is_empty() {
        return wrong(format!("CLIENT LIST is {list}"));
    }
    let id = ids[fastrand::usize(0..ids.len())];
    count_killed(world, &connection.ask(&["CLIENT", "KILL", "ID", id, "SKIPME", "yes"])?)
}

fn kill_kind(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let kind = ["pubsub", "normal"][usize::from(fastrand::u32(0..4) == 0)];
    count_killed(world, &connection.ask(&["CLIENT", "KILL", "TYPE", kind])?)
}

fn count_killed(world: &World, reply: &Value) -> Result<(), Trouble> {
    let Some(killed) = reply.integer().and_then(|killed| u64::try_from(killed).ok()) else {
        return wrong(format!("CLIENT KILL is {reply}"));
    };
    world.killed.fetch_add(killed, Ordering::Relaxed);
    Ok(())
}

fn pause(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let time = fastrand::u32(1..=PAUSE_MS_MAX).to_string();
    let mode = ["WRITE", "ALL"][fastrand::usize(0..2)];
    expect(&connection.ask(&["CLIENT", "PAUSE", &time, mode])?, "OK")?;
    world.met("pauses", 1);
    if fastrand::bool() {
        expect(&connection.ask(&["CLIENT", "UNPAUSE"])?, "OK")?;
    }
    Ok(())
}

fn configure(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let threads = fastrand::u32(1..=4).to_string();
    let (name, value): (&str, &str) = match fastrand::u32(0..8) {
        0..4 => ("io-threads", &threads),
        4 => ("io-threads-execute", ["all", "simple", "none"][fastrand::usize(0..3)]),
        5 => ("io-threads-always-active", ["yes", "no"][fastrand::usize(0..2)]),
        6 => ("script-parallel", ["yes", "no"][fastrand::usize(0..2)]),
        _ => ("hz", ["1", "10", "100"][fastrand::usize(0..3)]),
    };
    let reply = connection.ask(&["CONFIG", "SET", name, value])?;
    world.met(
        if name == "io-threads" { "changes of io-threads" } else { "changes of other parameters" },
        1,
    );
    expect(&reply, "OK")
}

/// Sends commands that occupy their thread for some milliseconds.
fn work_slowly(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let spin = "local n = 0 for i = 1, 300000 do n = n + i end return n";
    let replies = connection.ask_all(&[
        &["EVAL", spin, "0"],
        &["EVAL", "for i = 1, 20000 do redis.call('RPUSH', KEYS[1], i) end", "1", "slow"],
        &["SORT", "slow", "DESC", "STORE", "slow:sorted"],
        &["DEL", "slow", "slow:sorted"],
    ])?;
    world.met("slow commands", 1);
    match replies.iter().find(|reply| reply.is_error()) {
        Some(error) => wrong(format!("a slow command is {error}")),
        None => Ok(()),
    }
}

fn look(world: &World, connection: &mut Connection) -> Result<(), Trouble> {
    let requests: [&[&str]; 6] = [
        &["INFO", "everything"],
        &["CLIENT", "LIST"],
        &["MEMORY", "STATS"],
        &["SCRIPT", "FLUSH"],
        &["CONFIG", "RESETSTAT"],
        &["DBSIZE"],
    ];
    let request = requests[fastrand::usize(0..requests.len())];
    let reply = connection.ask(request)?;
    world.met("looks", 1);
    match reply.is_error() {
        true => wrong(format!("{request:?} is {reply}")),
        false => Ok(()),
    }
}
