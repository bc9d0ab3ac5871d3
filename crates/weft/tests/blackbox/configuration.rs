//! Transactions and the configuration: a transaction sees the configuration of its start and its
//! own changes, and other clients see all its changes or none.

use std::time::Duration;

use test_support::{encode, eventually};

use crate::{Client, Server, Value};

/// A waiting client gets no reply within this time.
const SHORT: Duration = Duration::from_millis(1);
/// A function without keys that runs for some tenths of a second.
const RUNS: &str = "#!lua name=running
    redis.register_function('run', function()
        local t = os.clock() while os.clock() - t < 0.2 do end
        return 'ran'
    end)";

/// Three threads, two of which have clients.
fn start() -> Server {
    let server = Server::start(&["--io-threads", "3", "--io-threads-always-active", "yes"]);
    let loaded = server.client().ask_args(&[b"FUNCTION", b"LOAD", RUNS.as_bytes()]);
    assert_eq!(loaded.text(), "running");
    server
}

/// Three clients of one thread and one of another.
fn clients(server: &Server) -> ([Client; 3], Client) {
    let mut threads: [Vec<Client>; 2] = Default::default();
    while threads[0].len() < 3 || threads[1].is_empty() {
        let mut client = server.client();
        let info = client.ask("CLIENT INFO").text();
        threads[usize::from(info.contains("io-thread=2"))].push(client);
    }
    let [mut one, mut other] = threads;
    one.truncate(3);
    (one.try_into().unwrap(), other.pop().unwrap())
}

fn transaction(commands: &[&str]) -> Vec<u8> {
    let requests = ["MULTI"].iter().chain(commands).chain(&["EXEC"]);
    requests
        .flat_map(|words| encode(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect()
}

/// Reads the replies to MULTI and to this many commands.
fn queued(client: &mut Client, commands: usize) {
    assert_eq!(client.read().text(), "OK");
    (0..commands).for_each(|_| assert_eq!(client.read().text(), "QUEUED"));
}

/// The replies of a transaction of this many commands.
fn replies(client: &mut Client, commands: usize) -> Vec<Value> {
    queued(client, commands);
    client.read().items().to_vec()
}

/// The values in a reply of CONFIG GET.
fn values(reply: &Value) -> Vec<String> {
    reply.items().iter().skip(1).step_by(2).map(Value::text).collect()
}

/// Whether the function runs.
fn runs(client: &mut Client) -> bool {
    format!("{:?}", client.ask("FUNCTION STATS")).contains("duration_ms")
}

#[test]
fn no_client_sees_half_of_a_configuration_change() {
    let server = start();
    let ([mut writer, ..], mut reader) = clients(&server);
    let set = ["CONFIG SET slowlog-max-len 7", "FCALL run 0", "CONFIG SET acllog-max-len 7"];
    writer.send_raw(&transaction(&set));
    queued(&mut writer, 3);
    while writer.is_silent_for(SHORT) {
        let seen = values(&reader.ask("CONFIG GET slowlog-max-len acllog-max-len"));
        assert!(["7", "128"].contains(&&*seen[0]) && seen[0] == seen[1], "{seen:?}");
    }
    assert_eq!(writer.read().items()[1].text(), "ran");
    assert_eq!(values(&reader.ask("CONFIG GET *log-max-len")), ["7", "7"]);
}

#[test]
fn a_transaction_sees_one_configuration() {
    const GET: &str = "CONFIG GET slowlog-max-len";
    let server = start();
    let ([mut reader, ..], mut writer) = clients(&server);
    reader.send_raw(&transaction(&[GET, "FCALL run 0", GET]));
    eventually("the function runs", || runs(&mut writer));
    writer.ok("CONFIG SET slowlog-max-len 7");
    let seen = replies(&mut reader, 3);
    assert_eq!([&seen[0], &seen[2]].map(values), [["128"], ["128"]]);
    assert_eq!(values(&reader.ask(GET)), ["7"]);
    let set = ["CONFIG SET slowlog-max-len 8", GET, "CONFIG SET slowlog-max-len 9", GET];
    reader.send_raw(&transaction(&set));
    let seen = replies(&mut reader, 4);
    assert_eq!([&seen[1], &seen[3]].map(values), [["8"], ["9"]], "its own changes");
}

/// The transaction begins after a slow command of its thread, in the same turn.
#[test]
fn a_transaction_sees_the_configuration_of_its_beginning() {
    const GET: &str = "CONFIG GET slowlog-max-len";
    let server = start();
    let ([mut first, mut slow, mut reader], mut writer) = clients(&server);
    for number in 1..20 {
        first.send("FCALL run 0");
        eventually("a function runs", || runs(&mut writer));
        // The thread reads both after that command.
        slow.send("FCALL run 0");
        reader.send_raw(&transaction(&[GET, GET]));
        assert_eq!(first.read().text(), "ran");
        let begins = format!("CONFIG SET slowlog-max-len {number}");
        eventually("the other function runs", || runs(&mut writer) || !slow.is_silent_for(SHORT));
        let waits = reader.is_silent_for(SHORT) && slow.is_silent_for(SHORT);
        writer.ok(&begins);
        let is_behind = waits && slow.is_silent_for(SHORT);
        let seen = replies(&mut reader, 2);
        assert_eq!(values(&seen[0]), values(&seen[1]));
        assert_eq!(slow.read().text(), "ran");
        if is_behind {
            return assert_eq!(values(&seen[0]), [number.to_string()]);
        }
    }
    panic!("it never began behind the function");
}
