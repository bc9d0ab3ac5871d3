//! Which user remains the same after a change, and which only has the same name.

use std::sync::Arc;

use acl::{DEFAULT_USER, RuleContext, Users};

use crate::table::commands;

#[test]
fn a_user_added_again_is_another_user() {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: true };
    let mut users = Users::new(context);
    users.set(b"u", &["on"], context).unwrap();
    let name = Arc::clone(users.find(b"u").unwrap().name());
    users.set(b"u", &["off"], context).unwrap();
    assert!(users.find_same(&name).is_some_and(|user| !user.is_enabled()));
    let mut loaded = Users::new(context);
    loaded.set(b"u", &["on"], context).unwrap();
    assert!(loaded.find_same(&name).is_none());
    loaded.follow(&users);
    assert!(loaded.find_same(&name).is_some_and(|user| user.is_enabled()));
    assert!(users.remove(b"u"));
    users.set(b"u", &["on"], context).unwrap();
    assert!(users.find(b"u").is_some() && users.find_same(&name).is_none());
    assert!(users.find_same(&DEFAULT_USER.into()).is_some());
}
