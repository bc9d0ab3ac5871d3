//! BCAST: clients are notified of all keys with their prefixes.

use crate::check::check;

#[test]
fn clients_are_notified_of_their_prefixes() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON BCAST PREFIX a: PREFIX b: -> OK
c> HELLO 3
c< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
c> CLIENT TRACKING ON BCAST -> OK
d> HELLO 3
d< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 3, "mode": "standalone", "role": "maste
  r", "modules": []}
d> CLIENT TRACKING ON BCAST PREFIX a:x PREFIX z -> OK
> SET a:1 1 -> OK
b< >["invalidate", ["a:1"]]
c< >["invalidate", ["a:1"]]
d<
> SET other 1 -> OK
b<
c< >["invalidate", ["other"]]
> MSET b:2 1 b:1 1 a:x 1 b:2 2 -> OK
b< >["invalidate", ["a:x"]] >["invalidate", ["b:1", "b:2"]]
c< >["invalidate", ["a:x", "b:1", "b:2"]]
d< >["invalidate", ["a:x"]]
> MULTI -> OK
> INCR a:1 -> QUEUED
> INCR a:1 -> QUEUED
> INCR b:1 -> QUEUED
> EXEC -> [2, 3, 2]
b< >["invalidate", ["a:1"]] >["invalidate", ["b:1"]]
c< >["invalidate", ["a:1", "b:1"]]
> DEL nothing -> 0
b<
c<
b> CLIENT TRACKING ON BCAST PREFIX c: -> OK
> SET c:1 1 -> OK
b< >["invalidate", ["c:1"]]
b> CLIENT TRACKING OFF -> OK
> SET a:1 1 -> OK
b<
d> GET zebra -> nil
> INFO stats -> ~~ *tracking_total_keys:0*tracking_total_items:0*tracking_total_prefixes:3*
> INFO clients -> ~~ *tracking_clients:2*
"#,
    );
}

#[test]
fn own_changes_are_notified_after_the_reply_or_not() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON BCAST -> OK
b> SET k 1 -> OK
b< >["invalidate", ["k"]]
b> CLIENT TRACKING ON BCAST NOLOOP -> OK
b> SET k 1 -> OK
b<
> SET k 2 -> OK
b< >["invalidate", ["k"]]
b> MULTI -> OK
b> SET k 2 PX 5 -> QUEUED
b> SET l 1 -> QUEUED
b> EXEC -> [OK, OK]
b<
@advance 10
b> GET k -> nil
b< >["invalidate", ["k"]]
b> EVAL "return redis.call('set', KEYS[1], 1)" 1 k -> OK
b< >["invalidate", ["k"]]
"#,
    );
}
