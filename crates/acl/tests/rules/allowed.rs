//! Tests of the requests that users may run.

use acl::Denied::{self, Channel, Command, Key, Option};
use acl::{PasswordDigest, User};

use crate::table::{may_run, user};

/// Checks requests of a user with these rules.
#[track_caller]
fn check(rules: &str, expected: &[(&str, Result<(), Denied>)]) {
    let user = user(rules);
    for (request, expected) in expected {
        assert_eq!(may_run(&user, request), *expected, "{request} by {rules}");
    }
}

const YES: Result<(), Denied> = Ok(());
const NO: Result<(), Denied> = Err(Command);

#[test]
fn commands() {
    check("allkeys", &[("get a", NO), ("auth x", YES), ("config get x", NO)]);
    check("+@all ~*", &[("get a", YES), ("config set x", YES), ("publish c m", Err(Channel(1)))]);
    check("allkeys +get -set", &[("get a", YES), ("set a b", NO), ("mget a", NO)]);
    check("allkeys +@all -@write +set", &[("get a", YES), ("set a b", YES), ("copy a b", NO)]);
    check("allkeys +@all -set -@all", &[("get a", NO)]);
}

#[test]
fn subcommands_and_first_arguments() {
    check("+config", &[("config get x", YES), ("config set x", YES), ("config", YES)]);
    check("+config -config|set", &[("config get x", YES), ("config set x", NO)]);
    check("+config|get", &[("config get x", YES), ("config set x", NO), ("config", NO)]);
    check("+config|get -config", &[("config get x", NO)]);
    // A container includes its subcommands, whatever their own categories are.
    check("+@slow", &[("config get x", YES)]);
    check("+@admin", &[("config get x", YES), ("config", NO)]);
    check(
        "+select|0 +select|A",
        &[("select 0", YES), ("select a", YES), ("select 1", NO), ("select", NO)],
    );
    check("+select|0 -select", &[("select 0", NO)]);
    check("+select|0 +@connection -@connection", &[("select 0", NO)]);
    check("+select -select +select|0", &[("select 0", YES), ("select 1", NO)]);
}

#[test]
fn keys_need_permission_for_their_access() {
    check("+@all ~a*", &[("get a", YES), ("get ab", YES), ("get b", Err(Key(1)))]);
    check("+@all ~a ~b", &[("mget a b a", YES), ("mget a b c a", Err(Key(3)))]);
    check("+@all %R~a", &[("get a", YES), ("set a x", Err(Key(1))), ("strlen a", YES)]);
    check(
        "+@all %W~a",
        &[
            ("get a", Err(Key(1))),
            ("set a x", YES),
            ("set a x get", Err(Key(1))),
            ("strlen a", YES),
            ("strlen b", Err(Key(1))),
        ],
    );
    check("+@all %R~a %W~b", &[("copy a b", YES), ("copy b a", Err(Key(1)))]);
    check("+@all %R~x* %W~*", &[("set xa v get", Err(Key(1)))]);
    check("+@all %R~a %W~a", &[("set a v get", YES)]);
    check("+@all ~", &[("get a", Err(Key(1))), ("get ''", YES)]);
    check("+@all", &[("get a", Err(Key(1))), ("select 0", YES)]);
}

#[test]
fn channels() {
    check("+publish &a*", &[("publish ab m", YES), ("publish b m", Err(Channel(1)))]);
    check("+publish &a &b", &[("publish b m", YES)]);
    check("+publish", &[("publish a m", Err(Channel(1)))]);
    let user = user("&a* (&b)");
    for (channel, is_pattern, expected) in [
        ("ab", false, true),
        ("a*", true, true),
        ("ab", true, false),
        ("b", true, true),
        ("b", false, true),
        ("c", false, false),
    ] {
        assert_eq!(user.allows_channel(channel.as_bytes(), is_pattern), expected, "{channel}");
    }
}

#[test]
fn one_selector_must_allow_a_whole_request() {
    let rules = "+get ~a (+set ~b) (+mget +copy %R~c %W~d)";
    check(
        rules,
        &[
            ("get a", YES),
            ("set b x", YES),
            ("get b", Err(Key(1))),
            ("set a x", Err(Key(1))),
            ("copy c d", YES),
            ("copy a d", Err(Key(1))),
            ("strlen a", NO),
        ],
    );
    check("(%R~a +@all) (%W~b +@all)", &[("copy a b", Err(Key(2)))]);
    // The part that no selector allows is the last of the request.
    check(
        "+mget ~a (+mget ~a ~b)",
        &[("mget b c", Err(Key(2))), ("mget a b c", Err(Key(3))), ("mget c", Err(Key(1)))],
    );
    check("+get ~a (+publish)", &[("publish c m", Err(Channel(1)))]);
}

#[test]
fn an_option_that_reads_any_key() {
    let by = Err(Option("BY"));
    check("(+sort ~l)", &[("sort l", YES), ("sort l by w", YES), ("sort l by w*", by)]);
    check("(+sort ~l ~w*)", &[("sort l by w*", by), ("sort m by w*", Err(Key(1)))]);
    check("(+sort ~l %W~*)", &[("sort l by w*", by)]);
    check("(+sort ~l) (+get ~*)", &[("sort l by w*", by)]);
    check("(+sort ~l) (+sort %R~*)", &[("sort l by w*", YES)]);
    check("+sort ~*", &[("sort l by w*", YES)]);
    check("+sort ~*", &[("sort l nonsense by w*", YES)]);
}

#[test]
fn unrestricted_users_are_recognized() {
    for (rules, expected) in [
        ("+@all ~* &*", true),
        ("(+@all ~* &*)", true),
        ("+@all ~*", false),
        ("+@all -get +get ~* &*", false),
        ("+@all ~* (&*)", false),
        ("+@all %RW~* &*", false),
    ] {
        assert_eq!(user(rules).is_unrestricted(), expected, "{rules}");
    }
}

#[test]
fn authentication() {
    let accepts = |rules: &str, password: &[u8]| user(rules).accepts(&PasswordDigest::of(password));
    assert!(accepts("on >a >b", b"a") && accepts("on >a >b", b"b"));
    assert!(!accepts("on >a", b"") && !accepts("on >a", b"ab") && !accepts("on", b""));
    assert!(accepts("on nopass", b"whatever"));
    assert!(!accepts("off nopass", b"x") && !accepts("off >a", b"a"));
    let binary = user("on \">a\\x00b\"");
    assert!(
        binary.accepts(&PasswordDigest::of(b"a\0b")) && !binary.accepts(&PasswordDigest::of(b"a"))
    );
    let with = User::with_password(&user("on nopass"), b"secret");
    assert!(
        with.accepts(&PasswordDigest::of(b"secret")) && !with.accepts(&PasswordDigest::of(b""))
    );
    assert!(with.with_password(b"").accepts(&PasswordDigest::of(b"anything")));
}
