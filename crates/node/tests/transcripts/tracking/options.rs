//! The replies of CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO.

use crate::check::check;

#[test]
fn tracking_options_are_set_and_shown() {
    check(
        r#"
> CLIENT TRACKINGINFO -> ["flags", ["off"], "redirect", -1, "prefixes", []]
> CLIENT GETREDIR -> -1
> CLIENT TRACKING ON -> OK
> CLIENT GETREDIR -> 0
> CLIENT TRACKINGINFO -> ["flags", ["on"], "redirect", 0, "prefixes", []]
> CLIENT TRACKING on noloop -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "noloop"], "redirect", 0, "prefixes", []]
> CLIENT TRACKING ON -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on"], "redirect", 0, "prefixes", []]
b> CLIENT ID -> 2
> CLIENT TRACKING ON REDIRECT 2 OPTIN NOLOOP -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "optin", "noloop"], "redirect", 2, "prefixes", []]
> CLIENT GETREDIR -> 2
> CLIENT TRACKING OFF -> OK
> CLIENT TRACKINGINFO -> ["flags", ["off"], "redirect", -1, "prefixes", []]
> CLIENT GETREDIR -> -1
> CLIENT TRACKING OFF -> OK
> CLIENT TRACKING OFF BCAST OPTIN OPTOUT PREFIX x -> OK
> CLIENT TRACKING ON BCAST PREFIX b PREFIX a -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "bcast"], "redirect", 0, "prefixes", ["a", "b"]]
> CLIENT TRACKING ON BCAST PREFIX c NOLOOP -> OK
> CLIENT TRACKINGINFO
["flags", ["on", "bcast", "noloop"], "redirect", 0, "prefixes", ["a", "b", "c"]]
> CLIENT TRACKING ON BCAST -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "bcast"], "redirect", 0, "prefixes", ["", "a", "b", "c"]]
> RESET -> RESET
> CLIENT TRACKINGINFO -> ["flags", ["off"], "redirect", -1, "prefixes", []]
> HELLO 3
{"server": "redis", "version": "8.0.6", "proto": 3, "id": 1, "mode": "standalone", "role": "master",
   "modules": []}
> CLIENT TRACKING ON BCAST -> OK
> CLIENT TRACKINGINFO -> {"flags": ~["on", "bcast"], "redirect": 0, "prefixes": [""]}
"#,
    );
}

#[test]
fn contradicting_options_are_refused() {
    check(
        r#"
> CLIENT TRACKING -> -ERR wrong number of arguments for 'client|tracking' command
> CLIENT TRACKING MAYBE -> -ERR syntax error
> CLIENT TRACKING ON WHATEVER -> -ERR syntax error
> CLIENT TRACKING ON REDIRECT -> -ERR syntax error
> CLIENT TRACKING ON PREFIX -> -ERR syntax error
> CLIENT TRACKING ON REDIRECT x -> -ERR value is not an integer or out of range
> CLIENT TRACKING ON REDIRECT 99 -> -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING ON REDIRECT 0 -> -ERR The client ID you want redirect to does not exist
> CLIENT TRACKING ON REDIRECT -1 -> -ERR The client ID you want redirect to does not exist
b> CLIENT ID -> 2
> CLIENT TRACKING ON REDIRECT 2 REDIRECT 2
-ERR A client can only redirect to a single other client
> CLIENT TRACKING ON PREFIX a -> -ERR PREFIX option requires BCAST mode to be enabled
> CLIENT TRACKING ON OPTIN OPTOUT -> -ERR You can't specify both OPTIN mode and OPTOUT mode
> CLIENT TRACKING ON BCAST OPTIN -> -ERR OPTIN and OPTOUT are not compatible with BCAST
> CLIENT TRACKING ON BCAST OPTOUT -> -ERR OPTIN and OPTOUT are not compatible with BCAST
> CLIENT TRACKING ON BCAST PREFIX foobar PREFIX foo
-ERR Prefix 'foobar' overlaps with another provided prefix 'foo'. Prefixes for a single client must
   not overlap.
> CLIENT TRACKING ON BCAST PREFIX foo PREFIX foobar
-ERR Prefix 'foo' overlaps with another provided prefix 'foobar'. Prefixes for a single client must
   not overlap.
> CLIENT TRACKING ON BCAST PREFIX foo PREFIX foo
-ERR Prefix 'foo' overlaps with another provided prefix 'foo'. Prefixes for a single client must not
   overlap.
> CLIENT TRACKINGINFO -> ["flags", ["off"], "redirect", -1, "prefixes", []]
"#,
    );
}

#[test]
fn options_that_contradict_earlier_ones_are_refused() {
    check(
        r#"
> CLIENT TRACKING ON -> OK
> CLIENT TRACKING ON BCAST
-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabl
  ing it with a different mode.
> CLIENT TRACKING ON OPTIN -> OK
> CLIENT TRACKING ON OPTOUT
-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabl
  ing it with a different mode.
> CLIENT TRACKING ON -> OK
> CLIENT TRACKING ON OPTOUT -> OK
> CLIENT TRACKING ON OPTIN
-ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabl
  ing it with a different mode.
> CLIENT TRACKING OFF -> OK
> CLIENT TRACKING ON BCAST PREFIX foo -> OK
> CLIENT TRACKING ON
-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabl
  ing it with a different mode.
> CLIENT TRACKING ON BCAST PREFIX foobar
-ERR Prefix 'foobar' overlaps with an existing prefix 'foo'. Prefixes for a single client must not o
  verlap.
> CLIENT TRACKING ON BCAST PREFIX fo
-ERR Prefix 'fo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overl
  ap.
> CLIENT TRACKING ON BCAST PREFIX foo
-ERR Prefix 'foo' overlaps with an existing prefix 'foo'. Prefixes for a single client must not over
  lap.
> CLIENT TRACKING ON BCAST PREFIX ""
-ERR Prefix '' overlaps with an existing prefix 'foo'. Prefixes for a single client must not overlap
  .
> CLIENT TRACKINGINFO -> ["flags", ["on", "bcast"], "redirect", 0, "prefixes", ["foo"]]
"#,
    );
}

#[test]
fn client_caching_yes_needs_optin() {
    check(
        r#"
> CLIENT CACHING -> -ERR wrong number of arguments for 'client|caching' command
> CLIENT CACHING YES
-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode
   enabled
> CLIENT CACHING MAYBE
-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode
   enabled
> CLIENT TRACKING ON -> OK
> CLIENT CACHING YES
-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
> CLIENT CACHING NO -> -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
> CLIENT CACHING MAYBE -> -ERR syntax error
> CLIENT TRACKING ON OPTIN -> OK
> CLIENT CACHING NO -> -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
> CLIENT CACHING yes -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "optin", "caching-yes"], "redirect", 0, "prefixes", []]
> PING -> PONG
> CLIENT TRACKINGINFO -> ["flags", ["on", "optin"], "redirect", 0, "prefixes", []]
> CLIENT CACHING YES -> OK
> NOSUCH -> ~~ -ERR unknown command 'NOSUCH', with args beginning with: *
> CLIENT TRACKINGINFO -> ["flags", ["on", "optin"], "redirect", 0, "prefixes", []]
> CLIENT CACHING YES -> OK
> GET -> -ERR wrong number of arguments for 'get' command
> CLIENT TRACKINGINFO -> ["flags", ["on", "optin"], "redirect", 0, "prefixes", []]
"#,
    );
}

#[test]
fn client_caching_no_needs_optout() {
    check(
        r#"
> CLIENT TRACKING ON OPTOUT -> OK
> CLIENT CACHING YES
-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
> CLIENT CACHING no -> OK
> CLIENT TRACKINGINFO -> ["flags", ["on", "optout", "caching-no"], "redirect", 0, "prefixes", []]
> MULTI -> OK
> CLIENT TRACKINGINFO -> QUEUED
> PING -> QUEUED
> CLIENT TRACKINGINFO -> QUEUED
> EXEC
[["flags", ["on", "optout", "caching-no"], "redirect", 0, "prefixes", []], PONG, ["flags", ["on", "o
  ptout", "caching-no"], "redirect", 0, "prefixes", []]]
> CLIENT TRACKINGINFO -> ["flags", ["on", "optout"], "redirect", 0, "prefixes", []]
> CLIENT TRACKINGINFO now -> -ERR wrong number of arguments for 'client|trackinginfo' command
> CLIENT GETREDIR now -> -ERR wrong number of arguments for 'client|getredir' command
> CLIENT CACHING NO now -> -ERR wrong number of arguments for 'client|caching' command
"#,
    );
}

#[test]
fn client_list_shows_tracking() {
    check(
        r#"
b> CLIENT ID -> 1
> CLIENT INFO -> ~~ "*flags=N *redir=-1 *
> CLIENT TRACKING ON -> OK
> CLIENT INFO -> ~~ "*flags=t *redir=0 *
> CLIENT TRACKING OFF -> OK
> CLIENT TRACKING ON BCAST REDIRECT 1 -> OK
> CLIENT INFO -> ~~ "*flags=tB *redir=1 *
b> CLIENT LIST ID 2 -> ~~ "*flags=tB *redir=1 *
> CLIENT TRACKING OFF -> OK
> CLIENT INFO -> ~~ "*flags=N *redir=-1 *
"#,
    );
}
