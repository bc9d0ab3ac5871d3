//! Commands that reply after a grace period, when all earlier commands have ended.

use crate::check::check;

#[test]
fn client_reply_suppresses_their_replies() {
    check(
        r#"
b> CLIENT SETNAME b -> OK
> CLIENT REPLY SKIP
> CLIENT PAUSE 0
> CLIENT REPLY SKIP
> ACL SETUSER alice on
> PING -> PONG
> CLIENT REPLY OFF
> CLIENT PAUSE 0
> ACL SETUSER alice off
> ACL DELUSER alice
> CLIENT KILL TYPE normal
> CLIENT REPLY ON -> OK
> PING -> PONG
"#,
    );
}

#[test]
fn the_longest_pause_acts_like_a_shorter_one() {
    // A starting pause admits SCRIPT KILL. No request gets a reply here.
    check(
        r#"
> CLIENT PAUSE 9223370336854775807 -> OK
> SCRIPT KILL
"#,
    );
}
