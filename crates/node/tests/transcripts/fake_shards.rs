//! Shards without locks, for a server in one thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{HeldShards, ScriptError, ShardAccess};
use node::host::GateAccess;
use node::{ClientRecord, Node, ShardLocks, Worker};
use store::{KeyCount, Shard, Time};

/// Memory of a key.
const KEY_BYTES: i64 = 1000;
/// Memory without keys.
const OTHER_BYTES: i64 = 1_000_000;

/// Shards without locks.
pub struct FakeShards {
    pub shards: Vec<RefCell<Shard>>,
    /// The tick counter at the end of a command.
    pub ticks: Cell<u64>,
    /// Whether the thread is inside the gate.
    pub inside: Rc<Cell<bool>>,
    /// The largest number of shards held at once.
    pub most_held: Cell<usize>,
    /// The time at tick 0.
    pub start: Cell<Time>,
    /// Ticks that the next command waits for its shards.
    pub wait_ticks: Cell<u64>,
    /// A shard that another thread holds.
    pub busy: Cell<Option<usize>>,
    /// A shard that another thread holds for long: a command that needs it is deferred.
    pub slow: Rc<Cell<Option<usize>>>,
    /// The shards that the last deferred command needs together.
    pub needed: RefCell<Vec<usize>>,
    /// A client that another thread kills when this one leaves the gate.
    pub victim: RefCell<Option<Arc<ClientRecord>>>,
    /// Ticks that pass each time the tick counter is read.
    pub look_ticks: Cell<u64>,
    /// The distinct numbers of keys of database 0 that another thread saw when the tick counter was
    /// read.
    pub totals_seen: RefCell<Vec<usize>>,
    other_thread: KeyCount,
    /// Called once when a script is refused a shard, and when one waits for exclusive access.
    pub when_refused: Cell<Option<Box<dyn FnOnce()>>>,
    pub when_waiting: Cell<Option<Box<dyn FnOnce()>>>,
    /// Knows which shards busy scripts hold.
    pub node: Arc<Node>,
}

impl FakeShards {
    /// Creates the empty shards of a node.
    pub fn new(node: Arc<Node>, shards: usize, inside: &Rc<Cell<bool>>) -> Self {
        Self {
            shards: (0..shards).map(|_| RefCell::new(Shard::default())).collect(),
            ticks: Cell::default(),
            inside: Rc::clone(inside),
            most_held: Cell::default(),
            start: Cell::default(),
            wait_ticks: Cell::default(),
            busy: Cell::default(),
            slow: Rc::default(),
            needed: RefCell::default(),
            victim: RefCell::default(),
            look_ticks: Cell::default(),
            totals_seen: RefCell::default(),
            other_thread: node.key_counts.of_thread(1),
            when_refused: Cell::default(),
            when_waiting: Cell::default(),
            node,
        }
    }

    /// Fails if a busy script holds the shard.
    fn try_reach(&self, shard: usize) -> Result<(), ScriptError> {
        self.node.scripting.busy.holder(shard).map_or(Ok(()), Err)
    }

    /// Compares the counts of keys with the shards.
    pub fn check(&self, node: &Node, worker: &Worker) {
        for database in 0..node.databases {
            let len = |shard: &RefCell<Shard>| shard.borrow().db_ref(database).len();
            let keys: usize = self.shards.iter().map(len).sum();
            assert_eq!(worker.turn.keys.total(database), keys, "keys of {database}");
        }
        for (number, shard) in self.shards.iter().enumerate() {
            let marked = node.shard_sets.expiring.contains(number);
            let expires = shard.borrow_mut().expires();
            assert!(marked || !expires, "shard {number} is not marked as one where keys expire");
            let mut shard = shard.borrow_mut();
            let (keys, volatile) = shard.dbs().fold((0, 0), |(keys, volatile), db| {
                (keys + db.len(), volatile + db.expiring_len())
            });
            let marked = node.shard_sets.occupied.contains(number);
            assert!(marked || keys == 0, "shard {number} is not marked as one with keys");
            let marked = node.shard_sets.volatile.contains(number);
            assert!(marked || volatile == 0, "shard {number} is not marked as one to evict from");
        }
    }
}

struct FakeHeldShards<'a> {
    all: &'a FakeShards,
    held: Vec<(usize, std::cell::RefMut<'a, Shard>)>,
}

impl HeldShards for FakeHeldShards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        &mut self.held.iter_mut().find(|(held, _)| *held == number).expect("a held shard").1
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.held.iter().find(|(held, _)| *held == number).expect("a held shard").1
    }

    fn try_visit(&mut self, number: usize, work: &mut dyn FnMut(&mut Shard)) -> bool {
        if self.holds(number) {
            work(self.shard(number));
            return true;
        }
        let is_free = self.all.node.scripting.busy.holder(number).is_none();
        if is_free {
            work(&mut self.all.shards[number].borrow_mut());
        }
        is_free
    }

    fn holds(&self, number: usize) -> bool {
        self.held.iter().any(|(held, _)| *held == number)
    }

    fn try_add(&mut self, number: usize) -> bool {
        let in_use = [self.all.busy.get(), self.all.slow.get()];
        !in_use.contains(&Some(number)) && self.add(number, Duration::ZERO)
    }

    fn add(&mut self, number: usize, _: Duration) -> bool {
        let is_free = self.all.node.scripting.busy.holder(number).is_none()
            && self.all.slow.get() != Some(number);
        if is_free && !self.holds(number) {
            self.held.push((number, self.all.shards[number].borrow_mut()));
        }
        if !is_free && let Some(when_refused) = self.all.when_refused.take() {
            when_refused();
        }
        is_free
    }
}

impl ShardAccess for FakeShards {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) -> Result<(), ScriptError> {
        assert_ne!(self.busy.get(), Some(shard), "a command waits for a shard in use");
        self.try_reach(shard)?;
        work(&mut self.shards[shard].borrow_mut());
        Ok(())
    }

    fn try_visit(&self, shard: usize, _: Duration, work: &mut dyn FnMut(&mut Shard)) -> bool {
        self.busy.get() != Some(shard) && self.visit(shard, work).is_ok()
    }
}

impl GateAccess for FakeShards {
    fn leave(&self) {
        assert!(self.inside.replace(false), "left twice");
        if let Some(victim) = self.victim.take() {
            self.node.kill(&victim);
        }
    }

    fn enter(&self) {
        assert!(!self.inside.replace(true), "entered twice");
    }
}

impl ShardLocks for FakeShards {
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Result<R, ScriptError> {
        self.try_reach(shard)?;
        Ok(work(&mut self.shards[shard].borrow_mut()))
    }

    fn try_one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Option<R> {
        let is_free = self.busy.get() != Some(shard) && self.try_reach(shard).is_ok();
        is_free.then(|| work(&mut self.shards[shard].borrow_mut()))
    }

    fn many<R>(
        &self,
        shards: &[usize],
        work: impl FnOnce(&mut dyn HeldShards) -> R,
    ) -> Result<R, ScriptError> {
        shards.iter().try_for_each(|shard| self.try_reach(*shard))?;
        if shards.iter().any(|shard| self.slow.get() == Some(*shard)) {
            *self.needed.borrow_mut() = shards.to_vec();
            return Err(ScriptError::ShardInUse);
        }
        assert!(shards.is_sorted_by(|a, b| a < b), "ascending without repetition");
        self.most_held.set(self.most_held.get().max(shards.len()));
        let held =
            shards.iter().map(|number| (*number, self.shards[*number].borrow_mut())).collect();
        Ok(work(&mut FakeHeldShards { all: self, held }))
    }

    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn HeldShards) -> R) -> Result<R, ScriptError> {
        let busy = &self.node.scripting.busy;
        if busy.any() {
            return Err(busy.at_gate());
        }
        let held = self.shards.iter().map(RefCell::borrow_mut).enumerate().collect();
        Ok(work(&mut FakeHeldShards { all: self, held }))
    }

    fn keep_turn(&self, _: &[usize]) {}

    fn may_stop_others(&self) -> bool {
        true
    }

    fn keeps_exclusive_slot(&self) -> bool {
        true
    }

    fn left_exclusive_slot(&self) {}

    fn wait_for_exclusive_slot(&self) {
        if let Some(when_waiting) = self.when_waiting.take() {
            when_waiting();
        }
    }

    fn serve_others(&self) {}

    fn prefetch(&self, _: usize) {}

    /// Counts [`KEY_BYTES`] for each key, and [`OTHER_BYTES`] for everything else.
    fn thread_bytes(&self) -> i64 {
        let keys: usize = self.node.key_counts.of_thread(0).totals().sum();
        OTHER_BYTES + keys as i64 * KEY_BYTES
    }

    fn tsc(&self) -> u64 {
        self.ticks.set(self.ticks.get() + self.look_ticks.get());
        let (total, mut seen) = (self.other_thread.total(0), self.totals_seen.borrow_mut());
        if seen.last() != Some(&total) {
            seen.push(total);
        }
        self.ticks.get()
    }

    fn time(&self) -> Time {
        let (start, us) = (self.start.get(), self.ticks.get() as i64);
        Time { unix_us: start.unix_us + us, steady_ms: start.steady_ms + us / 1000 }
    }

    fn time_after_wait(&self) -> Option<Time> {
        let wait = self.wait_ticks.take();
        self.ticks.set(self.ticks.get() + wait);
        (wait > 0).then(|| self.time())
    }
}
