//! What changes all keys.

use crate::check::check;

#[test]
fn those_who_track_are_told_that_all_keys_have_changed() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON
b< OK
c> HELLO 3
c< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 2, "mode": "standalone", "role": "maste
  r", "modules": []}
c> CLIENT TRACKING ON BCAST PREFIX x
c< OK
d> HELLO 3
d< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 3, "mode": "standalone", "role": "maste
  r", "modules": []}
b> GET k
b< nil
> FLUSHALL
OK
b< >["invalidate", nil]
c< >["invalidate", nil]
d<
> SET k 1
OK
b<
b> GET k
b< "1"
> SELECT 3
OK
> FLUSHDB
OK
b< >["invalidate", nil]
c< >["invalidate", nil]
> SET k 1
OK
b<
b> FLUSHALL ASYNC
b< OK >["invalidate", nil]
c< >["invalidate", nil]
b> SET k 1
b< OK
b> GET k
b< "1"
b> MULTI
b< OK
b> FLUSHDB
b< QUEUED
b> GET k
b< QUEUED
b> EXEC
b< [OK, nil] >["invalidate", nil]
c< >["invalidate", nil]
> SET k 2
OK
b< >["invalidate", ["k"]]
"#,
    );
}

#[test]
fn those_who_track_are_told_that_databases_were_swapped() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON
b< OK
b> GET k
b< nil
> SWAPDB 0 0
OK
b<
> SWAPDB 0 1
OK
b< >["invalidate", nil]
"#,
    );
}
