//! Saves whose cuts wait for commands of other threads.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use node::Node;
use node::config::Config;
use node::state::snapshots::Purpose;
use sync::gate::Pass;

use super::saves::Saves;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::system::thread_notifier::ThreadNotifier;

struct NoThreads;

impl ThreadNotifier for NoThreads {
    fn log_replaced(&self) {}
    fn log_advanced(&self, _: usize) {}
    fn log_failed(&self) {}
    fn shard_available(&self, _: usize, _: usize, _: u64) {}
    fn wait_ended(&self, _: usize, _: usize, _: u64) {}
    fn wake_main(&self) {}
}

/// A keyspace whose RDB file is in a folder of its own, and a thread in a slow command.
fn beside_slow_command(name: &str) -> (Arc<Node>, Saves, Pass) {
    let folder = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut config = Config::default();
    config.saving.dbfilename = folder.join("dump.rdb").to_str().unwrap().to_owned();
    let node = Arc::new(Node::new(config, 1, 1));
    let keyspace = Arc::new(SharedKeyspace::new(Arc::clone(&node), 1, Arc::new(NoThreads)));
    let slow = keyspace.gate.register().unwrap();
    slow.enter();
    (node, Saves::new(&keyspace), slow)
}

/// The folder of the RDB file is no longer needed.
fn remove_folder(node: &Node) {
    let file = node.config().saving.dbfilename.clone();
    std::fs::remove_dir_all(std::path::Path::new(&file).parent().unwrap()).unwrap();
}

/// FLUSHALL comes before the cut of SAVE, so that has no older keys.
#[test]
fn the_save_after_flushall_does_not_wait_for_a_save_without_a_cut() {
    let (node, saves, slow) = beside_slow_command("emptied");
    let pending = saves.begin_save(Purpose::Save).unwrap();
    assert!(node.snapshots.figures.lock().running.is_some_and(|running| !running.has_cut));
    saves.save_emptied(0);
    assert_eq!(node.snapshots.figures.lock().saved, 1, "a file without keys");
    assert!(!pending.wait());
    slow.leave();
    // SAVE begins again then.
    assert_eq!(saves.save(&|| true), Ok(true));
    assert_eq!(node.snapshots.figures.lock().saved, 2);
    remove_folder(&node);
}

/// The main thread waits in SAVE, and a signal ends that.
#[test]
fn a_save_without_a_cut_ends_when_its_caller_must() {
    let (node, saves, slow) = beside_slow_command("signal");
    let is_wanted = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let saving = scope.spawn(|| saves.save(&|| is_wanted.load(Ordering::Relaxed)));
        while node.snapshots.figures.lock().running.is_none() {
            std::thread::yield_now();
        }
        is_wanted.store(false, Ordering::Relaxed);
        node.snapshots.give_up_pending();
        assert_eq!(saving.join().unwrap(), Ok(false));
    });
    slow.leave();
    remove_folder(&node);
}

/// A signal comes between the moment when SAVE is received and the moment when its save begins.
#[test]
fn a_save_without_a_cut_ends_when_its_caller_must_before_it_begins() {
    let (node, saves, slow) = beside_slow_command("early-signal");
    node.snapshots.give_up_pending();
    assert_eq!(saves.save(&|| false), Ok(false));
    slow.leave();
    remove_folder(&node);
}
