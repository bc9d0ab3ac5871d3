//! Bytes, bulk and connections: what an application does to a server besides single commands,
//! from threads and from the asynchronous side of the crate.

use std::thread;

use redis::aio::ConnectionManager;
use redis::{AsyncCommands, Client, Commands, Connection, Value};

use crate::check::{ask, equal, holds, refused};

/// `client` makes connections of the protocol under test.
pub fn run(r: &mut Connection, client: &Client) {
    binary(r);
    unicode(r);
    large(r);
    pipelines(r);
    concurrency(r, client);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(multiplexed(client));
    runtime.block_on(reconnecting(r, client));
    ask::<()>(r, "FLUSHALL");
}

fn binary(r: &mut Connection) {
    let every: Vec<u8> = (0..=255).collect();
    r.set::<_, _, ()>("bin", &every).unwrap();
    equal("a value of every byte", r.get::<_, Vec<u8>>("bin").unwrap(), every.clone());
    r.set::<_, _, ()>(&every, "x").unwrap();
    equal("a key of every byte", r.get::<_, String>(&every).unwrap().as_str(), "x");
    let keys: Vec<Vec<u8>> = r.keys("*").unwrap();
    holds("KEYS gives it back", keys.contains(&every), &keys);
    let protocol = "$3\r\nfoo\r\n*1\r\n+OK\r\n\0";
    r.set::<_, _, ()>("p", protocol).unwrap();
    equal("a value like the protocol", r.get::<_, String>("p").unwrap().as_str(), protocol);
    r.set::<_, _, ()>("", "x").unwrap();
    equal("an empty key", r.get::<_, String>("").unwrap().as_str(), "x");
    ask::<()>(r, "FLUSHDB");
}

fn unicode(r: &mut Connection) {
    let text = "Zażółć gęślą jaźń 日本語 🦀 \0 \u{202e}";
    r.set::<_, _, ()>("ключ🗝", text).unwrap();
    equal("a text in Unicode", r.get::<_, String>("ключ🗝").unwrap().as_str(), text);
    equal("STRLEN counts bytes", r.strlen("ключ🗝").unwrap(), text.len());
    ask::<()>(r, "FLUSHDB");
}

fn large(r: &mut Connection) {
    // Without a short period, so that a lost or repeated piece shows.
    let value: Vec<u8> = (0..10_000_000_u32).map(|i| (i.wrapping_mul(i) >> 8) as u8).collect();
    r.set::<_, _, ()>("large", &value).unwrap();
    equal("STRLEN of 10 MB", r.strlen("large").unwrap(), value.len());
    holds("GET of 10 MB", r.get::<_, Vec<u8>>("large").unwrap() == value, "");
    let within: Vec<u8> = r.getrange("large", 5_000_000, 5_000_099).unwrap();
    equal("GETRANGE within", within.as_slice(), &value[5_000_000..5_000_100]);
    equal("APPEND to it", r.append("large", "end").unwrap(), value.len() + 3);
    equal("UNLINK of it", r.unlink("large").unwrap(), 1);
}

fn pipelines(r: &mut Connection) {
    let mut pipe = redis::pipe();
    for i in 0..5_000 {
        let key = format!("p:{i}");
        pipe.set(&key, i).ignore().get(&key);
    }
    let answers: Vec<i64> = pipe.query(r).unwrap();
    equal("a pipeline of 10,000", answers, (0..5_000).collect());
    let mut pipe = redis::pipe();
    pipe.ignore_errors().set("text", "abc").incr("text", 1).get("text");
    let mut answers: Vec<redis::RedisResult<Value>> = pipe.query(r).unwrap();
    let (after, wrong) = (answers.pop().unwrap(), answers.pop().unwrap());
    let not_integer = "ERR value is not an integer or out of range";
    refused("an error within a pipeline", not_integer, wrong);
    let after: String = redis::from_redis_value(after.unwrap()).unwrap();
    equal("its neighbour", after.as_str(), "abc");
    equal("DBSIZE after it", ask(r, "DBSIZE"), 5_001);
    ask::<()>(r, "FLUSHDB");
}

fn concurrency(r: &mut Connection, client: &Client) {
    thread::scope(|scope| {
        for _ in 0..20 {
            let mut own = client.get_connection().unwrap();
            scope.spawn(move || {
                for _ in 0..250 {
                    own.incr::<_, _, i64>("counter", 1).unwrap();
                }
            });
        }
    });
    equal("20 connections count to 5,000", r.get("counter").unwrap(), 5_000);
}

/// Many tasks over one connection: the crate's answer to a pool.
async fn multiplexed(client: &Client) {
    let shared = client.get_multiplexed_async_connection().await.unwrap();
    let tasks: Vec<_> = (0..12)
        .map(|number| {
            let mut own = shared.clone();
            tokio::spawn(async move {
                let key = format!("task:{number}");
                for i in 0..100 {
                    own.set::<_, _, ()>(&key, i).await.unwrap();
                    assert_eq!(own.get::<_, i64>(&key).await.unwrap(), i);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    println!("ok 12 tasks share a connection");
}

async fn reconnecting(r: &mut Connection, client: &Client) {
    let mut again = ConnectionManager::new(client.clone()).await.unwrap();
    let id: i64 = redis::cmd("CLIENT").arg("ID").query_async(&mut again).await.unwrap();
    equal("CLIENT KILL of an idle one", ask(r, &format!("CLIENT KILL ID {id}")), 1);
    // The command that meets the dead connection fails, and sets the reconnection off.
    let mut tries = 0;
    let renewed: i64 = loop {
        match redis::cmd("CLIENT").arg("ID").query_async(&mut again).await {
            Ok(renewed) => break renewed,
            Err(error) => assert!(tries < 10, "it reconnects: {error}"),
        }
        tries += 1;
    };
    holds("it reconnects under a new id", renewed > id, renewed);
    again.set::<_, _, ()>("back", "yes").await.unwrap();
    equal("and finds its key", again.get::<_, String>("back").await.unwrap().as_str(), "yes");
}
