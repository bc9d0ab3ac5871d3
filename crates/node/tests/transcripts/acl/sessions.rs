//! Users and connections: who authenticates as whom, and who is closed.

use crate::check::check;

#[test]
fn users_authenticate() {
    check(
        r#"
> ACL SETUSER u >a >b +@all
OK
b> AUTH u a
b< -WRONGPASS invalid username-password pair or user is disabled.
> ACL SETUSER u on
OK
b> AUTH u a
b< OK
b> AUTH u b
b< OK
b> AUTH u c
b< -WRONGPASS invalid username-password pair or user is disabled.
b> ACL WHOAMI
b< "u"
> ACL SETUSER u <a
OK
b> AUTH u a
b< -WRONGPASS invalid username-password pair or user is disabled.
b> HELLO 2 AUTH u c AUTH default x AUTH u b
b< ~~ *"redis"*
b> ACL WHOAMI
b< "u"
b> HELLO 3 AUTH default x SETNAME n
b< ~~ {*
b> ACL WHOAMI
b< "default"
"#,
    );
}

#[test]
fn clients_are_listed_and_killed_by_user() {
    check(
        r#"
> ACL SETUSER u on nopass +@all
OK
b> AUTH u x
b< OK
b> CLIENT SETNAME bee
b< OK
b> CLIENT INFO
b< ~~ *name=bee *cmd=client|info user=u redir=-1*
> CLIENT KILL USER nobody
-ERR No such user 'nobody'
> CLIENT KILL USER u SKIPME no
1
> CLIENT LIST
~~ *user=default*
c> AUTH u x
c< OK
> CLIENT KILL USER u ADDR 1.2.3.4:5
0
> CLIENT KILL USER u
1
"#,
    );
}

#[test]
fn the_clients_of_a_deleted_user_are_closed() {
    check(
        r#"
> ACL SETUSER u on nopass +@all ~*
OK
b> AUTH u x
b< OK
c> AUTH u x
c< OK
c> BLPOP l 0
> ACL DELUSER u
1
# Who comes back is someone else, and nobody has taken anything.
b> ACL WHOAMI
b< "default"
> RPUSH l v
1
> LLEN l
1
# A client that deletes its own user is answered.
> ACL SETUSER v on nopass +@all
OK
d> AUTH v x
d< OK
d> ACL DELUSER v
d< 1
d> ACL WHOAMI
d< "default"
"#,
    );
}

#[test]
fn the_clients_of_a_user_that_is_added_again_at_once_are_closed() {
    check(
        r#"
> ACL SETUSER u on >old +@all ~* &*
OK
b> AUTH u old
b< OK
c> AUTH u old
c< OK
c> SUBSCRIBE news
c< ["subscribe", "news", 1]
d> AUTH u old
d< OK
d> BLPOP l 0
> MULTI
OK
> ACL DELUSER u
QUEUED
> ACL SETUSER u on >new +@all ~* &*
QUEUED
> EXEC
[1, OK]
# Who comes back is someone else.
b> ACL WHOAMI
b< "default"
> RPUSH l v
1
> PUBLISH news v
0
b> AUTH u new
b< OK
> CLIENT LIST
~~ *user=u*
"#,
    );
}

#[test]
fn a_default_user_that_is_off_or_has_a_password() {
    check(
        r#"
> ACL SETUSER default off
OK
b> PING
b< -NOAUTH Authentication required.
b> HELLO 3
b< ~~ -NOAUTH HELLO must be called with the client already authenticated*
> ACL SETUSER default on
OK
b> PING
b< PONG
> ACL SETUSER default >pw
OK
> PING
PONG
c> PING
c< -NOAUTH Authentication required.
c> AUTH pw
c< OK
c> PING
c< PONG
> CONFIG GET requirepass
["requirepass", ""]
> CONFIG SET requirepass other
OK
d> AUTH pw
d< -WRONGPASS invalid username-password pair or user is disabled.
d> AUTH other
d< OK
> CONFIG SET requirepass ""
OK
e> PING
e< PONG
> ACL LIST
["user default on nopass sanitize-payload ~* &* +@all"]
"#,
    );
}

#[test]
fn the_default_user_may_have_rules() {
    check(
        r#"
> ACL SETUSER root on nopass +@all ~* &*
OK
b> AUTH root x
b< OK
b> ACL SETUSER default -@all +ping
b< OK
> PING
PONG
> GET k
-NOPERM User default has no permissions to run the 'get' command
> HELLO 2 AUTH root x
~~ *"redis"*
> RESET
RESET
> GET k
-NOPERM User default has no permissions to run the 'get' command
b> ACL SETUSER default +@all
b< OK
> GET k
nil
"#,
    );
}
