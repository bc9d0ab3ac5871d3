//! Fields of hashes expire without being read, unless clients are paused.

use std::time::Duration;

use test_support::eventually;

use crate::{MODELS, Server, Value};

#[test]
fn unread_fields_expire_and_remove_their_key() {
    for model in MODELS {
        let server = Server::start(model);
        let mut client = server.client();
        // Small hashes, a hash table, and a hash in which some fields stay.
        for key in 0..50 {
            client.ask(&format!("HSET small:{key} a 1 b 2"));
            client.ask(&format!("HPEXPIRE small:{key} {} FIELDS 2 a b", 20 + key));
        }
        for field in 0..600 {
            client.ask(&format!("HSETEX big PX 50 FIELDS 1 f{field} v"));
        }
        client.ask("HSET rest a 1 b 2 c 3");
        client.ask("HPEXPIRE rest 30 FIELDS 2 a b");
        eventually("all others are gone", || client.ask("DBSIZE").int() == 1);
        eventually("two fields are gone", || client.ask("HLEN rest").int() == 1);
        assert!(
            client.ask("INFO keyspace").text().contains("keys=1,expires=0,avg_ttl=0,subexpiry=0")
        );
        let stats = client.ask("INFO stats").text();
        assert!(stats.contains("expired_subkeys:702\r\nexpired_keys:0\r\n"), "{stats}");
    }
}

#[test]
fn the_walk_over_expired_keys_is_measured() {
    const KEYS: i64 = 50_000;
    let server = Server::start(&["--hz", "500", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    assert_eq!(server.info("expired_stale_perc"), "0.00");
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    let requests: Vec<String> = (0..KEYS).map(|n| format!("SET key:{n} v PX 1\r\n")).collect();
    client.send_raw(requests.concat().as_bytes());
    (0..KEYS).for_each(|_| assert_eq!(client.read(), Value::simple("OK")));
    assert_eq!(client.ask("DBSIZE").int(), KEYS);
    client.ok("DEBUG SET-ACTIVE-EXPIRE 1");
    eventually("keys are found that have expired", || server.info("expired_stale_perc") != "0.00");
    eventually("all are gone", || client.ask("DBSIZE").int() == 0);
    // Each cycle takes half a millisecond.
    assert_ne!(server.info("expired_time_cap_reached_count"), "0");
    assert_ne!(server.info("expire_cycle_cpu_milliseconds"), "0");
    client.ok("CONFIG RESETSTAT");
    assert_eq!(server.info("expired_time_cap_reached_count"), "0");
}

#[test]
fn the_mean_time_to_live_is_estimated() {
    let server = Server::start(&["--io-threads", "3"]);
    let mut client = server.client();
    for key in 0..100 {
        client.ok(&format!("SET key:{key} v PX {}", 1_000_000 + key % 2 * 1_000_000));
    }
    let mut mean = || {
        let text = client.ask("INFO keyspace").text();
        let (_, rest) = text.split_once("keys=100,expires=100,avg_ttl=").unwrap();
        rest.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    eventually("it is in the middle", || (1_450_000..=1_500_000).contains(&mean()));
}

#[test]
fn no_field_expires_while_clients_are_paused() {
    for model in MODELS {
        let server = Server::start(&[model, &["--enable-debug-command", "yes"]].concat());
        let mut client = server.client();
        client.ok("CONFIG SET hz 500");
        client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
        client.ok("SET key v PX 100");
        client.ask("HSETEX hash PX 100 FIELDS 1 f v");
        client.ok("CLIENT PAUSE 100000 WRITE");
        client.ok("DEBUG SET-ACTIVE-EXPIRE 1");
        eventually("the key does not show", || client.ask("EXISTS key").int() == 0);
        eventually("the field does not show", || client.ask("HEXISTS hash f").int() == 0);
        // Many ticks of 2 ms.
        assert!(client.is_silent_for(Duration::from_millis(50)));
        assert_eq!(client.ask("DBSIZE").int(), 2, "{model:?}");
        client.ok("CLIENT UNPAUSE");
        eventually("both are gone", || client.ask("DBSIZE").int() == 0);
    }
}
