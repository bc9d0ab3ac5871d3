//! ACL LOG.

use crate::check::{check, run};
use crate::fake::TestServer;

const USER: &str = "> ACL SETUSER u on nopass +get +acl ~a\nOK\nb> AUTH u x\nb< OK\n";

#[test]
fn entries() {
    check(&format!(
        r#"
{USER}
b> GET b -> -NOPERM No permissions to access a key
b> DEL a -> ~~ -NOPERM*
b> CONFIG GET x -> ~~ -NOPERM*
b> AUTH other pw -> ~~ -WRONGPASS*
> ACL LOG
~~ \[\["count", 1, "reason", "auth", "context", "toplevel", "object", "AUTH", "username", "other",
   "age-seconds", "0*", "client-info", "id=* cmd=auth user=u *", "entry-id", *,
   "timestamp-created", 1*, "timestamp-last-updated", 1*\], \["count", 1, "reason", "command",
   "context", "toplevel", "object", "config|get", *\["count", 1, "reason", "command", *"object",
   "del", *\["count", 1, "reason", "key", "context", "toplevel", "object", "b", "username", "u",
   "age-seconds", "0*", "client-info", "id=* cmd=get user=u *
> ACL LOG 0 -> []
> ACL LOG -5 -> []
> ACL LOG 1 -> ~~ \[\["count", 1, "reason", "auth"*
> ACL LOG x -> -ERR value is not an integer or out of range
> ACL LOG 1 2 -> -ERR unknown subcommand or wrong number of arguments for 'LOG'. Try ACL HELP.
> HELLO 3 -> ~~ {{*
> ACL LOG 1
~~ \[{{"count": 1, "reason": "auth", "context": "toplevel", *, "age-seconds": ,0*, "client-info": *
> ACL LOG Reset -> OK
> ACL LOG -> []
"#
    ));
}

#[test]
fn equal_events_are_counted() {
    check(&format!(
        r#"
{USER}
b> GET b -> ~~ -NOPERM*
b> GET b -> ~~ -NOPERM*
@advance 1500
b> GET b -> ~~ -NOPERM*
> ACL LOG -> ~~ \[\["count", 3, "reason", "key", *
"#
    ));
    // Ids and times differ on a running server.
    run(
        &mut TestServer::with_config(4, node::config::Config::default()),
        &format!(
            r#"
{USER}
b> GET b -> ~~ -NOPERM*
@advance 1500
b> GET b -> ~~ -NOPERM*
b> GET c -> ~~ -NOPERM*
@advance 500
> ACL LOG
~~ \[\["count", 1, *"object", "c", *"age-seconds", "0.5", *"entry-id", 1, "timestamp-created",
   1700000001500, "timestamp-last-updated", 1700000001500\], \["count", 2, *"object", "b",
   *"age-seconds", "0.5", *"entry-id", 0, "timestamp-created", 1700000000000,
   "timestamp-last-updated", 1700000001500\]\]
@advance 60001
b> GET b -> ~~ -NOPERM*
> ACL LOG 1 -> ~~ \[\["count", 1, *"object", "b", *"entry-id", 2, *
"#
        ),
    );
}

#[test]
fn the_log_is_bounded() {
    check(&format!(
        r#"
{USER}
> CONFIG SET acllog-max-len 2 -> OK
b> GET b -> ~~ -NOPERM*
b> GET c -> ~~ -NOPERM*
b> GET d -> ~~ -NOPERM*
> ACL LOG -> ~~ \[\[*"object", "d", *"object", "c", *\]\]
> CONFIG SET acllog-max-len 0 -> OK
> ACL LOG 1 -> ~~ \[\[*"object", "d", *
b> GET e -> ~~ -NOPERM*
> ACL LOG -> []
"#
    ));
}
