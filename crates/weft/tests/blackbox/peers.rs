//! The servers of Redis and Valkey that tests run beside Weft: they start, and the digest that
//! compares the data of servers is the same everywhere.

use test_support::{Launch, PeerServer};

use crate::peer_files::fill;

#[test]
fn each_peer_starts_and_answers() {
    for peer in PeerServer::ALL {
        let Some(launch) = peer.launch() else { continue };
        let server = launch.start();
        server.client().ok("SET k v");
        let version = server.info(match peer {
            PeerServer::Redis => "redis_version",
            PeerServer::Valkey => "valkey_version",
        });
        assert!(version.starts_with(['7', '8', '9']), "{version}");
    }
}

#[test]
fn equal_data_have_equal_digests_in_weft_and_its_peers() {
    let digest = |launch: Launch<'_>, fields_expire: bool| {
        let server = launch.start();
        let mut client = server.client();
        fill(&mut client);
        for db in [0, 11] {
            client.ok(&format!("SELECT {db}"));
            if !fields_expire {
                assert_eq!(client.ask("DEL ttl:1 ttl:3 ttl:60 ttl:200 ttl:2500").int(), 5);
            }
        }
        client.ask("DEBUG DIGEST").text()
    };
    for peer in PeerServer::ALL {
        // The digest of Valkey leaves the expiry of fields out.
        let fields_expire = peer == PeerServer::Redis;
        let Some(launch) = peer.launch() else { continue };
        let theirs = digest(launch, fields_expire);
        let ours = Launch::weft().options(&["--enable-debug-command", "yes"]);
        assert_eq!(digest(ours, fields_expire), theirs, "{peer:?}");
        assert_ne!(theirs, "0".repeat(40));
    }
}
