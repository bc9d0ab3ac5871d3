//! Users and connections: authentication, and connections that are closed.

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn users_authenticate() {
    check(
        r#"
> ACL SETUSER u >a >b +@all -> OK
b> AUTH u a -> -WRONGPASS invalid username-password pair or user is disabled.
> ACL SETUSER u on -> OK
b> AUTH u a -> OK
b> AUTH u b -> OK
b> AUTH u c -> -WRONGPASS invalid username-password pair or user is disabled.
b> ACL WHOAMI -> "u"
> ACL SETUSER u <a -> OK
b> AUTH u a -> -WRONGPASS invalid username-password pair or user is disabled.
b> HELLO 2 AUTH u c AUTH default x AUTH u b -> ~~ *"redis"*
b> ACL WHOAMI -> "u"
b> HELLO 3 AUTH default x SETNAME n -> ~~ {*
b> ACL WHOAMI -> "default"
"#,
    );
}

#[test]
fn clients_are_listed_and_killed_by_user() {
    check(
        r#"
> ACL SETUSER u on nopass +@all -> OK
b> AUTH u x -> OK
b> CLIENT SETNAME bee -> OK
b> CLIENT INFO -> ~~ *name=bee *cmd=client|info user=u redir=-1*
> CLIENT KILL USER nobody -> -ERR No such user 'nobody'
> CLIENT KILL USER u SKIPME no -> 1
> CLIENT LIST -> ~~ *user=default*
c> AUTH u x -> OK
> CLIENT KILL USER u ADDR 1.2.3.4:5 -> 0
> CLIENT KILL USER u -> 1
"#,
    );
}

#[test]
fn the_clients_of_a_deleted_user_are_closed() {
    check(
        r#"
> ACL SETUSER u on nopass +@all ~* -> OK
b> AUTH u x -> OK
c> AUTH u x -> OK
c> BLPOP l 0
> ACL DELUSER u -> 1
# A user that is added again is a different user, and no element was taken.
b> ACL WHOAMI -> "default"
> RPUSH l v -> 1
> LLEN l -> 1
# A client that deletes its own user gets the reply.
> ACL SETUSER v on nopass +@all -> OK
d> AUTH v x -> OK
d> ACL DELUSER v -> 1
d> ACL WHOAMI -> "default"
"#,
    );
}

#[test]
fn the_clients_of_a_user_that_is_added_again_at_once_are_closed() {
    check(
        r#"
> ACL SETUSER u on >old +@all ~* &* -> OK
b> AUTH u old -> OK
c> AUTH u old -> OK
c> SUBSCRIBE news -> ["subscribe", "news", 1]
d> AUTH u old -> OK
d> BLPOP l 0
> MULTI -> OK
> ACL DELUSER u -> QUEUED
> ACL SETUSER u on >new +@all ~* &* -> QUEUED
> EXEC -> [1, OK]
# A user that is added again is a different user.
b> ACL WHOAMI -> "default"
> RPUSH l v -> 1
> PUBLISH news v -> 0
b> AUTH u new -> OK
> CLIENT LIST -> ~~ *user=u*
"#,
    );
}

#[test]
fn a_default_user_that_is_off_or_has_a_password() {
    check(
        r#"
> ACL SETUSER default off -> OK
b> PING -> -NOAUTH Authentication required.
b> HELLO 3 -> ~~ -NOAUTH HELLO must be called with the client already authenticated*
> ACL SETUSER default on -> OK
b> PING -> PONG
> ACL SETUSER default >pw -> OK
> PING -> PONG
c> PING -> -NOAUTH Authentication required.
c> AUTH pw -> OK
c> PING -> PONG
> CONFIG GET requirepass -> ["requirepass", ""]
> CONFIG SET requirepass other -> OK
d> AUTH pw -> -WRONGPASS invalid username-password pair or user is disabled.
d> AUTH other -> OK
> CONFIG SET requirepass "" -> OK
e> PING -> PONG
> ACL LIST -> ["user default on nopass sanitize-payload ~* &* +@all"]
"#,
    );
}

#[test]
fn the_default_user_may_have_rules() {
    check(
        r#"
> ACL SETUSER root on nopass +@all ~* &* -> OK
b> AUTH root x -> OK
b> ACL SETUSER default -@all +ping -> OK
> PING -> PONG
> GET k -> -NOPERM User default has no permissions to run the 'get' command
> HELLO 2 AUTH root x -> ~~ *"redis"*
> RESET -> RESET
> GET k -> -NOPERM User default has no permissions to run the 'get' command
b> ACL SETUSER default +@all -> OK
> GET k -> nil
"#,
    );
}

/// Runs `steps` as a client that has subscribed as `u`. Returns its user afterwards, or `None` if
/// the last step closed it. Results are those of Redis 8.0.6.
#[track_caller]
fn check_subscriber(steps: &[&str], runs_as: Option<&str>) {
    let mut server = TestServer::new(4);
    let begin = r#"
> ACL SETUSER u on nopass +@all ~* resetchannels &news &other -> OK
> ACL SETUSER few on nopass +@all ~* resetchannels &other -> OK
> ACL SETUSER none on nopass +@all ~* resetchannels -> OK
> ACL SETUSER all on nopass +@all ~* allchannels -> OK
c> AUTH u x -> OK
c> HELLO 3 -> ~~ *
c> SUBSCRIBE news -> ~~ *
"#;
    run(&mut server, begin);
    for step in steps {
        let (client, request) = step.split_once("> ").unwrap_or(("main", step));
        let request: Vec<Vec<u8>> = request.split(' ').map(|word| word.into()).collect();
        let (reply, _) = server.request(client, &request);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(!reply.starts_with('-'), "{step}: {reply}");
    }
    let (name, _) = server.request("c", &[b"ACL".to_vec(), b"WHOAMI".to_vec()]);
    let name = String::from_utf8_lossy(&name).into_owned();
    let expected = runs_as.unwrap_or("default");
    assert!(name.ends_with(&format!("\r\n{expected}\r\n")), "{steps:?}: {name}");
}

#[test]
fn a_change_of_its_present_user_checks_a_subscriber() {
    check_subscriber(&["ACL SETUSER u -get"], Some("u"));
    check_subscriber(&["ACL SETUSER u resetchannels &other"], None);
    check_subscriber(&["c> UNSUBSCRIBE news", "ACL SETUSER u resetchannels"], Some("u"));
    // The client has a different user since then.
    check_subscriber(&["c> AUTH few x", "ACL SETUSER all -get"], Some("few"));
    check_subscriber(&["c> AUTH few x", "ACL SETUSER u resetchannels"], Some("few"));
    check_subscriber(&["c> AUTH few x", "ACL DELUSER u"], Some("few"));
    check_subscriber(&["c> AUTH few x", "ACL DELUSER few"], None);
    check_subscriber(&["c> RESET", "ACL SETUSER u resetchannels"], Some("default"));
    check_subscriber(&["c> AUTH all x", "ACL SETUSER all resetchannels &news"], Some("all"));
    check_subscriber(&["c> AUTH all x", "ACL SETUSER all resetchannels"], None);
    // Any change of the user counts, unless it had no channels.
    for change in ["-get", "&third", "resetchannels", "resetchannels (&other +get)", "off"] {
        check_subscriber(&["c> AUTH few x", &format!("ACL SETUSER few {change}")], None);
    }
    for change in ["resetchannels &news", "resetchannels &n*", "allchannels"] {
        let change = format!("ACL SETUSER few {change}");
        check_subscriber(&["c> AUTH few x", &change], Some("few"));
    }
    for change in ["-get", "&other"] {
        check_subscriber(&["c> AUTH none x", &format!("ACL SETUSER none {change}")], Some("none"));
    }
    let twice = ["c> AUTH none x", "ACL SETUSER none &other", "ACL SETUSER none -get"];
    check_subscriber(&twice, None);
    let unsubscribed = ["c> AUTH few x", "c> UNSUBSCRIBE news", "ACL SETUSER few resetchannels"];
    check_subscriber(&unsubscribed, Some("few"));
}

#[test]
fn a_transaction_that_removes_a_channel_closes_the_subscriber() {
    let exec = |commands: &[&'static str]| [&["MULTI"], commands, &["EXEC"]].concat();
    let back = "ACL SETUSER u &news";
    check_subscriber(&exec(&["ACL SETUSER u resetchannels", back]), None);
    check_subscriber(&exec(&["ACL SETUSER u -get", back]), Some("u"));
    check_subscriber(&exec(&["ACL SETUSER few resetchannels", back]), Some("u"));
    let again = "ACL SETUSER u on nopass allchannels";
    check_subscriber(&exec(&["ACL DELUSER u", again, "ACL SETUSER u -get"]), None);
    let few = ["c> AUTH few x", "MULTI", "ACL SETUSER few -get", "EXEC"];
    check_subscriber(&few, None);
    // Changes without an effect on channels do not close it; a later change of channels does.
    let same = "ACL SETUSER u -set";
    check_subscriber(&exec(&["ACL SETUSER u -get", same]), Some("u"));
    check_subscriber(&exec(&["ACL SETUSER u -get", same, "ACL SETUSER u resetchannels"]), None);
    // The subscriber itself runs the transaction.
    let own = |commands: &[&'static str]| [&["c> MULTI"], commands, &["c> EXEC"]].concat();
    let (take, back) = ("c> ACL SETUSER u resetchannels", "c> ACL SETUSER u &news");
    check_subscriber(&own(&[take, back]), None);
    check_subscriber(&own(&[take, "c> UNSUBSCRIBE news", back]), None);
    check_subscriber(&own(&[take, "c> AUTH all x"]), None);
    check_subscriber(&own(&["c> UNSUBSCRIBE news", take]), Some("u"));
    check_subscriber(&own(&["c> AUTH all x", take]), Some("all"));
    check_subscriber(&[take], None);
}

/// The replies end with that of the command that removed the channel, as in Redis 8.0.6.
#[test]
fn a_transaction_that_removes_its_own_channel_gets_the_replies_up_to_there() {
    let mut server = TestServer::new(4);
    let begin = r#"
> ACL SETUSER default -set -> OK
> ACL SETUSER u on nopass +@all ~* &news -> OK
c> AUTH u x -> OK
c> MULTI -> OK
c> SUBSCRIBE news -> QUEUED
c> ACL SETUSER u resetchannels -> QUEUED
c> SET k v -> QUEUED
c> INCR n -> QUEUED
"#;
    run(&mut server, begin);
    let (reply, _) = server.request("c", &[b"EXEC".to_vec()]);
    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    assert_eq!(String::from_utf8_lossy(&reply), format!("*4\r\n{subscribed}+OK\r\n"));
    run(&mut server, "> MGET k n\n[nil, \"1\"]\nc> ACL WHOAMI\nc< \"default\"\n");
}
