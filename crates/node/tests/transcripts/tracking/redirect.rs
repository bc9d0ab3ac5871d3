//! REDIRECT: another client gets the notifications.

use crate::check::check;

#[test]
fn a_subscribed_target_gets_messages() {
    check(
        r#"
b> SUBSCRIBE __redis__:invalidate -> ["subscribe", "__redis__:invalidate", 1]
> CLIENT TRACKING ON REDIRECT 1 -> OK
> GET k -> nil
> SET k 1 -> OK
b< ["message", "__redis__:invalidate", ["k"]]
c> SET k 2 -> OK
b<
> GET k -> "2"
c> SET k 3 -> OK
b< ["message", "__redis__:invalidate", ["k"]]
a<
> MGET k l -> ["3", nil]
c> MSET k 3 l 3 -> OK
b< ["message", "__redis__:invalidate", ["k"]] ["message", "__redis__:invalidate", ["l"]]
b> UNSUBSCRIBE -> ["unsubscribe", "__redis__:invalidate", 0]
> GET k -> "3"
c> SET k 3 -> OK
b<
b> SUBSCRIBE whatever -> ["subscribe", "whatever", 1]
> GET k -> "3"
c> SET k 3 -> OK
b< ["message", "__redis__:invalidate", ["k"]]
> CLIENT TRACKING OFF -> OK
> CLIENT TRACKING ON BCAST REDIRECT 1 -> OK
> SET k 1 -> OK
b< ["message", "__redis__:invalidate", ["k"]]
c> FLUSHALL -> OK
b< ["message", "__redis__:invalidate", nil]
"#,
    );
}

#[test]
fn a_resp3_target_gets_pushes() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
> CLIENT TRACKING ON REDIRECT 1 NOLOOP -> OK
> GET k -> nil
> SET k 1 -> OK
b<
c> SET k 2 -> OK
b<
> GET k -> "2"
c> SET k 2 -> OK
b< >["invalidate", ["k"]]
> HELLO 3
{"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "master",
   "modules": []}
> GET k -> "2"
c> SET k 2 -> OK
a<
b< >["invalidate", ["k"]]
> GET k -> "2"
c> FLUSHDB -> OK
b< >["invalidate", nil]
a<
"#,
    );
}

#[test]
fn a_client_is_notified_when_its_target_disconnects() {
    check(
        r#"
b> CLIENT ID -> 1
> HELLO 3
{"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "master",
   "modules": []}
> CLIENT TRACKING ON REDIRECT 1 -> OK
> MGET k l -> [nil, nil]
@close b
c> SET k 1 -> OK
a< >["tracking-redir-broken", 1]
> CLIENT TRACKINGINFO -> {"flags": ~["on", "broken_redirect"], "redirect": 1, "prefixes": []}
> CLIENT INFO -> ~~ *flags=tR *redir=1 *
c> SET l 1 -> OK
a< >["tracking-redir-broken", 1]
> GET k -> "1"
c> SET k 1 -> OK
a< >["tracking-redir-broken", 1]
> CLIENT TRACKING ON -> OK
> CLIENT TRACKINGINFO -> {"flags": ~["on"], "redirect": 0, "prefixes": []}
> HELLO 2
["server", "redis", "version", "8.0.6", "proto", 2, "id", 2, "mode", "standalone", "role", "master",
   "modules", []]
"#,
    );
}
