//! Files of users, which are read as a whole or not at all.

use acl::{RuleContext, Users, file};
use base::quote::split_args;

use crate::table::commands;

fn read(text: &str) -> Result<Users, String> {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let users = file::read(text.as_bytes(), "users.acl", context);
    users.map_err(|error| String::from_utf8(error).unwrap())
}

/// Checks the lines of a file after reading and rewriting it.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let users = read(text).unwrap();
    let written = String::from_utf8(file::write(&users)).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), expected, "{text}");
    let again = read(&written).unwrap();
    assert_eq!(String::from_utf8(file::write(&again)).unwrap(), written);
}

#[track_caller]
fn refused(text: &str, errors: &str) {
    let end = "WARNING: ACL errors detected, no change to the previously active ACL rules was \
               performed";
    assert_eq!(read(text).err(), Some(format!("{errors}{end}")), "{text}");
}

const DEFAULT: &str = "user default on nopass sanitize-payload ~* &* +@all";
const ALICE: &str = "user alice off sanitize-payload ~a resetchannels -@all +get";

#[test]
fn users_of_files() {
    check("", &[DEFAULT]);
    check("\n  \r\n\t\n", &[DEFAULT]);
    check("user alice +get ~a", &[ALICE, DEFAULT]);
    check(
        " \tuser alice  +get\t ~a\r\nuser default on",
        &[ALICE, "user default on sanitize-payload resetchannels -@all"],
    );
    check(
        "user alice (+get ~a) ( +set ~b )",
        &[
            "user alice off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) \
         (~b resetchannels -@all +set)",
            DEFAULT,
        ],
    );
    check("user \"q\" ~\"", &["user \"q\" off sanitize-payload ~\" resetchannels -@all", DEFAULT]);
}

#[test]
fn files_with_errors() {
    let user = "should start with user keyword followed by the username. ";
    refused("# comment", &format!("users.acl:1 {user}"));
    refused("\nUSER alice", &format!("users.acl:2 {user}"));
    refused("user", &format!("users.acl:1 {user}"));
    refused("user a\tb on", "'users.acl:1: username 'a\tb' contains invalid characters. ");
    let duplicate = "WARNING: Duplicate user 'alice' found on line 2. ";
    refused("user alice on\nuser alice off", duplicate);
    let duplicate = "WARNING: Duplicate user 'default' found on line 3. ";
    refused("user default on\nuser alice on\nuser default off", duplicate);
    refused(
        "user alice on +nosuch",
        "users.acl:1: Error in applying operation '+nosuch': Unknown command or category name in \
         ACL. ",
    );
    refused(
        "user alice #secret #other nonsense",
        "users.acl:1: The password hash must be exactly \
         64 characters and contain only lowercase hexadecimal characters. ",
    );
    refused("user alice (+get", "users.acl:1: Unmatched parenthesis in selector definition.");
    refused(
        "user alice nonsense +nosuch\nuser bob\nuser bob\nx",
        &format!(
            "users.acl:1: Syntax error. users.acl:1: Error in applying operation '+nosuch': \
             Unknown command or category name in ACL. WARNING: Duplicate user 'bob' found on line \
             3. users.acl:4 {user}"
        ),
    );
}

#[test]
fn users_by_name() {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let mut users = Users::new(context);
    assert!(users.default_user().is_unrestricted());
    users.set(b"alice", &["on"], context).unwrap();
    users.set(b"alice", &["+get"], context).unwrap();
    assert!(users.set(b"bob", &["nonsense"], context).is_err());
    assert!(users.find(b"bob").is_none());
    assert_eq!(
        users.find(b"alice").unwrap().line(),
        b"user alice on sanitize-payload resetchannels -@all +get"
    );
    users.set(b"default", &["-get"], context).unwrap();
    assert!(!users.default_user().is_unrestricted());
    assert!(!users.remove(b"default") && !users.remove(b"bob") && users.remove(b"alice"));
    assert_eq!(users.iter().len(), 1);
}

#[test]
fn lines_of_configuration_files_are_quoted_where_necessary() {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let mut users = Users::new(context);
    let words: [&[u8]; 4] = [b"on", b"~\"a", b"~b\\", b"(~c' +get)"];
    users.add_new(b"x\"y", &words, context).unwrap();
    users.add_new(b"", &["+get"], context).unwrap();
    for user in users.iter() {
        let line = user.config_line();
        let read = split_args(&line).expect("quotes are closed");
        let again = acl::User::new(&read[1], context).edited(&read[2..], context).unwrap();
        assert_eq!(again.line(), user.line(), "{}", String::from_utf8_lossy(&line));
    }
    assert_eq!(
        users.find(b"").unwrap().config_line(),
        b"user \"\" off sanitize-payload resetchannels -@all +get"
    );
}
