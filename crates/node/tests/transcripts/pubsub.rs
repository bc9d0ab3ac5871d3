//! Channels, patterns and shard channels, and what a subscribed client may send.

use crate::check::check;

#[test]
fn a_message_reaches_the_subscribers_of_its_channel() {
    check(
        r#"
> PUBLISH c nobody -> 0
b> SUBSCRIBE c -> ["subscribe", "c", 1]
b> SUBSCRIBE d c -> ["subscribe", "d", 2] ["subscribe", "c", 2]
c> HELLO 3
c< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 3, "mode": "standalone",
   "role": "master", "modules": []}
c> SUBSCRIBE c -> >["subscribe", "c", 1]
> PUBLISH c m -> 2
b< ["message", "c", "m"]
c< >["message", "c", "m"]
> PUBLISH C m -> 0
b> UNSUBSCRIBE c -> ["unsubscribe", "c", 1]
> PUBLISH c m -> 1
b<
c< >["message", "c", "m"]
@close c
> PUBLISH c m -> 0
> PUBLISH d "" -> 1
b< ["message", "d", ""]
b> UNSUBSCRIBE -> ["unsubscribe", "d", 0]
b> UNSUBSCRIBE -> ["unsubscribe", nil, 0]
b> GET k -> nil
"#,
    );
}

#[test]
fn patterns_match_channels() {
    check(
        r#"
b> PSUBSCRIBE news.* n?ws.x -> ["psubscribe", "news.*", 1] ["psubscribe", "n?ws.x", 2]
> PUBLISH news.y 1 -> 1
b< ["pmessage", "news.*", "news.y", "1"]
> PUBLISH naws.x 2 -> 1
b< ["pmessage", "n?ws.x", "naws.x", "2"]
> PUBLISH news 3 -> 0
b<
> PUBSUB NUMPAT -> 2
c> PSUBSCRIBE news.* -> ["psubscribe", "news.*", 1]
> PUBSUB NUMPAT -> 2
c> SUBSCRIBE news.y -> ["subscribe", "news.y", 2]
> PUBLISH news.y 4 -> 3
b< ["pmessage", "news.*", "news.y", "4"]
c< ["message", "news.y", "4"] ["pmessage", "news.*", "news.y", "4"]
b> PUNSUBSCRIBE news.* other -> ["punsubscribe", "news.*", 1] ["punsubscribe", "other", 1]
c> PUNSUBSCRIBE -> ["punsubscribe", "news.*", 1]
c> PUNSUBSCRIBE -> ["punsubscribe", nil, 1]
> PUBSUB NUMPAT -> 1
b> PSUBSCRIBE "" "h[ae]llo" "\\*"
b< ["psubscribe", "", 2] ["psubscribe", "h[ae]llo", 3] ["psubscribe", "\\*", 4]
> PUBLISH "" e -> 1
b< ["pmessage", "", "", "e"]
> PUBLISH hello e -> 1
b< ["pmessage", "h[ae]llo", "hello", "e"]
> PUBLISH * star -> 1
b< ["pmessage", "\\*", "*", "star"]
> PUBSUB CHANNELS -> ["news.y"]
"#,
    );
}

#[test]
fn shard_channels_are_separate_from_channels() {
    check(
        r#"
b> SSUBSCRIBE c -> ["ssubscribe", "c", 1]
c> SUBSCRIBE c -> ["subscribe", "c", 1]
d> PSUBSCRIBE * -> ["psubscribe", "*", 1]
> SPUBLISH c m -> 1
b< ["smessage", "c", "m"]
c<
d<
> PUBLISH c m -> 2
b<
c< ["message", "c", "m"]
d< ["pmessage", "*", "c", "m"]
b> SUBSCRIBE e -> ["subscribe", "e", 1]
> PUBSUB SHARDCHANNELS -> ["c"]
> PUBSUB SHARDCHANNELS x* -> []
> PUBSUB SHARDNUMSUB c e -> ["c", 1, "e", 0]
> PUBSUB NUMSUB c e x -> ["c", 1, "e", 1, "x", 0]
> PUBSUB NUMSUB -> []
> PUBSUB CHANNELS [e] -> ["e"]
b> SUNSUBSCRIBE x -> ["sunsubscribe", "x", 1]
b> SUNSUBSCRIBE -> ["sunsubscribe", "c", 0]
b> SUNSUBSCRIBE -> ["sunsubscribe", nil, 0]
> SPUBLISH c m -> 0
> PUBSUB SHARDCHANNELS -> []
"#,
    );
}

#[test]
fn a_subscribed_client_may_send_few_commands_in_resp2() {
    check(
        r#"
> SUBSCRIBE c -> ["subscribe", "c", 1]
> PING -> ["pong", ""]
> PING hello -> ["pong", "hello"]
> PING a b -> -ERR wrong number of arguments for 'ping' command
> GET k
-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> CONFIG GET port
-ERR Can't execute 'config|get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> HELLO 3
-ERR Can't execute 'hello': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> SET -> -ERR wrong number of arguments for 'set' command
> MULTI
-ERR Can't execute 'multi': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> SSUBSCRIBE s -> ["ssubscribe", "s", 1]
> UNSUBSCRIBE c -> ["unsubscribe", "c", 0]
> GET k
-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> SUNSUBSCRIBE s -> ["sunsubscribe", "s", 0]
> GET k -> nil
> PSUBSCRIBE p* -> ["psubscribe", "p*", 1]
> RESET -> RESET
> PING -> PONG
b> PUBLISH px m -> 0
> SUBSCRIBE c -> ["subscribe", "c", 1]
> QUIT -> OK
b> PUBLISH c m -> 0
"#,
    );
}

#[test]
fn a_subscribed_client_may_send_all_commands_in_resp3() {
    check(
        r#"
> HELLO 3 -> ~~ *
> SUBSCRIBE c d -> >["subscribe", "c", 1] >["subscribe", "d", 2]
> GET k -> nil
> PING -> PONG
> PUBLISH c m -> 1 >["message", "c", "m"]
> EVAL "redis.call('publish', 'c', 'a') return redis.call('publish', 'd', 'b')" 0
1 >["message", "c", "a"] >["message", "d", "b"]
> CLIENT REPLY OFF
> SET k v
> SUBSCRIBE e -> >["subscribe", "e", 3]
b> PUBLISH e m -> 1
a< >["message", "e", "m"]
> CLIENT REPLY ON -> OK
> HELLO 2 -> ~~ *
> GET k
-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
> UNSUBSCRIBE -> ["unsubscribe", "c", 2] ["unsubscribe", "d", 1] ["unsubscribe", "e", 0]
> HELLO 3 -> ~~ *
> UNSUBSCRIBE -> >["unsubscribe", nil, 0]
"#,
    );
}

#[test]
fn a_transaction_subscribes_and_publishes() {
    check(
        r#"
> HELLO 3 -> ~~ *
> SUBSCRIBE c -> >["subscribe", "c", 1]
> MULTI -> OK
> PUBLISH c x -> QUEUED
> SUBSCRIBE e -> QUEUED
> PUBLISH e y -> QUEUED
> UNSUBSCRIBE e -> QUEUED
> SSUBSCRIBE s -> QUEUED
> EXEC
[1, >["subscribe", "e", 2], 1, >["unsubscribe", "e", 1],
   -ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client] >["message", "c", "x"]
   >["message", "e", "y"]
b> MULTI -> OK
b> SUBSCRIBE c -> QUEUED
b> PING -> QUEUED
b> PUBLISH c m -> QUEUED
b> EXEC -> [["subscribe", "c", 1], ["pong", ""], 2] ["message", "c", "m"]
a< >["message", "c", "m"]
b> GET k
b< -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
"#,
    );
}

#[test]
fn scripts_publish_and_do_not_subscribe() {
    check(
        r#"
b> SUBSCRIBE c -> ["subscribe", "c", 1]
> EVAL "return redis.call('publish', KEYS[1], ARGV[1])" 1 c m -> 1
b< ["message", "c", "m"]
> EVAL "return redis.call('spublish', 'c', 'm')" 0 -> 0
> EVAL "return redis.call('subscribe', 'c')" 0
~~ -ERR This Redis command is not allowed from script script: *
> EVAL_RO "return redis.call('publish', 'c', 'm')" 0
~~ -ERR Write commands are not allowed from read-only scripts.*
"#,
    );
}

#[test]
fn client_list_distinguishes_subscribed_clients() {
    check(
        r#"
b> SUBSCRIBE c d -> ["subscribe", "c", 1] ["subscribe", "d", 2]
c> PSUBSCRIBE p* -> ["psubscribe", "p*", 1]
d> SSUBSCRIBE s -> ["ssubscribe", "s", 1]
> CLIENT LIST TYPE normal -> ~~ *id=4 * flags=N db=0 sub=0 psub=0 ssub=0 *
> CLIENT LIST ID 1 -> ~~ *flags=P db=0 sub=2 psub=0 ssub=0 *
> CLIENT LIST ID 2 -> ~~ *flags=P db=0 sub=0 psub=1 ssub=0 *
> CLIENT LIST ID 3 -> ~~ *flags=P db=0 sub=0 psub=0 ssub=1 *
> INFO clients -> ~~ *pubsub_clients:3*
> INFO stats -> ~~ *pubsub_channels:2*pubsub_patterns:1*pubsubshard_channels:1*
d> SUNSUBSCRIBE -> ["sunsubscribe", "s", 0]
> CLIENT KILL TYPE pubsub -> 2
> INFO stats -> ~~ *pubsub_channels:0*pubsub_patterns:0*pubsubshard_channels:0*
> PUBLISH c m -> 0
"#,
    );
}

#[test]
fn users_may_use_their_channels() {
    check(
        r#"
> ACL SETUSER alice on nopass +@all ~* resetchannels &news.* &ap -> OK
b> AUTH alice x -> OK
b> SUBSCRIBE news.x other -> -NOPERM No permissions to access a channel
b> SUBSCRIBE news.x -> ["subscribe", "news.x", 1]
b> PSUBSCRIBE news.a* -> -NOPERM No permissions to access a channel
b> PSUBSCRIBE news.* ap -> ["psubscribe", "news.*", 2] ["psubscribe", "ap", 3]
b> SSUBSCRIBE s -> -NOPERM No permissions to access a channel
b> UNSUBSCRIBE other -> ["unsubscribe", "other", 3]
b> GET k
b< -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are
   allowed in this context
c> AUTH alice x -> OK
c> PUBLISH other m -> -NOPERM No permissions to access a channel
c> SPUBLISH other m -> -NOPERM No permissions to access a channel
c> PUBLISH news.x m -> 2
b< ["message", "news.x", "m"] ["pmessage", "news.*", "news.x", "m"]
c> EVAL "return redis.call('publish', 'other', 'm')" 0
c< ~~ -ERR ACL failure in script: No permissions to access a channel script: *
c> MULTI -> OK
c> PUBLISH other m -> -NOPERM No permissions to access a channel
c> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> ACL DRYRUN alice SUBSCRIBE news.x other
"User alice has no permissions to access the 'other' channel"
> ACL DRYRUN alice PSUBSCRIBE news.* -> OK
> ACL SETUSER alice &more.* -> OK
> PUBLISH news.x m -> 2
> ACL SETUSER alice resetchannels &news.* -> OK
> PUBLISH news.x m -> 0
"#,
    );
}

#[test]
fn arguments_of_pubsub() {
    check(
        r#"
> SUBSCRIBE -> -ERR wrong number of arguments for 'subscribe' command
> PSUBSCRIBE -> -ERR wrong number of arguments for 'psubscribe' command
> SSUBSCRIBE -> -ERR wrong number of arguments for 'ssubscribe' command
> PUBLISH c -> -ERR wrong number of arguments for 'publish' command
> SPUBLISH c -> -ERR wrong number of arguments for 'spublish' command
> PUBSUB -> -ERR wrong number of arguments for 'pubsub' command
> PUBSUB NUMPAT x -> -ERR wrong number of arguments for 'pubsub|numpat' command
> PUBSUB CHANNELS a b
-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
> PUBSUB SHARDCHANNELS a b
-ERR unknown subcommand or wrong number of arguments for 'SHARDCHANNELS'. Try PUBSUB HELP.
> PUBSUB WHAT -> -ERR unknown subcommand 'WHAT'. Try PUBSUB HELP.
> COMMAND GETKEYS SPUBLISH c m -> -ERR The command has no key arguments
> COMMAND INFO ssubscribe publish -> ~~ *
> PUBSUB HELP -> ~~ *
"#,
    );
}
