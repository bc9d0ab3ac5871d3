//! Blocked clients on several threads: no element is lost, doubled or served out of order, while
//! clients push, leave, move and are killed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{eventually, request};

use crate::threads::threads_of_clients;
use crate::undisturbed::undisturbed;
use crate::{Client, MODELS, Server, Value};

/// Waits until this many clients are blocked.
fn blocked(server: &Server, count: usize) {
    eventually("they wait", || server.info("blocked_clients") == count.to_string());
}

fn texts(value: &Value) -> Vec<String> {
    value.items().iter().map(Value::text).collect()
}

#[test]
fn first_come_first_served_on_all_threads() {
    for model in MODELS {
        let server = Server::start(model);
        let mut pusher = server.client();
        let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send("BLPOP q other 0");
            blocked(&server, number + 1);
        }
        assert_eq!(pusher.ask("RPUSH q 0 1 2 3").int(), 4);
        for (number, client) in clients.iter_mut().enumerate().take(4) {
            assert_eq!(texts(&client.read()), ["q", &number.to_string()], "{model:?}");
        }
        assert_eq!(pusher.ask("LPUSH other 5 4").int(), 2);
        for (number, client) in clients.iter_mut().enumerate().skip(4) {
            assert_eq!(texts(&client.read()), ["other", &number.to_string()], "{model:?}");
        }
        assert_eq!(pusher.ask("EXISTS q other").int(), 0);
        assert_eq!(server.info("blocked_clients"), "0");
        assert_eq!(server.info("total_blocking_keys"), "0");
    }
}

#[test]
fn an_element_goes_through_a_chain_of_clients() {
    for model in MODELS {
        let server = Server::start(model);
        let links = 12;
        let mut clients: Vec<Client> = (0..=links).map(|_| server.client()).collect();
        // The last ones first, and some join keys that have blocked clients already.
        for (number, client) in clients.iter_mut().enumerate().rev() {
            match number == links {
                true => client.send(&format!("BLPOP l{number} 0")),
                false => client.send(&format!("BLMOVE l{number} l{} LEFT RIGHT 0", number + 1)),
            }
        }
        blocked(&server, links + 1);
        assert_eq!(server.client().ask("RPUSH l0 x").int(), 1);
        for client in &mut clients[..links] {
            assert_eq!(client.read().text(), "x");
        }
        assert_eq!(texts(&clients[links].read()), [format!("l{links}"), "x".to_owned()]);
        assert_eq!(server.client().ask("DBSIZE").int(), 0);
    }
}

/// Producers push numbered elements, workers move them on, and consumers take them, some with very
/// short timeouts; `change` disturbs them.
fn a_factory(server: &Server, change: impl Fn(&mut Client, &AtomicBool) + Sync) {
    const PRODUCERS: usize = 3;
    const WORKERS: usize = 2;
    const CONSUMERS: usize = 4;
    const ELEMENTS: usize = 300;
    let done = AtomicBool::new(false);
    let taken = thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let mut client = server.client();
            scope.spawn(move || {
                for element in 0..ELEMENTS {
                    let raw = if element % 3 == 0 { "second" } else { "first" };
                    assert!(client.ask(&format!("RPUSH {raw} {producer}:{element}")).int() > 0);
                }
            });
        }
        for _ in 0..WORKERS {
            let mut client = server.client();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    client.ask("BLMOVE first second LEFT RIGHT 0.02");
                }
            });
        }
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|number| {
                let mut client = server.client();
                scope.spawn(move || {
                    let wait = if number % 2 == 0 { "0" } else { "0.003" };
                    let mut taken = Vec::new();
                    loop {
                        let reply = client.ask(&format!("BLPOP stop second {wait}"));
                        if reply == Value::NULL_ARRAY {
                            continue;
                        }
                        let [key, element] = texts(&reply).try_into().expect("key and element");
                        if key == "stop" {
                            return taken;
                        }
                        taken.push(element);
                    }
                })
            })
            .collect();
        scope.spawn(|| change(&mut server.client(), &done));
        let mut control = server.client();
        eventually("all is taken", || {
            let count = PRODUCERS * ELEMENTS;
            // Read in the order in which elements move, so that none is missed.
            let calls = control.ask("INFO commandstats").text();
            let left = control.ask("LLEN first").int() + control.ask("LLEN second").int();
            left == 0 && calls.contains(&format!("cmdstat_rpush:calls={count},"))
        });
        done.store(true, Ordering::Relaxed);
        for _ in 0..CONSUMERS {
            control.ask("RPUSH stop now");
        }
        let mut taken = BTreeMap::new();
        for element in consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()) {
            *taken.entry(element).or_insert(0) += 1;
        }
        taken
    });
    assert_eq!(taken.len(), PRODUCERS * ELEMENTS, "an element is lost");
    assert!(taken.values().all(|times| *times == 1), "an element came twice");
    assert_eq!(server.client().ask("DBSIZE").int(), 0);
    assert_eq!(server.info("total_blocking_keys"), "0");
}

#[test]
fn nothing_is_lost_or_doubled_under_load() {
    for model in MODELS {
        a_factory(&Server::start(model), |_, _| {});
    }
}

#[test]
fn nothing_is_lost_while_threads_come_and_go() {
    for execute in ["all", "none"] {
        let server = Server::start(&["--io-threads", "2", "--io-threads-execute", execute]);
        a_factory(&server, |control, done| {
            for threads in [4, 1, 3, 2, 1, 5].into_iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                control.ok(&format!("CONFIG SET io-threads {threads}"));
                control.ask("PING");
            }
        });
    }
}

#[test]
fn nothing_is_lost_while_execution_moves_and_the_world_stops() {
    let server = Server::start(&["--io-threads", "3"]);
    a_factory(&server, |control, done| {
        for execute in ["none", "simple", "all"].into_iter().cycle() {
            if done.load(Ordering::Relaxed) {
                return;
            }
            control.ok(&format!("CONFIG SET io-threads-execute {execute}"));
            control.ok("SWAPDB 3 4");
            control.ok("SWAPDB 4 3");
        }
    });
}

#[test]
fn requests_after_a_blocking_command_follow_it() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        let mut behind = request("BLPOP q 0").repeat(2);
        behind.extend(request("ECHO behind"));
        behind.extend(request("BLPOP q 0.01"));
        behind.extend(request("RPUSH q 3"));
        behind.extend(request("BLPOP q 0"));
        client.send_raw(&behind);
        blocked(&server, 1);
        // This arrives while the client is blocked, and stays unread.
        client.send("ECHO last");
        assert!(client.is_silent_for(Duration::from_millis(50)));
        let mut pusher = server.client();
        pusher.ask("RPUSH q 1");
        assert_eq!(texts(&client.read()), ["q", "1"]);
        assert!(client.is_silent_for(Duration::from_millis(50)));
        pusher.ask("RPUSH q 2");
        assert_eq!(texts(&client.read()), ["q", "2"]);
        assert_eq!(client.read().text(), "behind");
        assert_eq!(client.read(), Value::NULL_ARRAY);
        assert_eq!(client.read().int(), 1);
        assert_eq!(texts(&client.read()), ["q", "3"]);
        assert_eq!(client.read().text(), "last", "{model:?}");
        // The reply to a broken request after a blocking one comes in its turn.
        client.send_raw(&[&request("BLPOP q 0")[..], b"*1\r\n!broken\r\n"].concat());
        blocked(&server, 1);
        pusher.ask("RPUSH q 4");
        assert_eq!(texts(&client.read()), ["q", "4"]);
        assert!(client.read().text().starts_with("ERR Protocol error"));
        client.is_closed();
    }
}

#[test]
fn disconnected_clients_take_no_element() {
    for model in MODELS {
        let server = Server::start(model);
        let mut pusher = server.client();
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send("BLPOP q 0");
        }
        // One client has sent more, which is not read while it is blocked.
        blocked(&server, 4);
        clients[0].send("ECHO unread");
        clients[1].end_sending();
        let killed = clients.pop().unwrap();
        let address = killed.local_address();
        assert_eq!(pusher.ask(&format!("CLIENT KILL ADDR {address}")).int(), 1);
        drop(clients);
        blocked(&server, 0);
        assert_eq!(pusher.ask("RPUSH q 1 2 3 4").int(), 4);
        assert_eq!(pusher.ask("LLEN q").int(), 4, "{model:?}");
        eventually("they are gone", || {
            pusher.ask("CLIENT LIST").text().lines().filter(|line| line.contains("blpop")).count()
                == 0
        });
    }
}

#[test]
fn time_runs_out_to_the_millisecond_and_costs_nothing() {
    undisturbed(|| {
        for model in [MODELS[0], MODELS[1], MODELS[3]] {
            let server = Server::start(model);
            let mut long: Vec<Client> = (0..20).map(|_| server.client()).collect();
            for client in &mut long {
                client.send("BLPOP never 1000");
            }
            blocked(&server, long.len());
            let mut client = server.client();
            let mut least = Duration::MAX;
            for _ in 0..10 {
                let start = Instant::now();
                assert_eq!(client.ask("BLPOP q 0.02"), Value::NULL_ARRAY);
                let took = start.elapsed();
                assert!(took >= Duration::from_millis(20), "too early: {took:?}");
                least = least.min(took);
            }
            assert!(least < Duration::from_millis(60), "not in time: {least:?}");
            let mut clients: Vec<Client> = (0..5).map(|_| server.client()).collect();
            for (number, client) in clients.iter_mut().enumerate() {
                client.send(&format!("BLPOP q 0.{:02}", 20 - 4 * number));
            }
            let mut last = None;
            for client in clients.iter_mut().rev() {
                assert_eq!(client.read(), Value::NULL_ARRAY);
                let now = Instant::now();
                assert!(last.replace(now).is_none_or(|last| last <= now));
            }
            blocked(&server, long.len());
            let before = server.process().busy();
            thread::sleep(Duration::from_secs(1));
            let busy = Duration::from_nanos(server.process().busy() - before);
            assert!(busy < Duration::from_millis(50), "waiting keeps the server busy: {busy:?}");
        }
    });
}

#[test]
fn other_clients_end_a_wait() {
    let server = Server::start(&["--io-threads", "4"]);
    let mut control = server.client();
    let mut clients: Vec<Client> = (0..9).map(|_| server.client()).collect();
    let ids: Vec<i64> = clients.iter_mut().map(|client| client.ask("CLIENT ID").int()).collect();
    for client in &mut clients {
        client.send("BLPOP q 0");
    }
    blocked(&server, clients.len());
    for id in &ids {
        let how = ["", " TIMEOUT", " ERROR"][*id as usize % 3];
        assert_eq!(control.ask(&format!("CLIENT UNBLOCK {id}{how}")).int(), 1);
        assert_eq!(control.ask(&format!("CLIENT UNBLOCK {id}{how}")).int(), 0);
    }
    assert_eq!(control.ask("RPUSH q 1").int(), 1);
    for (id, client) in ids.iter().zip(&mut clients) {
        match id % 3 {
            2 => assert!(client.read().text().starts_with("UNBLOCKED ")),
            _ => assert_eq!(client.read(), Value::NULL_ARRAY),
        }
        assert_eq!(client.ask("LLEN q").int(), 1);
    }
}

#[test]
fn waiting_clients_move_to_other_threads() {
    let server = Server::start(&["--io-threads", "4"]);
    let mut control = server.client();
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send_raw(&[request("BLPOP q 0"), request("ECHO behind")].concat());
    }
    let mut hasty = server.client();
    let start = Instant::now();
    hasty.send("BLPOP q 0.5");
    blocked(&server, 9);
    for threads in [2, 1, 3] {
        control.ok(&format!("CONFIG SET io-threads {threads}"));
        let home = |thread: &String| {
            let thread: usize = thread.parse().unwrap();
            if threads == 1 { thread == 0 } else { (1..threads).contains(&thread) }
        };
        eventually("they have moved", || threads_of_clients(&mut control).keys().all(home));
        blocked(&server, 9);
    }
    assert_eq!(hasty.read(), Value::NULL_ARRAY);
    assert!(start.elapsed() >= Duration::from_millis(500));
    for number in 0..8 {
        control.ask(&format!("RPUSH q {number}"));
    }
    let mut taken: Vec<String> = clients.iter_mut().map(|c| texts(&c.read())[1].clone()).collect();
    taken.sort();
    assert_eq!(taken, ["0", "1", "2", "3", "4", "5", "6", "7"]);
    for client in &mut clients {
        assert_eq!(client.read().text(), "behind");
        assert_eq!(client.ask("PING").text(), "PONG");
    }
}

#[test]
fn a_pause_comes_before_a_wait() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut control = server.client();
    let mut waiting = server.client();
    waiting.send("BLPOP q 0.3");
    blocked(&server, 1);
    control.ok("CLIENT PAUSE 100000 WRITE");
    let mut paused = server.client();
    let id = paused.ask("CLIENT ID").int();
    paused.send("BLPOP q 0");
    blocked(&server, 2);
    assert_eq!(server.info("total_blocking_keys"), "1");
    assert_eq!(control.ask(&format!("CLIENT UNBLOCK {id}")).int(), 0);
    assert_eq!(waiting.read(), Value::NULL_ARRAY);
    control.ok("CLIENT UNPAUSE");
    eventually("it waits", || server.info("total_blocking_keys") == "1");
    control.ask("RPUSH q 1");
    assert_eq!(texts(&paused.read()), ["q", "1"]);
}

#[test]
fn a_server_with_waiting_clients_ends() {
    for model in MODELS {
        let mut server = Server::start(model);
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for client in &mut clients {
            client.send("BLPOP q 0");
        }
        blocked(&server, 4);
        server.signal("TERM");
        assert!(server.wait().success());
        for client in &mut clients {
            client.is_closed();
        }
    }
}

#[test]
fn a_client_that_waits_is_not_idle() {
    let server = Server::start(&["--timeout", "1"]);
    let mut waiting = server.client();
    waiting.send("BLPOP q 0");
    let mut idle = server.client();
    idle.ask("PING");
    idle.is_closed();
    thread::sleep(Duration::from_millis(1500));
    server.client().ask("RPUSH q 1");
    assert_eq!(texts(&waiting.read()), ["q", "1"]);
}

#[test]
fn a_stream_that_expires_unseen_ends_the_wait_of_its_groups() {
    for model in MODELS {
        let server = Server::start(model);
        for database in [0, 3] {
            let [mut control, mut reader] = [server.client(), server.client()];
            control.ok(&format!("SELECT {database}"));
            reader.ok(&format!("SELECT {database}"));
            control.ok("XGROUP CREATE s g $ MKSTREAM");
            control.ask("PEXPIRE s 100");
            reader.send("XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >");
            assert!(reader.read().text().starts_with("NOGROUP No such key 's'"), "{model:?}");
        }
        assert_eq!(server.info("total_blocking_keys_on_nokey"), "0");
    }
}

/// An element that a transaction or script adds may expire before its end: then it serves no
/// client.
#[test]
fn elements_that_expire_before_exec_ends_serve_no_client() {
    for model in MODELS {
        let server = Server::start(&[model, &["--enable-debug-command", "yes"]].concat());
        let (mut waiter, mut client) = (server.client(), server.client());
        waiter.send("BLPOP q 0");
        blocked(&server, 1);
        for command in ["RPUSH q a", "PEXPIRE q 20", "DEBUG SLEEP 0.05", "GET k", "EXEC"] {
            if command == "RPUSH q a" {
                client.ok("MULTI");
            }
            client.ask(command);
        }
        let script = "redis.call('RPUSH', 'q', 'b') redis.call('PEXPIRE', 'q', 20)
            local start = os.clock() while os.clock() < start + 0.05 do end";
        client.ask_args(&[b"EVAL", script.as_bytes(), b"0"]);
        client.ask_args(&[b"EVAL", script.as_bytes(), b"1", b"q"]);
        assert_eq!(client.ask("RPUSH q c").int(), 1, "{model:?}");
        assert_eq!(texts(&waiter.read()), ["q", "c"], "{model:?}");
    }
}
