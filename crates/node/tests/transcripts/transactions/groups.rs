//! A watched stream does not change when consumers read from its groups.

use crate::check::check;

/// Clients that track the key are not notified either.
#[test]
fn readers_of_a_group_do_not_change_a_stream_that_is_watched() {
    check(
        r#"
b> HELLO 3
b< {"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "maste
  r", "modules": []}
b> CLIENT TRACKING ON -> OK
> XADD s 1-1 a b -> "1-1"
> XADD s 1-2 a b -> "1-2"
b> XLEN s -> 2
b> WATCH s -> OK
> XGROUP CREATE s g 0 -> ~~ *
> XREADGROUP GROUP g c COUNT 1 STREAMS s > -> ~~ *
> XREADGROUP GROUP g c COUNT 1 NOACK STREAMS s > -> ~~ *
> XREADGROUP GROUP g new STREAMS s 0 -> ~~ *
> XACK s g 1-1 -> ~~ *
> XGROUP SETID s g 0 -> OK
> XSETID s 1-2 -> ~~ *
> XREADGROUP GROUP g c STREAMS s > -> ~~ *
> XCLAIM s g d 0 1-2 -> ~~ *
> XAUTOCLAIM s g e 0 0 -> ~~ *
> XGROUP CREATECONSUMER s g f -> ~~ *
> XGROUP DELCONSUMER s g c -> ~~ *
> XGROUP DESTROY s g -> ~~ *
b<
b> MULTI -> OK
b> PING -> QUEUED
b> EXEC -> [PONG]
b> WATCH s -> OK
> XGROUP CREATE t g 0 MKSTREAM -> OK
> XADD s 1-3 a b -> "1-3"
b< >["invalidate", ["s"]]
b> MULTI -> OK
b> EXEC -> nil
"#,
    );
}
