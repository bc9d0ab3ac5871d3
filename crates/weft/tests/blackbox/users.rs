//! Users: after the reply to a change it holds on all threads, and files of users outlive the
//! process.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use test_support::{Launch, encode, eventually, output_of_server, printed, request};

use crate::{Client, MODELS, Server, Value};

const ALL: &str = "ACL SETUSER u on >pw +@all ~*";

/// A client of the user.
fn logged_in(server: &Server) -> Client {
    let mut client = server.client();
    client.ok("AUTH u pw");
    client
}

/// Clients of the user count as fast as they can while `change` revokes the right. The counter must
/// not change after the reply.
#[track_caller]
fn stops_counting(model: &[&str], change: &str) {
    let server = Server::start(model);
    let mut root = server.client();
    root.ok(ALL);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..4 {
            let mut client = logged_in(&server);
            let ended = &ended;
            // Some outside transactions, some inside, where the change takes effect for the whole
            // transaction.
            let requests = match number % 2 {
                0 => "INCR n,INCR n,INCR n,INCR n",
                _ => "MULTI,INCR n,INCR m,EXEC",
            };
            let batch: Vec<u8> = requests.split(',').flat_map(request).collect();
            let (batch, replies) = (batch.repeat(10), 40);
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    client.send_lossy(&batch);
                    // The server closes clients of a deleted user.
                    if (0..replies).any(|_| client.try_read().is_err()) {
                        break;
                    }
                }
            });
        }
        let _end = EndOnDrop(&ended);
        eventually("they count", || server.client().ask("INCRBY n 0").int() > 999);
        root.ask(change);
        let before = root.ask("MGET n m");
        for _ in 0..50 {
            assert_eq!(root.ask("MGET n m"), before, "{model:?}: {change}");
        }
        drop(root);
    });
}

/// Ends the clients also after a failure, which would wait for them forever.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_written_after_a_change_is_answered() {
    for model in MODELS {
        stops_counting(model, "ACL SETUSER u -incr");
        stops_counting(model, "ACL SETUSER u resetkeys ~other");
    }
}

#[test]
fn nothing_is_written_after_a_user_is_deleted() {
    for model in MODELS {
        stops_counting(model, "ACL DELUSER u");
    }
}

#[test]
fn clients_of_a_deleted_user_are_closed_on_all_threads() {
    for model in MODELS {
        let server = Server::start(model);
        let mut root = server.client();
        root.ok(ALL);
        let mut idle: Vec<Client> = (0..6).map(|_| logged_in(&server)).collect();
        let mut waiting: Vec<Client> = (0..6).map(|_| logged_in(&server)).collect();
        waiting.iter_mut().for_each(|client| client.send("BLPOP l 0"));
        eventually("they wait", || server.info("blocked_clients") == "6");
        assert_eq!(root.ask("ACL DELUSER u").int(), 1);
        assert_eq!(root.ask("RPUSH l x").int(), 1);
        assert_eq!(root.ask("LLEN l").int(), 1, "{model:?}: nobody takes it");
        idle.iter_mut().chain(&mut waiting).for_each(Client::is_closed);
        let lines = root.ask("CLIENT LIST").text();
        assert!(!lines.contains("user=u "), "{lines}");
    }
}

#[test]
fn blocked_clients_hear_that_they_are_denied_on_all_threads() {
    for model in MODELS {
        let server = Server::start(model);
        let mut root = server.client();
        root.ok(ALL);
        let mut waiting: Vec<Client> = (0..6).map(|_| logged_in(&server)).collect();
        waiting.iter_mut().for_each(|client| client.send("BLPOP l 0"));
        eventually("they wait", || server.info("blocked_clients") == "6");
        root.ok("ACL SETUSER u resetkeys");
        for client in &mut waiting {
            let denied = Value::error("NOPERM No permissions to access a key");
            assert_eq!(client.read(), denied, "{model:?}");
            assert_eq!(client.ask("PING").text(), "PONG");
        }
    }
}

#[test]
fn transactions_and_scripts_are_executed_whole_while_their_rules_change() {
    const TIMES: usize = 50;
    const SCRIPT: &str = "for _, key in {'c', 'd'} do
        for i = 1, 50 do redis.call('INCR', KEYS[1] .. key) end
    end";
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let mut root = server.client();
    root.ok("ACL SETUSER u on >pw +@all ~*");
    let (mut user, mut other) = (logged_in(&server), server.client());
    for round in 0..200 {
        user.ok("MULTI");
        for key in ["a", "b"] {
            (0..TIMES).for_each(|_| assert_eq!(user.ask(&format!("INCR {key}")).text(), "QUEUED"));
        }
        user.send("EXEC");
        user.send_raw(&encode(&[b"EVAL", SCRIPT.as_bytes(), b"1", b"{k}"]));
        for change in ["-incr", "+incr"] {
            root.ok(&format!("ACL SETUSER u {change}"));
        }
        user.read();
        user.read();
        for keys in ["MGET a b", "MGET {k}c {k}d"] {
            let counts = other.ask(keys);
            let [first, second] = counts.items() else { panic!("{counts:?}") };
            assert_eq!(format!("{first:?}"), format!("{second:?}"), "{keys} in round {round}");
        }
    }
}

/// A server with a file of users in its folder.
fn with_file(folder: &Path, text: &str) -> Server {
    fs::write(folder.join("users.acl"), text).unwrap();
    Server::start(&["--dir", folder.to_str().unwrap(), "--aclfile", "users.acl"])
}

#[test]
fn users_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.acl");
    let server = with_file(folder.path(), "user u on >pw +get ~a\n");
    let mut client = logged_in(&server);
    assert_eq!(client.ask("GET a"), Value::NULL);
    let mut root = server.client();
    root.ok("ACL SETUSER v on nopass (+set ~b*)");
    root.ok("ACL SAVE");
    drop(server);
    let saved = fs::read_to_string(&path).unwrap();
    assert_eq!(saved.lines().count(), 3, "{saved}");
    let others: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(others.len(), 1, "no temporary file is left: {others:?}");
    let server = with_file(folder.path(), &saved);
    let mut client = server.client();
    client.ok("AUTH v anything");
    client.ok("SET b1 x");
    // A file with an error changes nothing, and a server does not start with it.
    fs::write(&path, format!("{saved}user w +nosuch\n")).unwrap();
    let mut root = server.client();
    let error = root.ask("ACL LOAD").text();
    assert!(error.contains("users.acl:4: Error in applying operation '+nosuch'"), "{error}");
    client.ok("SET b2 x");
    fs::remove_file(&path).unwrap();
    let error = root.ask("ACL LOAD").text();
    assert!(error.ends_with("opening file 'users.acl': No such file or directory"), "{error}");
    fs::create_dir(&path).unwrap();
    let error = root.ask("ACL SAVE").text();
    assert!(error.contains("There was an error trying to save the ACLs"), "{error}");
    server.wait_for_log("Can't write the ACL file 'users.acl'");
}

#[test]
fn a_server_does_not_start_with_users_that_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.acl"), "user a +nosuch\n").unwrap();
    fs::write(folder.path().join("both.conf"), "user a on\naclfile bad.acl\n").unwrap();
    for (args, words) in [
        (&["--aclfile", "bad.acl"][..], "bad.acl:1: Error in applying operation '+nosuch'"),
        (&["--aclfile", "none.acl"], "opening file 'none.acl': No such file or directory"),
        (&["both.conf"], "Define the users in one of the two places"),
        (&["--user", "foo", "--user", "foo"], "Duplicate user found"),
        (&["--user", "foo", "+nosuch"], "Unknown command or category name in ACL"),
    ] {
        let output = output_of_server(folder.path(), args);
        let shown = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {shown}");
        assert!(shown.contains(words), "{args:?}: no {words:?} in {shown}");
    }
}

#[test]
fn users_of_a_configuration_file_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weft.conf");
    fs::write(&path, "user u on >pw +get ~a\nuser default on nopass ~* +@all -flushall\n").unwrap();
    let start = || Launch::weft().at(folder.path()).configured_by(&path).start();
    let server = start();
    let mut root = server.client();
    assert!(root.ask("FLUSHALL").text().starts_with("NOPERM"));
    root.ok("ACL SETUSER u ~b");
    root.ok("CONFIG REWRITE");
    drop(server);
    let server = start();
    assert!(server.client().ask("FLUSHALL").text().starts_with("NOPERM"));
    let mut client = logged_in(&server);
    assert_eq!(client.ask("GET b"), Value::NULL);
    assert!(client.ask("GET c").text().starts_with("NOPERM"));
}

#[test]
fn a_subscriber_without_its_channel_cannot_log_in_as_another_user() {
    let server = Server::start(&["--io-threads", "4", "--io-threads-always-active", "yes"]);
    let (mut root, mut long) = (server.client(), Vec::new());
    root.ok("ACL SETUSER few on nopass +@all allkeys resetchannels &other");
    for _ in 0..2 {
        root.ok("ACL SETUSER u on >pw +@all allkeys allchannels");
        let mut subscribers: Vec<Client> = (0..8).map(|_| logged_in(&server)).collect();
        for client in &mut subscribers {
            client.ask("SUBSCRIBE news");
        }
        // Commands on all threads, for which the change waits.
        long.resize_with(8, || server.client());
        for (number, client) in long.iter_mut().enumerate() {
            let code = format!("local n = {number} while n < 3e6 do n = n + 1 end return 1");
            client.send_raw(&encode(&[b"EVAL", code.as_bytes(), b"0"]));
        }
        root.send("ACL SETUSER u resetchannels");
        // The change takes effect at some moment, and the reply comes later.
        eventually("it counts", || {
            let rules = format!("{:?}", server.client().ask("ACL GETUSER u"));
            !rules.contains("&*")
        });
        for client in &mut subscribers {
            client.send_lossy(&[request("AUTH few x"), request("PING")].concat());
        }
        assert_eq!(root.read().text(), "OK");
        root.ask("PUBLISH news secret");
        for client in &mut subscribers {
            assert!(client.try_read().is_err(), "it is closed without an answer");
        }
        long.iter_mut().for_each(|client| assert_eq!(client.read().int(), 1));
    }
}

#[test]
fn a_new_password_closes_no_subscriber() {
    let server = Server::start(&[]);
    let (mut root, mut client) = (server.client(), server.client());
    root.ok("ACL SETUSER u on >pw +@all allkeys resetchannels &news");
    root.ok("ACL SETUSER default resetchannels &other");
    client.ask("HELLO 3 AUTH u pw");
    client.ask("SUBSCRIBE news");
    client.ok("AUTH default any");
    root.ok("CONFIG SET requirepass secret");
    assert_eq!(client.ask("PING").text(), "PONG");
}

#[test]
fn a_transaction_reaches_no_client_that_it_has_taken_a_right_from() {
    for model in MODELS {
        let server = Server::start(model);
        let mut root = server.client();
        for _ in 0..20 {
            root.ok("ACL SETUSER u on >pw +@all allkeys allchannels");
            let (mut subscriber, mut blocked) = (logged_in(&server), logged_in(&server));
            let mut tracker = logged_in(&server);
            tracker.ask("HELLO 3");
            tracker.ok("CLIENT TRACKING ON BCAST");
            subscriber.ask("SUBSCRIBE news");
            blocked.send("BLPOP list 0");
            eventually("it waits", || {
                root.ask("INFO clients").text().contains("blocked_clients:1")
            });
            for words in ["MULTI", "ACL DELUSER u", "PUBLISH news x", "RPUSH list x", "EXEC"] {
                root.ask(words);
            }
            for mut client in [subscriber, blocked, tracker] {
                assert!(client.try_read().is_err(), "{model:?}");
            }
            assert_eq!(root.ask("LPOP list").text(), "x", "{model:?}");

            root.ok("ACL SETUSER u on >pw +@all allkeys allchannels");
            let mut blocked = logged_in(&server);
            blocked.send("BLPOP list 0");
            eventually("it waits", || {
                root.ask("INFO clients").text().contains("blocked_clients:1")
            });
            for words in ["MULTI", "ACL SETUSER u -blpop", "RPUSH list x", "EXEC"] {
                root.ask(words);
            }
            assert!(blocked.read().text().starts_with("NOPERM"), "{model:?}");
            assert_eq!(root.ask("LPOP list").text(), "x", "{model:?}");
            root.ask("ACL DELUSER u");
        }
    }
}

#[test]
fn clients_of_a_deleted_user_are_closed_without_an_answer() {
    for model in MODELS {
        let server = Server::start(model);
        let mut root = server.client();
        for _ in 0..20 {
            root.ok(ALL);
            let (begun, ended) = (Barrier::new(5), AtomicBool::new(false));
            thread::scope(|scope| {
                for _ in 0..4 {
                    let mut client = logged_in(&server);
                    let (begun, ended) = (&begun, &ended);
                    scope.spawn(move || {
                        let batch = request("PING").repeat(20);
                        let mut first = true;
                        // Until the server closes the connection.
                        while !ended.load(Ordering::Relaxed) {
                            client.send_lossy(&batch);
                            for _ in 0..20 {
                                let Ok(reply) = client.try_read() else { return };
                                assert_eq!(reply.text(), "PONG", "{model:?}");
                            }
                            if std::mem::take(&mut first) {
                                begun.wait();
                            }
                        }
                    });
                }
                let _end = EndOnDrop(&ended);
                begun.wait();
                assert_eq!(root.ask("ACL DELUSER u").int(), 1);
            });
        }
    }
}
