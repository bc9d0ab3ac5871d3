//! tracking-table-max-keys.

use crate::check::check;

#[test]
fn keys_above_the_limit_are_dropped_and_notified() {
    check(
        r#"
> CONFIG GET tracking-table-max-keys -> ["tracking-table-max-keys", "1000000"]
> CONFIG SET tracking-table-max-keys 1 -> OK
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> GET k -> nil
b> GET k -> nil
b> INFO stats -> ~~ *tracking_total_keys:1*tracking_total_items:1*
b> GET l -> nil
b> PING -> ~~ >?"invalidate", ?"?"]] PONG
b> INFO stats -> ~~ *tracking_total_keys:1*tracking_total_items:1*
> CONFIG SET tracking-table-max-keys 0 -> OK
b> MGET 1 2 3 4 5 6 -> [nil, nil, nil, nil, nil, nil]
b> PING -> PONG
b> INFO stats -> ~~ *tracking_total_keys:7*tracking_total_items:7*
b> CLIENT TRACKING OFF -> OK
> INFO stats -> ~~ *tracking_total_keys:7*tracking_total_items:7*
"#,
    );
}
