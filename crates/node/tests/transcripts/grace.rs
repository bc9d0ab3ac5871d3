//! Commands that are answered when all that others had begun is over.

use crate::check::check;

#[test]
fn their_replies_are_silenced_as_any_other() {
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
fn the_longest_pause_is_no_other_than_a_shorter_one() {
    // A pause that begins lets pass what ends a script. No request is answered here.
    check(
        r#"
> CLIENT PAUSE 9223370336854775807 -> OK
> SCRIPT KILL
"#,
    );
}
