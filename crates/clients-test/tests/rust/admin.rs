//! The connection and server commands: what clients and tools ask a server about itself.

use std::collections::{BTreeMap, HashMap};

use redis::{Client, Commands, Connection, InfoDict, Value};

use crate::check::{ask, between, equal, eventually, holds, refused, try_ask};
use crate::unix_seconds;

/// `client` makes further connections of the same protocol.
pub fn run(r: &mut Connection, client: &Client, protocol: i64) {
    connection(r, protocol);
    own_record(r, protocol);
    other_clients(r, client);
    commands(r);
    configuration(r);
    information(r);
    slow_log(r);
}

fn connection(r: &mut Connection, protocol: i64) {
    equal("PING", r.ping::<String>().unwrap().as_str(), "PONG");
    equal("PING with a text", ask::<String>(r, "PING hi").as_str(), "hi");
    equal("ECHO", ask::<String>(r, "ECHO héllo").as_str(), "héllo");
    let hello: HashMap<String, Value> = ask(r, &format!("HELLO {protocol}"));
    let text = |name: &str| redis::from_redis_value_ref::<String>(&hello[name]).unwrap();
    equal("HELLO has the protocol", &hello["proto"], &Value::Int(protocol));
    equal("HELLO has the server", text("server").as_str(), "redis");
    holds("HELLO has the version", text("version").starts_with("8.0."), &hello);
    equal("HELLO has the mode", text("mode").as_str(), "standalone");
    equal("HELLO has the role", text("role").as_str(), "master");
    equal("HELLO has the id", &hello["id"], &Value::Int(r.client_id().unwrap()));
    let (seconds, _): (i64, i64) = ask(r, "TIME");
    between("TIME less our own", seconds - unix_seconds() as i64, -5..=5);
}

fn own_record(r: &mut Connection, protocol: i64) {
    equal("CLIENT GETNAME of none", r.client_getname::<Option<String>>().unwrap(), None);
    equal("CLIENT SETNAME", r.client_setname::<_, String>("subject").unwrap().as_str(), "OK");
    equal("CLIENT GETNAME", r.client_getname::<String>().unwrap().as_str(), "subject");
    let before = record(&ask::<String>(r, "CLIENT INFO"));
    holds("the client's own SETINFO arrived", before["lib-name"].starts_with("redis-rs"), &before);
    equal("CLIENT SETINFO", ask::<String>(r, "CLIENT SETINFO LIB-VER 9.9").as_str(), "OK");
    let info = record(&ask::<String>(r, "CLIENT INFO"));
    let fields = ["name", "lib-ver", "resp", "db", "user"].map(|field| info[field].as_str());
    let want = ["subject", "9.9", &protocol.to_string(), "0", "default"];
    equal("CLIENT INFO", fields, want);
    let id: i64 = r.client_id().unwrap();
    equal("CLIENT INFO has the id", &info["id"], &id.to_string());
    let addresses = info["addr"].contains(':') && info["laddr"].contains(':');
    holds("CLIENT INFO has the addresses", addresses, &info);
    let listed: String = ask(r, &format!("CLIENT LIST ID {id}"));
    equal("CLIENT LIST ID", record(&listed)["name"].as_str(), "subject");
    holds("CLIENT LIST names the thread", listed.contains(" io-thread="), &listed);
    equal("CLIENT NO-EVICT", ask::<String>(r, "CLIENT NO-EVICT OFF").as_str(), "OK");
    equal("CLIENT NO-TOUCH", ask::<String>(r, "CLIENT NO-TOUCH OFF").as_str(), "OK");
    equal("CLIENT GETREDIR", ask(r, "CLIENT GETREDIR"), -1);
}

/// The fields of one line of CLIENT LIST.
fn record(line: &str) -> BTreeMap<String, String> {
    let fields = line.split_whitespace().filter_map(|field| field.split_once('='));
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn other_clients(r: &mut Connection, client: &Client) {
    let mut other = client.get_connection().unwrap();
    ask::<()>(&mut other, "CLIENT SETNAME victim");
    let id: i64 = other.client_id().unwrap();
    let normal: String = ask(r, "CLIENT LIST TYPE normal");
    let both = normal.contains(" name=subject ") && normal.contains(" name=victim ");
    holds("CLIENT LIST TYPE", both, &normal);
    let kill = format!("CLIENT KILL ID {id}");
    equal("CLIENT KILL ID", ask(r, &kill), 1);
    let gone = |r: &mut Connection| !ask::<String>(r, "CLIENT LIST").contains("name=victim");
    eventually("the killed client is gone", || gone(r));
    equal("CLIENT KILL of nobody", ask(r, &kill), 0);
    let nobody = try_ask::<Value>(r, "CLIENT KILL 1.2.3.4:5");
    refused("CLIENT KILL by address", "ERR No such client", nobody);
    equal("CLIENT UNBLOCK of nobody", ask(r, &format!("CLIENT UNBLOCK {id}")), 0);
    equal("CLIENT PAUSE", ask::<String>(r, "CLIENT PAUSE 1").as_str(), "OK");
    equal("CLIENT UNPAUSE", ask::<String>(r, "CLIENT UNPAUSE").as_str(), "OK");
    let dropped = try_ask::<Value>(&mut other, "PING");
    let noticed = dropped.as_ref().is_err_and(|error| error.is_connection_dropped());
    holds("the killed client notices", noticed, &dropped);
}

fn commands(r: &mut Connection) {
    let count: usize = ask(r, "COMMAND COUNT");
    holds("COMMAND COUNT", count > 60, count);
    let table: Vec<Value> = ask(r, "COMMAND");
    equal("COMMAND lists as many", table.len(), count);
    let rows: Vec<Vec<Value>> = ask(r, "COMMAND INFO get");
    equal("COMMAND has GET's keys", &rows[0][3..6], [1, 1, 1].map(Value::Int).as_slice());
    let flags: Vec<String> = redis::from_redis_value_ref(&rows[0][2]).unwrap();
    let expected = ["readonly", "fast"].iter().all(|flag| flags.iter().any(|has| has == flag));
    holds("COMMAND has GET's flags", expected, &flags);
    let rows: Vec<Value> = ask(r, "COMMAND INFO mset nosuch");
    equal("COMMAND INFO of nothing", &rows[1], &Value::Nil);
    let docs: HashMap<String, HashMap<String, Value>> = ask(r, "COMMAND DOCS set");
    let fact = |name: &str| redis::from_redis_value_ref::<String>(&docs["set"][name]).unwrap();
    equal("COMMAND DOCS has the group", fact("group").as_str(), "string");
    equal("COMMAND DOCS has the version", fact("since").as_str(), "1.0.0");
    holds("COMMAND DOCS has a summary of SET", fact("summary").len() > 10, &docs);
    let keys: Vec<String> = ask(r, "COMMAND GETKEYS MSET a 1 b 2");
    equal("COMMAND GETKEYS", keys, vec!["a".to_owned(), "b".to_owned()]);
}

fn configuration(r: &mut Connection) {
    type Parameters = BTreeMap<String, String>;
    let effort = |value: &str| Parameters::from([("active-expire-effort".into(), value.into())]);
    let get = "CONFIG GET active-expire-effort";
    equal("CONFIG GET", ask::<Parameters>(r, get), effort("1"));
    let set: String = ask(r, "CONFIG SET active-expire-effort 7");
    equal("CONFIG SET", set.as_str(), "OK");
    equal("CONFIG GET after SET", ask::<Parameters>(r, get), effort("7"));
    ask::<()>(r, "CONFIG SET active-expire-effort 1");
    let both: Parameters = ask(r, "CONFIG GET port databas*");
    let names: Vec<&str> = both.keys().map(String::as_str).collect();
    equal("CONFIG GET of two patterns", names, vec!["databases", "port"]);
    equal("CONFIG GET of nothing", ask(r, "CONFIG GET no-such-thing"), Parameters::new());
    equal("CONFIG RESETSTAT", ask::<String>(r, "CONFIG RESETSTAT").as_str(), "OK");
}

fn information(r: &mut Connection) {
    let info: InfoDict = ask(r, "INFO");
    let version: String = info.get("redis_version").unwrap_or_default();
    holds("INFO has the version", version.starts_with("8.0."), &version);
    for name in ["process_id", "tcp_port", "uptime_in_seconds", "connected_clients"]
        .into_iter()
        .chain(["used_memory", "total_commands_processed", "keyspace_hits", "expired_keys"])
    {
        let value: Option<u64> = info.get(name);
        holds(&format!("INFO has {name} as a number"), value.is_some(), value);
    }
    equal("INFO has the role", info.get("role"), Some("master".to_owned()));
    ask::<()>(r, "SET k v EX 100");
    let keyspace: InfoDict = ask(r, "INFO keyspace");
    let first: String = keyspace.get("db0").unwrap_or_default();
    holds("INFO keyspace", first.starts_with("keys=1,expires=1,"), &first);
    equal("INFO of one section", keyspace.get::<String>("redis_version"), None);
    let stats: InfoDict = ask(r, "INFO commandstats");
    let set: String = stats.get("cmdstat_set").unwrap_or_default();
    holds("INFO commandstats", set.starts_with("calls="), &set);
    ask::<()>(r, "FLUSHDB");
}

fn slow_log(r: &mut Connection) {
    ask::<()>(r, "CONFIG SET slowlog-log-slower-than 0");
    ask::<()>(r, "SET slow log");
    ask::<()>(r, "CONFIG SET slowlog-log-slower-than 10000");
    type Entry = (i64, i64, i64, Vec<String>, String, String);
    let entries: Vec<Entry> = ask(r, "SLOWLOG GET 10");
    let found: Vec<&Entry> = entries.iter().filter(|e| e.3.join(" ") == "SET slow log").collect();
    equal("SLOWLOG GET", found.len(), 1);
    between("SLOWLOG has the start", found[0].1 - unix_seconds() as i64, -10..=5);
    holds("SLOWLOG LEN", ask::<usize>(r, "SLOWLOG LEN") >= 1, &entries);
    equal("SLOWLOG RESET", ask::<String>(r, "SLOWLOG RESET").as_str(), "OK");
    equal("SLOWLOG LEN after it", ask(r, "SLOWLOG LEN"), 0);
    ask::<()>(r, "DEL slow");
}
