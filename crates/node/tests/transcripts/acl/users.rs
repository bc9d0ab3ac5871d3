//! Adding, changing, showing and deleting users.

use crate::check::check;

#[test]
fn a_new_user_has_no_permissions() {
    check(
        r#"
> ACL SETUSER alice -> OK
> ACL LIST
["user alice off sanitize-payload resetchannels -@all",
   "user default on nopass sanitize-payload ~* &* +@all"]
> ACL USERS -> ["alice", "default"]
> ACL GETUSER alice
["flags", ["off", "sanitize-payload"], "passwords", [], "commands", "-@all", "keys", "",
   "channels", "", "selectors", []]
> ACL GETUSER nobody -> nil
> HELLO 3 -> ~~ {*
> ACL GETUSER nobody -> nil
> ACL GETUSER default
{"flags": ~["on", "nopass", "sanitize-payload"], "passwords": [], "commands": "+@all",
   "keys": "~*", "channels": "&*", "selectors": []}
"#,
    );
}

#[test]
fn rules_are_shown_as_they_were_given() {
    check(
        r#"
> ACL SETUSER a on >pw %R~r* %W~w* ~rw &c +@all -@dangerous +info -config|set -> OK
> ACL SETUSER a "(+get ~x)" ( +set ~y &* ) (+select|0) -> OK
> ACL GETUSER a
["flags", ["on", "sanitize-payload"], "passwords",
   ["30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4"], "commands",
   "+@all -@dangerous +info -config|set", "keys", "%R~r* %W~w* ~rw", "channels", "&c", "selectors",
   [["commands", "-@all +get", "keys", "~x", "channels", ""],
   ["commands", "-@all +set", "keys", "~y", "channels", "&*"],
   ["commands", "-@all +select|0", "keys", "", "channels", ""]]]
> HELLO 3 -> ~~ {*
> ACL SETUSER b (+get) -> OK
> ACL GETUSER b
{"flags": ~["off", "sanitize-payload"], "passwords": [], "commands": "-@all", "keys": "",
   "channels": "", "selectors": [{"commands": "-@all +get", "keys": "", "channels": ""}]}
> ACL LIST
~~ \["user a on sanitize-payload #* %R~r\* %W~w\* ~rw resetchannels &c +@all -@dangerous +info *
"#,
    );
}

#[test]
fn the_order_of_rules_is_kept() {
    check(
        r#"
> ACL SETUSER u +@all -@hash -@slow +hget -> OK
> ACL SETUSER u -@hash -> OK
> ACL LIST -> ~~ *"user u off sanitize-payload resetchannels +@all -@slow +hget -@hash"]
> ACL SETUSER u -@all +client|list +CLIENT|list +config|get +config +acl|list -acl -> OK
> ACL LIST -> ~~ *"user u off sanitize-payload resetchannels -@all +client|list +config -acl"]
> ACL SETUSER u reset +@HASH +@HaSh +hGeT -@transaction -@scripting -@pubsub -> OK
> ACL LIST -> ~~ *resetchannels -@all +@hash +hget -@transaction -@scripting -@pubsub"]
> ACL SETUSER u reset (%RW~k*) ~a ~b resetkeys ~c ~c %R~c &a &a -> OK
> ACL LIST
~~ *"user u off sanitize-payload ~c resetchannels &a -@all (~k\* resetchannels -@all)"]
"#,
    );
}

#[test]
fn invalid_rules_change_nothing() {
    check(
        r#"
> ACL SETUSER "a b" -> -ERR Usernames can't contain spaces or null characters
> ACL SETUSER "a\x00b" on -> -ERR Usernames can't contain spaces or null characters
> ACL SETUSER u on +nosuch
-ERR Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL
> ACL SETUSER u on +@nosuch
-ERR Error in ACL SETUSER modifier '+@nosuch': Unknown command or category name in ACL
> ACL SETUSER u on nonsense -> -ERR Error in ACL SETUSER modifier 'nonsense': Syntax error
> ACL SETUSER u on %X~a -> -ERR Error in ACL SETUSER modifier '%X~a': Syntax error
> ACL SETUSER u ~* ~a
-ERR Error in ACL SETUSER modifier '~a': Adding a pattern after the * pattern (or the 'allkeys'
   flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of
   patterns
> ACL SETUSER u &* &a
-ERR Error in ACL SETUSER modifier '&a': Adding a pattern after the * pattern (or the 'allchannels'
   flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list
   of channels
> ACL SETUSER u <pw
-ERR Error in ACL SETUSER modifier '<pw': The password you are trying to remove from the user does
   not exist
> ACL SETUSER u #abc
-ERR Error in ACL SETUSER modifier '#abc': The password hash must be exactly 64 characters and
   contain only lowercase hexadecimal characters
> ACL SETUSER u +config|get|x
-ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not
   supported
> ACL SETUSER u on (+get (+set -> -ERR Unmatched parenthesis in acl selector starting at '(+get'.
> ACL SETUSER u (+get +nosuch )
-ERR Error in ACL SETUSER modifier '(+get +nosuch )': Unknown command or category name in ACL
> ACL SETUSER u (on) -> -ERR Error in ACL SETUSER modifier '(on)': Syntax error
> ACL SETUSER u ) -> -ERR Error in ACL SETUSER modifier ')': Syntax error
> ACL GETUSER u -> nil
"#,
    );
}

#[test]
fn users_are_deleted() {
    check(
        r#"
> ACL SETUSER u on nopass -> OK
> ACL SETUSER v -> OK
> ACL DELUSER u nobody u v -> 2
> ACL USERS -> ["default"]
> ACL DELUSER default -> -ERR The 'default' user cannot be removed
> ACL SETUSER u -> OK
> ACL DELUSER u default -> -ERR The 'default' user cannot be removed
> ACL USERS -> ["default", "u"]
> ACL DELUSER -> -ERR wrong number of arguments for 'acl|deluser' command
"#,
    );
}

#[test]
fn channels_of_new_users_follow_the_configuration() {
    check(
        r#"
> CONFIG GET acl-pubsub-default -> ["acl-pubsub-default", "resetchannels"]
> ACL SETUSER before -> OK
> CONFIG SET acl-pubsub-default allchannels -> OK
> ACL SETUSER behind () -> OK
> ACL SETUSER behind &a
~~ -ERR Error in ACL SETUSER modifier '&a': Adding a pattern after the \* pattern*
> ACL SETUSER other resetchannels &a reset -> OK
> ACL LIST
["user before off sanitize-payload resetchannels -@all",
   "user behind off sanitize-payload &* -@all (&* -@all)",
   "user default on nopass sanitize-payload ~* &* +@all",
   "user other off sanitize-payload &* -@all"]
> CONFIG SET acl-pubsub-default nonsense
-ERR CONFIG SET failed (possibly related to argument 'acl-pubsub-default') - argument(s) must be
   one of the following: allchannels, resetchannels
"#,
    );
}
