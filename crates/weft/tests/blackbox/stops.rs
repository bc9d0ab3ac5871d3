//! Commands that stop all others, during a stream of slow commands: they wait for running commands,
//! and not for later ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use test_support::{encode, eventually};

use crate::Server;
use crate::put_aside::{TEN_MS, know_script, streams_of};

/// Commands that stop all others.
const STOP: [&str; 4] = ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SORT none BY w_*"];

/// The largest number of scripts that begin while such a command waits. It tries to stop the other
/// threads at two moments, and then the next scripts of all clients wait for it; it checks once a
/// turn, in which its thread has run three: 20 to 110. If held clients ran on, it would wait for
/// many hundreds.
pub(crate) const BEGUN_MAX: usize = 200;

#[test]
fn a_stream_of_scripts_does_not_delay_commands_that_stop_all_others() {
    let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let streams: Vec<_> = (0..8)
        .map(|number| {
            let (begun, ended, mut client) =
                (Arc::clone(&begun), Arc::clone(&ended), server.client());
            let script = encode(&[b"EVAL", TEN_MS, b"1", format!("key{number}").as_bytes()]);
            thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    begun.fetch_add(1, Ordering::Relaxed);
                    client.send_raw(&script);
                    assert!(client.read().int() > 0);
                }
            })
        })
        .collect();
    let mut client = server.client();
    eventually("scripts run", || begun.load(Ordering::Relaxed) > 20);
    for command in STOP {
        let before = begun.load(Ordering::Relaxed);
        client.ask(command);
        let others = begun.load(Ordering::Relaxed) - before;
        assert!(others <= BEGUN_MAX, "{command} waited for {others} scripts");
    }
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
}

/// The largest number of scripts that begin while five EXECs stop all others: those of all clients
/// before it in its thread's turn, and some at each check. Usually 50 to 70 each time; next to a
/// thread whose turns do not end while it waits, 620 to 1,150 in all.
const BESIDE_EXEC_MAX: usize = 5 * 100;

#[test]
fn commands_that_stop_all_others_do_not_wait_for_their_own_thread() {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    know_script(&server, TEN_MS);
    let (begun, ended) = (Arc::<AtomicUsize>::default(), Arc::new(AtomicBool::new(false)));
    let clients = [(); 24].map(|()| server.client());
    let streams =
        streams_of(clients, TEN_MS, (&begun, &ended), |number| vec![format!("key{number}")]);
    let mut client = server.client();
    eventually("scripts run", || begun.load(Ordering::Relaxed) > 50);
    let mut others = 0;
    for _ in 0..5 {
        client.ok("MULTI");
        assert_eq!(client.ask("CONFIG SET slowlog-max-len 100").text(), "QUEUED");
        let before = begun.load(Ordering::Relaxed);
        assert_eq!(client.ask("EXEC").items().len(), 1);
        others += begun.load(Ordering::Relaxed) - before;
    }
    ended.store(true, Ordering::Relaxed);
    streams.into_iter().for_each(|stream| stream.join().unwrap());
    assert!(others <= BESIDE_EXEC_MAX, "waited for {others} scripts");
}
