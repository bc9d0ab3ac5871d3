//! OPTIN and OPTOUT: what CLIENT CACHING announces.

use crate::check::check;

#[test]
fn only_what_is_announced_is_remembered_of_who_opts_in() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTIN
b< OK
b> GET k
b< nil
> SET k 1
OK
b<
b> CLIENT CACHING YES
b< OK
b> GET k
b< "1"
b> GET l
b< nil
> MSET k 2 l 2
OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING YES
b< OK
b> CLIENT ID
b< 1
b> GET k
b< "2"
> SET k 3
OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING YES
b< OK
b> PING
b< PONG
b> GET k
b< "3"
> SET k 3
OK
b<
"#,
    );
}

#[test]
fn what_is_announced_before_a_transaction_counts_for_all_of_it() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTIN
b< OK
b> CLIENT CACHING YES
b< OK
b> MULTI
b< OK
b> GET k
b< QUEUED
b> GET l
b< QUEUED
b> EXEC
b< [nil, nil]
> SET k 1
OK
b< >["invalidate", ["k"]]
> SET l 1
OK
b< >["invalidate", ["l"]]
b> MULTI
b< OK
b> GET k
b< QUEUED
b> CLIENT CACHING YES
b< QUEUED
b> GET l
b< QUEUED
b> GET m
b< QUEUED
b> EXEC
b< ["1", OK, "1", nil]
> MSET k 1 l 1 m 1
OK
b< >["invalidate", ["l"]] >["invalidate", ["m"]]
b> GET k
b< "1"
> SET k 1
OK
b<
"#,
    );
}

#[test]
fn what_is_announced_is_not_remembered_of_who_opts_out() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON OPTOUT
b< OK
b> GET k
b< nil
> SET k 1
OK
b< >["invalidate", ["k"]]
b> CLIENT CACHING NO
b< OK
b> GET k
b< "1"
b> GET l
b< nil
> MSET k 2 l 2
OK
b< >["invalidate", ["l"]]
"#,
    );
}
