//! Elements pass through lists to blocked clients: each arrives once.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use test_support::Value;

use crate::actor::act;
use crate::connection::Connection;
use crate::fault::Fault;
use crate::trouble::{Trouble, wrong};
use crate::world::{World, lock};

const LISTS: [&str; 3] = ["queue:0", "queue:1", "queue:2"];
/// The destination of BLMOVE.
const MOVED: &str = "queue:moved";

/// The elements that were pushed and taken.
#[derive(Default)]
pub struct Ledger {
    next: AtomicU64,
    pushed: Mutex<BTreeSet<u64>>,
    /// Elements whose LPUSH has no reply yet.
    maybe_pushed: Mutex<BTreeSet<u64>>,
    taken: Mutex<BTreeSet<u64>>,
    /// Connections that were closed while an element may have been sent to them.
    lost_takes: AtomicU64,
}

/// Pushes until the run is over.
pub fn produce(world: &World, ledger: &Ledger, number: usize) {
    act(world, &format!("producer {number}"), number % 2 == 1, |connection| {
        let element = ledger.next.fetch_add(1, Ordering::Relaxed);
        lock(&ledger.maybe_pushed).insert(element);
        let list = LISTS[fastrand::usize(0..LISTS.len())];
        let text = element.to_string();
        let reply = match fastrand::u32(0..3) {
            0 => connection.ask_all(&[&["MULTI"], &["LPUSH", list, &text], &["EXEC"]])?.pop(),
            1 => Some(connection.ask(&["LPUSH", list, &text])?),
            _ => {
                let script = "return redis.call('LPUSH', KEYS[1], ARGV[1])";
                Some(connection.ask(&["EVAL", script, "1", list, &text])?)
            }
        };
        match reply {
            Some(reply) if !reply.is_error() => {}
            reply => return wrong(format!("LPUSH is {reply:?}")),
        }
        lock(&ledger.maybe_pushed).remove(&element);
        lock(&ledger.pushed).insert(element);
        world.met("elements pushed", 1);
        // No faster than consumers take.
        std::thread::sleep(std::time::Duration::from_micros(fastrand::u64(0..1000)));
        Ok(())
    });
}

/// Takes until the run is over.
pub fn consume(world: &World, ledger: &Ledger, number: usize) {
    let [first, second, third] = LISTS;
    act(world, &format!("consumer {number}"), number % 2 == 1, |connection| {
        let request: &[&str] = match fastrand::u32(0..4) {
            0 => &["BLMOVE", first, MOVED, "RIGHT", "LEFT", "0.05"],
            1 => &["BLMPOP", "0.05", "2", third, MOVED, "RIGHT"],
            2 => &["BRPOP", MOVED, first, second, third, "0.05"],
            _ => &["BRPOP", third, second, "0.2"],
        };
        let reply = connection.ask(request).inspect_err(|trouble| {
            if matches!(trouble, Trouble::Lost) && request[0] != "BLMOVE" {
                ledger.lost_takes.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        if matches!(reply, Value::Null(_)) {
            world.met("waits that ended without an element", 1);
            return Ok(());
        }
        if request[0] == "BLMOVE" {
            world.met("elements moved by BLMOVE", 1);
            return Ok(());
        }
        if world.plants(Fault::LostElement, 50) {
            return Ok(());
        }
        let taken = match reply.elements() {
            [_, Value::Many(_, elements)] => elements.first().and_then(Value::integer),
            [_, element] => element.integer(),
            _ => None,
        };
        let Some(element) = taken.and_then(|taken| u64::try_from(taken).ok()) else {
            return wrong(format!("{request:?} is {reply}"));
        };
        world.met("elements taken", 1);
        ledger.take(element)
    });
}

impl Ledger {
    fn take(&self, element: u64) -> Result<(), Trouble> {
        match lock(&self.taken).insert(element) {
            true => Ok(()),
            false => wrong(format!("element {element} was taken twice")),
        }
    }

    /// Takes the rest of the lists after all actors have stopped, and compares.
    pub fn close(&self, connection: &mut Connection) -> Result<(), Trouble> {
        for list in LISTS.iter().chain(&[MOVED]) {
            let rest = connection.ask(&["LRANGE", list, "0", "-1"])?;
            for element in rest.elements().iter().filter_map(Value::integer) {
                self.take(element.unsigned_abs())?;
            }
        }
        let (taken, pushed) = (lock(&self.taken), lock(&self.pushed));
        let maybe = lock(&self.maybe_pushed);
        if let Some(element) = taken.iter().find(|e| !pushed.contains(e) && !maybe.contains(e)) {
            return wrong(format!("element {element} was taken and never pushed"));
        }
        let missing = pushed.difference(&taken).count() as u64;
        let lost = self.lost_takes.load(Ordering::Relaxed);
        if missing > lost {
            return wrong(format!(
                "{missing} elements are gone, but {lost} waiting clients were lost"
            ));
        }
        Ok(())
    }
}
