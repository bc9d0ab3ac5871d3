//! tracking-table-max-keys.

use crate::check::check;

#[test]
fn keys_are_forgotten_beyond_the_limit_and_told() {
    check(
        r#"
> CONFIG GET tracking-table-max-keys
["tracking-table-max-keys", "1000000"]
> CONFIG SET tracking-table-max-keys 1
OK
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON
b< OK
b> GET k
b< nil
b> GET k
b< nil
b> INFO stats
b< ~~ *tracking_total_keys:1*tracking_total_items:1*
b> GET l
b< nil
b> PING
b< ~~ >?"invalidate", ?"?"]] PONG
b> INFO stats
b< ~~ *tracking_total_keys:1*tracking_total_items:1*
> CONFIG SET tracking-table-max-keys 0
OK
b> MGET 1 2 3 4 5 6
b< [nil, nil, nil, nil, nil, nil]
b> PING
b< PONG
b> INFO stats
b< ~~ *tracking_total_keys:7*tracking_total_items:7*
b> CLIENT TRACKING OFF
b< OK
> INFO stats
~~ *tracking_total_keys:7*tracking_total_items:7*
"#,
    );
}
