//! Changes of all keys: flushes and swaps.

use crate::check::check;

#[test]
fn tracking_clients_are_notified_of_flushes() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
c> HELLO 3
c< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
c> CLIENT TRACKING ON BCAST PREFIX x -> OK
d> HELLO 3
d< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 3, "mode": "standalone", "role": "maste
  r", "modules": []}
b> GET k -> nil
> FLUSHALL -> OK
b< >["invalidate", nil]
c< >["invalidate", nil]
d<
> SET k 1 -> OK
b<
b> GET k -> "1"
> SELECT 3 -> OK
> FLUSHDB -> OK
b< >["invalidate", nil]
c< >["invalidate", nil]
> SET k 1 -> OK
b<
b> FLUSHALL ASYNC -> OK >["invalidate", nil]
c< >["invalidate", nil]
b> SET k 1 -> OK
b> GET k -> "1"
b> MULTI -> OK
b> FLUSHDB -> QUEUED
b> GET k -> QUEUED
b> EXEC -> [OK, nil] >["invalidate", nil]
c< >["invalidate", nil]
> SET k 2 -> OK
b< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn tracking_clients_are_notified_of_swaps() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
b> GET k -> nil
> SWAPDB 0 0 -> OK
b<
> SWAPDB 0 1 -> OK
b< >["invalidate", nil]
"#,
    );
}
