//! OPTIN and OPTOUT with CLIENT CACHING.

use crate::check::check;

#[test]
fn with_optin_only_announced_reads_are_tracked() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTIN -> OK
b> GET k -> nil
> SET k 1 -> OK
b<
b> CLIENT CACHING YES -> OK
b> GET k -> "1"
b> GET l -> nil
> MSET k 2 l 2 -> OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING YES -> OK
b> CLIENT ID -> 1
b> GET k -> "2"
> SET k 3 -> OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING YES -> OK
b> PING -> PONG
b> GET k -> "3"
> SET k 3 -> OK
b<
"#,
    );
}

#[test]
fn an_announcement_counts_for_a_whole_transaction() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTIN -> OK
b> CLIENT CACHING YES -> OK
b> MULTI -> OK
b> GET k -> QUEUED
b> GET l -> QUEUED
b> EXEC -> [nil, nil]
> SET k 1 -> OK
b< >["invalidate", ["k"]]
> SET l 1 -> OK
b< >["invalidate", ["l"]]
b> MULTI -> OK
b> GET k -> QUEUED
b> CLIENT CACHING YES -> QUEUED
b> GET l -> QUEUED
b> GET m -> QUEUED
b> EXEC -> ["1", OK, "1", nil]
> MSET k 1 l 1 m 1 -> OK
b< >["invalidate", ["l"]] >["invalidate", ["m"]]
b> GET k -> "1"
> SET k 1 -> OK
b<
"#,
    );
}

#[test]
fn with_optout_announced_reads_are_not_tracked() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTOUT -> OK
b> GET k -> nil
> SET k 1 -> OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING NO -> OK
b> GET k -> "1"
b> GET l -> nil
> MSET k 2 l 2 -> OK
b< >["invalidate", ["l"]]
"#,
    );
}
