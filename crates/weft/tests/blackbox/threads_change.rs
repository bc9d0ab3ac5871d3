//! The number of threads, and the threads that execute commands, change while clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use test_support::{eventually, request};

use crate::control_group::ControlGroup;
use crate::threads::threads_of_clients;
use crate::undisturbed::undisturbed;
use crate::{Client, Server};

/// Runs clients that check every reply to their own counters while `change` works on the server.
fn under_load(server: &Server, change: impl FnOnce(&mut Client)) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|number| {
                let mut client = server.client();
                let done = &done;
                scope.spawn(move || {
                    let (own, other) = (format!("INCR own:{number}"), format!("ECHO {number}"));
                    let two = format!("MSET a:{number} 1 b:{number} 2");
                    let bytes = [request(&own), request(&other), request(&two)].concat();
                    let mut count = 0;
                    while !done.load(Ordering::Relaxed) {
                        client.send_raw(&bytes.repeat(10));
                        for _ in 0..10 {
                            count += 1;
                            assert_eq!(client.read().int(), count);
                            assert_eq!(client.read().text(), number.to_string());
                            assert_eq!(client.read().text(), "OK");
                        }
                    }
                    count
                })
            })
            .collect();
        let mut control = server.client();
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| change(&mut control)));
        done.store(true, Ordering::Relaxed);
        for (number, client) in clients.into_iter().enumerate() {
            let count = client.join().expect("every reply is as it should be");
            assert!(count > 0);
            assert_eq!(server.client().ask(&format!("GET own:{number}")).text(), count.to_string());
        }
        end.unwrap();
    });
}

#[test]
fn threads_come_and_go_under_load() {
    for execute in ["all", "none"] {
        let server = Server::start(&["--io-threads", "2", "--io-threads-execute", execute]);
        let mut idle: Vec<Client> = (0..20).map(|_| server.client()).collect();
        for client in &mut idle {
            // Half a request moves with its client.
            client.send_raw(b"*2\r\n$4\r\nECHO\r\n$50000\r\nhel");
        }
        under_load(&server, |control| {
            for round in 0..6 {
                for threads in [1, 4, 2, 8, 1, 3, 1, 2, 5, 4] {
                    control.ok(&format!("CONFIG SET io-threads {threads}"));
                    if round % 2 == 0 {
                        control.send_raw(b"CONFIG SET io-threads 1\r\nCONFIG SET io-threads 3\r\n");
                        assert_eq!(control.read().text(), "OK");
                        assert_eq!(control.read().text(), "OK");
                    }
                    control.ask("PING");
                }
            }
        });
        let mut control = server.client();
        for threads in ["1", "6", "2"] {
            control.ok(&format!("CONFIG SET io-threads {threads}"));
            eventually("the threads are there", || io_threads(&server) == threads);
        }
        for mut client in idle {
            client.send_raw(&[b'x'; 49_997]);
            client.send_raw(b"\r\n");
            assert_eq!(client.read().text().len(), 50_000);
        }
        eventually("ended threads are gone", || {
            let threads = server.process().threads();
            threads.keys().filter(|name| name.starts_with("weft-io-")).count() == 1
        });
    }
}

fn io_threads(server: &Server) -> String {
    let text = server.client().ask("INFO threads").text();
    text.lines().filter(|line| line.starts_with("io_thread_")).count().to_string()
}

#[test]
fn commands_move_between_threads_under_load() {
    let server = Server::start(&["--io-threads", "3"]);
    under_load(&server, |control| {
        for round in 0..60 {
            let execute = ["none", "simple", "all"][round % 3];
            control.ok(&format!("CONFIG SET io-threads-execute {execute}"));
            control.ask("CLIENT LIST");
        }
    });
}

#[test]
fn new_threads_take_their_share_of_old_clients() {
    let server = Server::start(&["--io-threads", "1", "--io-threads-always-active", "yes"]);
    let mut clients: Vec<Client> = (0..24).map(|_| server.client()).collect();
    for client in &mut clients {
        client.ask("PING");
    }
    let mut even = |threads: usize, wanted: &[(&str, usize)]| {
        clients[0].ok(&format!("CONFIG SET io-threads {threads}"));
        let wanted = wanted.iter().map(|(thread, count)| ((*thread).to_owned(), *count)).collect();
        eventually("they are spread evenly", || threads_of_clients(&mut clients[0]) == wanted);
    };
    even(2, &[("1", 24)]);
    even(4, &[("1", 8), ("2", 8), ("3", 8)]);
    even(3, &[("1", 12), ("2", 12)]);
    even(5, &[("1", 6), ("2", 6), ("3", 6), ("4", 6)]);
    even(1, &[("0", 24)]);
    for client in &mut clients {
        assert_eq!(client.ask("PING").text(), "PONG");
    }
}

#[test]
fn threads_without_a_processor_have_no_clients() {
    undisturbed(|| {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let server = Server::start(&["--io-threads", "16"]);
        let mut clients: Vec<Client> = (0..40).map(|_| server.client()).collect();
        for client in &mut clients {
            client.ask("PING");
        }
        assert_eq!(io_threads(&server), "16");
        let carriers = threads_of_clients(&mut clients[0]).len();
        assert_eq!(carriers, cores.min(15));
        assert_eq!(server.info("io_threads_active"), carriers.to_string());
        // Under a light load one thread is enough and has all clients.
        eventually("one thread has all clients", || {
            light_load(&mut clients[0]);
            let threads = threads_of_clients(&mut clients[0]);
            threads.len() == 1 && threads["1"] == 40
        });
        assert_eq!(server.info("io_threads_active"), "1");
        for client in &mut clients {
            assert_eq!(client.ask("PING").text(), "PONG");
        }
        // All threads have clients when this is set, and requests in progress move with them.
        for client in &mut clients {
            client.send_raw(b"*2\r\n$4\r\nECHO\r\n$5\r\nhel");
        }
        let mut control = server.client();
        control.ok("CONFIG SET io-threads-always-active yes");
        eventually("all threads have clients", || threads_of_clients(&mut control).len() == 15);
        control.ok("CONFIG SET io-threads-always-active no");
        eventually("few threads have clients", || threads_of_clients(&mut control).len() <= cores);
        for client in &mut clients {
            client.send_raw(b"lo\r\n");
            assert_eq!(client.read().text(), "hello");
        }
    });
}

#[test]
fn clients_are_spread_when_their_thread_is_busy() {
    undisturbed(|| {
        let server = Server::start(&["--io-threads", "3"]);
        if thread::available_parallelism().map_or(1, |cores| cores.get()) < 2 {
            return eprintln!("needs two processors");
        }
        let mut idle: Vec<Client> = (0..10).map(|_| server.client()).collect();
        eventually("one thread is enough", || {
            light_load(&mut idle[0]);
            threads_of_clients(&mut idle[0]).len() == 1
        });
        under_load(&server, |control| {
            eventually("two threads are active", || threads_of_clients(control).len() == 2);
        });
    });
}

/// A light load of quick commands, under which clients share a thread; without load they do not.
fn light_load(client: &mut Client) {
    // About 0.2 of a processor: 0.05 is too little, 0.4 too much, and other processes may disturb.
    (0..160).for_each(|_| assert_eq!(client.ask("PING").text(), "PONG"));
    thread::sleep(Duration::from_millis(20));
}

/// Runs a loaded server while it loses all processors except one and gets them back.
fn follows_its_processors(server: &Server, allow: impl Fn(&Server, bool)) {
    under_load(server, |_| {
        let carries = |threads: &str| {
            eventually("the number follows", || server.info("io_threads_active") == threads);
        };
        carries("2");
        for _ in 0..2 {
            allow(server, false);
            carries("1");
            allow(server, true);
            carries("2");
        }
    });
}

#[test]
fn active_threads_follow_the_affinity() {
    let own = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| own.is_set(*cpu));
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return eprintln!("needs two processors");
    };
    let server = Server::start(&["--io-threads", "3"]);
    follows_its_processors(&server, |server, both| {
        let mut set = CpuSet::new();
        set.set(first);
        if both {
            set.set(second);
        }
        for thread in server.process().thread_ids() {
            sched_setaffinity(Pid::from_raw(thread), &set).unwrap();
        }
    });
}

#[test]
fn active_threads_follow_the_quota() {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let Some(group) = ControlGroup::new().filter(|_| cores >= 2) else {
        return eprintln!("needs two processors and the right to make a control group");
    };
    let server = Server::start(&["--io-threads", "3"]);
    group.add(server.process());
    follows_its_processors(&server, |_, both| group.limit(if both { 2 } else { 1 }));
}

#[test]
fn paused_clients_survive_the_stop_of_their_thread() {
    let server = Server::start(&["--io-threads", "4"]);
    let mut control = server.client();
    let mut clients: Vec<Client> = (0..9).map(|_| server.client()).collect();
    control.ok("CLIENT PAUSE 100000 WRITE");
    for client in &mut clients {
        client.send_raw(b"INCR n\r\nGET n\r\n");
    }
    let waiting = |control: &mut Client| {
        let list = control.ask("CLIENT LIST").text();
        list.lines().filter(|line| line.contains("flags=b")).count()
    };
    eventually("all wait", || waiting(&mut control) == 9);
    for threads in ["2", "1", "3"] {
        control.ok(&format!("CONFIG SET io-threads {threads}"));
        eventually("it is done", || io_threads(&server) == threads);
    }
    assert_eq!(waiting(&mut control), 9);
    control.ok("CLIENT UNPAUSE");
    for client in &mut clients {
        assert!(client.read().int() > 0);
        assert!(client.read().text().parse::<i64>().unwrap() > 0);
    }
    assert_eq!(control.ask("GET n").text(), "9");
}

#[test]
fn a_server_ends_while_a_change_waits_for_stopping_threads() {
    for _ in 0..5 {
        let mut server = Server::start(&["--io-threads", "3"]);
        let requests = ["CONFIG SET io-threads 1", "CONFIG SET io-threads 3", "SHUTDOWN NOSAVE"];
        // Requests of a client that is gone may be left.
        let mut client = server.client();
        client.send_raw(&requests.map(request).concat());
        assert!(server.wait().success());
    }
}
