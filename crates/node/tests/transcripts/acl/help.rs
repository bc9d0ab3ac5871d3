//! Commands that help to write rules: CAT, DRYRUN, GENPASS, HELP.

use crate::check::check;

#[test]
fn categories() {
    check(
        r#"
> ACL CAT
["keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap",
   "hyperloglog", "geo", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous",
   "connection", "transaction", "scripting"]
> ACL CAT HyperLogLog -> ["pfadd", "pfcount", "pfdebug", "pfmerge", "pfselftest"]
> ACL CAT nosuch -> -ERR Unknown category 'nosuch'
> ACL CAT a b -> -ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.
"#,
    );
}

#[test]
fn dryrun() {
    check(
        r#"
> ACL SETUSER u +@all -flushall -config|set %R~r* %W~w* ~rw* -> OK
> ACL DRYRUN u GET r1 -> OK
> ACL DRYRUN u Flushall -> "User u has no permissions to run the 'flushall' command"
> ACL DRYRUN u CONFIG SET a b -> "User u has no permissions to run the 'config|set' command"
> ACL DRYRUN u CONFIG GET a -> OK
> ACL DRYRUN u GET w1 -> "User u has no permissions to access the 'w1' key"
> ACL DRYRUN u SET w1 v -> OK
> ACL DRYRUN u SET w1 v GET -> "User u has no permissions to access the 'w1' key"
> ACL DRYRUN u SET w1 v EX 5 gEt -> "User u has no permissions to access the 'w1' key"
> ACL DRYRUN u SET rw1 v GET -> OK
> ACL DRYRUN u BITFIELD r1 GET u4 0 -> OK
> ACL DRYRUN u BITFIELD r1 GET u4 0 SET u4 0 1 -> "User u has no permissions to access the 'r1' key"
> ACL DRYRUN u COPY r1 w1 -> OK
> ACL DRYRUN u COPY w1 r1 -> "User u has no permissions to access the 'w1' key"
> ACL DRYRUN u SORT r1 STORE w1 -> OK
> ACL DRYRUN u SORT r1 STORE r2 -> "User u has no permissions to access the 'r2' key"
> ACL DRYRUN u GEORADIUS r1 0 0 1 m STOREDIST w1 -> OK
> ACL DRYRUN u GEORADIUS r1 0 0 1 m STORE r2 -> "User u has no permissions to access the 'r2' key"
> ACL DRYRUN u XREADGROUP GROUP g c STREAMS rw1 w1 > >
"User u has no permissions to access the 'w1' key"
> ACL DRYRUN u ZUNIONSTORE w1 2 r1 w2 -> "User u has no permissions to access the 'w2' key"
> ACL DRYRUN u ZUNIONSTORE w1 3 r1 x -> OK
> ACL DRYRUN u STRLEN w1 -> OK
> ACL DRYRUN u STRLEN x -> "User u has no permissions to access the 'x' key"
> ACL DRYRUN u MEMORY USAGE w1 -> OK
> ACL DRYRUN nobody GET r1 -> -ERR User 'nobody' not found
> ACL DRYRUN u nosuch r1 -> -ERR Command 'nosuch' not found
> ACL DRYRUN u CONFIG nosuch -> -ERR Command 'CONFIG' not found
> ACL DRYRUN u CONFIG -> -ERR wrong number of arguments for 'config' command
> ACL DRYRUN u GET -> -ERR wrong number of arguments for 'get' command
> ACL DRYRUN u -> -ERR wrong number of arguments for 'acl|dryrun' command
"#,
    );
}

#[test]
fn genpass() {
    check(
        r#"
> ACL GENPASS -> ~~ "????????????????????????????????????????????????????????????????"
> ACL GENPASS 1 -> ~~ "?"
> ACL GENPASS 5 -> ~~ "??"
> ACL GENPASS 12 -> ~~ "???"
> ACL GENPASS 0
-ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up
   to 4096
> ACL GENPASS -236 -> ~~ -ERR ACL GENPASS argument must be the number of bits*
> ACL GENPASS 4097 -> ~~ -ERR ACL GENPASS argument must be the number of bits*
> ACL GENPASS x -> -ERR value is not an integer or out of range
> ACL GENPASS 1 2
-ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.
"#,
    );
}

#[test]
fn forms() {
    check(
        r#"
> ACL HELP -> ~~ \[ACL <subcommand> *
> ACL HELP x -> -ERR wrong number of arguments for 'acl|help' command
> ACL -> -ERR wrong number of arguments for 'acl' command
> ACL nosuch -> -ERR unknown subcommand 'nosuch'. Try ACL HELP.
> ACL WHOAMI x -> -ERR wrong number of arguments for 'acl|whoami' command
> ACL LIST x -> -ERR wrong number of arguments for 'acl|list' command
> ACL USERS x -> -ERR wrong number of arguments for 'acl|users' command
> ACL GETUSER -> -ERR wrong number of arguments for 'acl|getuser' command
> ACL SETUSER -> -ERR wrong number of arguments for 'acl|setuser' command
"#,
    );
}
