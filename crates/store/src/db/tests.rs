//! Tests of the side effects of each kind of lookup.
#![allow(clippy::unwrap_used)]

use base::hash::KeyHasher;

use super::*;
use crate::new::string::NewString;
use crate::value::string::StringValue;

const START_MS: i64 = 1_000_000;

/// A database with a key set 5 seconds ago that expires at the end of this millisecond.
fn database() -> (Db, Turn) {
    let mut turn = Turn::alone(KeyHasher::new(1));
    turn.set_time(START_MS * 1000);
    let mut db = Db::default();
    let key = turn.key(b"k");
    let expires_at = ExpiryChange::At(START_MS + 5000);
    db.put(&mut turn, key, NewString::Integer(7), expires_at);
    turn.set_time((START_MS + 5000) * 1000);
    (db, turn)
}

#[test]
fn lookups_differ_in_what_they_count_and_touch() {
    for (mode, hits, idle) in [(Lookup::Read, 1, 0), (Lookup::NoTouch, 1, 5), (Lookup::Quiet, 0, 5)]
    {
        let (mut db, mut turn) = database();
        let (key, absent) = (turn.key(b"k"), turn.key(b"absent"));
        assert!(db.lookup(&mut turn, absent, mode).is_none());
        assert!(db.lookup(&mut turn, key, mode).is_some());
        assert_eq!((turn.counters.hits, turn.counters.misses), (hits, hits), "{mode:?}");
        assert_eq!(
            db.lookup_shared(&turn, key).unwrap().idle_seconds(&turn),
            Some(idle),
            "{mode:?}"
        );
    }
    let (mut db, mut turn) = database();
    turn.touch = false;
    let key = turn.key(b"k");
    assert!(db.read::<StringValue>(&mut turn, key).unwrap().is_some());
    assert_eq!(turn.counters.hits, 1);
    assert_eq!(db.lookup_shared(&turn, key).unwrap().idle_seconds(&turn), Some(5));
}

#[test]
fn no_lookup_returns_an_expired_key() {
    for mode in [Lookup::Read, Lookup::NoTouch, Lookup::Quiet] {
        let (mut db, mut turn) = database();
        turn.set_time((START_MS + 5001) * 1000);
        let key = turn.key(b"k");
        turn.keep_expired = true;
        assert!(db.lookup(&mut turn, key, mode).is_none());
        assert!(db.lookup_shared(&turn, key).is_none());
        assert_eq!((db.len(), turn.counters.expired), (1, 0));
        turn.keep_expired = false;
        assert!(db.lookup_shared(&turn, key).is_none());
        assert_eq!((db.len(), turn.counters.expired), (1, 0));
        assert!(db.lookup(&mut turn, key, mode).is_none());
        assert_eq!((db.len(), turn.counters.expired), (0, 1), "{mode:?}");
    }
}
