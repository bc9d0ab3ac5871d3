//! ROLE, WAIT, REPLICAOF and CLUSTER of a standalone server, with the replies of Redis 8.0.6.

use crate::check::check;

#[test]
fn a_standalone_server_is_a_primary_without_replicas() {
    check(
        r#"
> ROLE -> ["master", 0, []]
> ROLE x -> -ERR wrong number of arguments for 'role' command
> REPLICAOF NO ONE -> OK
> slaveof no one -> OK
> REPLICAOF NO -> -ERR wrong number of arguments for 'replicaof' command
> REPLICAOF host 70000 -> -ERR Invalid master port
> SLAVEOF host x -> -ERR Invalid master port
> REPLICAOF 127.0.0.1 6379 -> -ERR Weft does not support replication yet
> SLAVEOF 127.0.0.1 6379 -> -ERR Weft does not support replication yet
> ROLE -> ["master", 0, []]
> CONFIG GET replicaof slaveof -> ["replicaof", "", "slaveof", ""]
> CONFIG SET replicaof "127.0.0.1 6379"
-ERR CONFIG SET failed (possibly related to argument 'replicaof') - can't set immutable config
"#,
    );
}

#[test]
fn wait_ends_at_its_timeout_unless_it_asks_for_no_replica() {
    check(
        r#"
> SET k v -> OK
> WAIT 0 0 -> 0
> WAIT -1 0 -> 0
> WAIT a 0 -> -ERR value is not an integer or out of range
> WAIT 1 a -> -ERR timeout is not an integer or out of range
> WAIT 1 -1 -> -ERR timeout is negative
> WAIT 1 -> -ERR wrong number of arguments for 'wait' command
> MULTI -> OK
> WAIT 1 0 -> QUEUED
> EXEC -> [0]
> EVAL "return redis.call('wait', 1, 0)" 0 -> 0
b> WAIT 1 50
@advance 50
b<
@advance 1
b< 0
b> WAIT 1 0
> CLIENT UNBLOCK 2 -> 1
b< 0
"#,
    );
}

#[test]
fn a_standalone_server_is_no_node_of_a_cluster() {
    for request in [
        "> CLUSTER ADDSLOTS 1",
        "> CLUSTER ADDSLOTSRANGE 1 2",
        "> CLUSTER BUMPEPOCH",
        "> CLUSTER COUNT-FAILURE-REPORTS id",
        "> CLUSTER COUNTKEYSINSLOT 1",
        "> CLUSTER DELSLOTS 1",
        "> CLUSTER DELSLOTSRANGE 1 2",
        "> CLUSTER FAILOVER",
        "> CLUSTER FLUSHSLOTS",
        "> CLUSTER FORGET id",
        "> CLUSTER GETKEYSINSLOT 1 1",
        "> CLUSTER HELP",
        "> CLUSTER INFO",
        "> CLUSTER KEYSLOT k",
        "> CLUSTER LINKS",
        "> CLUSTER MEET 127.0.0.1 7000",
        "> CLUSTER MYID",
        "> CLUSTER MYSHARDID",
        "> CLUSTER NODES",
        "> CLUSTER REPLICAS id",
        "> CLUSTER REPLICATE id",
        "> CLUSTER RESET",
        "> CLUSTER SAVECONFIG",
        "> CLUSTER SET-CONFIG-EPOCH 1",
        "> CLUSTER SETSLOT 1 STABLE",
        "> CLUSTER SHARDS",
        "> CLUSTER SLAVES id",
        "> CLUSTER SLOTS",
    ] {
        check(&format!("{request} -> -ERR This instance has cluster support disabled"));
    }
    check(
        r#"
> READONLY -> -ERR This instance has cluster support disabled
> READWRITE -> -ERR This instance has cluster support disabled
> ASKING -> -ERR This instance has cluster support disabled
> MULTI -> OK
> CLUSTER COUNTKEYSINSLOT 1 -> QUEUED
> READONLY -> QUEUED
> EXEC
[-ERR This instance has cluster support disabled, -ERR This instance has cluster support disabled]
> EVAL "return redis.pcall('readonly')" 0 -> -ERR This instance has cluster support disabled
> READONLY x -> -ERR wrong number of arguments for 'readonly' command
> CLUSTER -> -ERR wrong number of arguments for 'cluster' command
> CLUSTER KEYSLOT -> -ERR wrong number of arguments for 'cluster|keyslot' command
> CLUSTER nosuch -> -ERR unknown subcommand 'nosuch'. Try CLUSTER HELP.
"#,
    );
}
