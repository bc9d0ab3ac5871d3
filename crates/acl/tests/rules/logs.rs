//! Tests of the log of denials.

use acl::Denied;
use acl::log::{AclEvent, AclLog, DenialOrigin, DenialReason};

fn event(object: &str, user: &str) -> AclEvent {
    AclEvent::new(
        DenialReason::Key,
        object.as_bytes(),
        DenialOrigin::TopLevel,
        user.as_bytes(),
        b"id=1",
    )
}

/// The entries of a log: number, count, object, first and last time.
fn entries(log: &AclLog) -> Vec<(u64, u64, String, i64, i64)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    log.iter()
        .map(|entry| {
            let object = text(entry.event.object());
            (entry.id, entry.count, object, entry.created_ms, entry.updated_ms)
        })
        .collect()
}

#[test]
fn equal_events_within_a_minute_are_one_entry() {
    let mut log = AclLog::default();
    log.push(event("a", "u"), 1000, 9);
    log.push(event("b", "u"), 2000, 9);
    log.push(event("a", "u"), 61_000, 9);
    let (a, b) =
        (|id, count, first, last| (id, count, "a".to_owned(), first, last), "b".to_owned());
    assert_eq!(entries(&log), [a(0, 2, 1000, 61_000), (1, 1, b.clone(), 2000, 2000)]);
    log.push(event("a", "u"), 121_001, 9);
    assert_eq!(entries(&log)[0], a(2, 1, 121_001, 121_001));
    log.push(event("a", "v"), 121_001, 9);
    assert_eq!(entries(&log)[0], a(3, 1, 121_001, 121_001));
    let command = AclEvent::new(DenialReason::Command, b"a", DenialOrigin::TopLevel, b"v", b"id=1");
    log.push(command, 121_001, 9);
    let script = AclEvent::new(DenialReason::Key, b"a", DenialOrigin::Lua, b"v", b"id=1");
    log.push(script, 121_001, 9);
    assert_eq!(log.iter().len(), 6);
    log.clear();
    log.push(event("a", "u"), 0, 9);
    assert_eq!(entries(&log), [a(6, 1, 0, 0)]);
}

#[test]
fn a_log_is_bounded() {
    let mut log = AclLog::default();
    for number in 0..20 {
        log.push(event(&number.to_string(), "u"), 0, 5);
    }
    assert_eq!(log.iter().len(), 5);
    assert_eq!(log.iter().next().unwrap().event.object(), b"19");
    log.push(event(&"k".repeat(1 << 20), &"u".repeat(1 << 20)), 0, 5);
    let event = &log.iter().next().unwrap().event;
    assert_eq!((event.object().len(), event.user().len()), (4096, 4096));
    log.push(event.clone(), 0, 0);
    assert_eq!(log.iter().len(), 0);
}

#[test]
fn an_event_is_compared_with_the_newest_entries() {
    let mut log = AclLog::default();
    for object in ["old", "0", "1", "2", "3", "4", "5", "6", "7", "8"] {
        log.push(event(object, "u"), 0, 99);
    }
    log.push(event("old", "u"), 0, 99);
    assert_eq!(entries(&log)[0].1, 2);
    for object in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        log.push(event(object, "u"), 0, 99);
    }
    log.push(event("old", "u"), 0, 99);
    assert_eq!(entries(&log)[0].1, 1);
}

#[test]
fn a_denial_names_an_argument() {
    assert_eq!(DenialReason::of(Denied::Command), Some((DenialReason::Command, 0)));
    assert_eq!(DenialReason::of(Denied::Key(3)), Some((DenialReason::Key, 3)));
    assert_eq!(DenialReason::of(Denied::Channel(2)), Some((DenialReason::Channel, 2)));
    assert_eq!(DenialReason::of(Denied::Option("BY")), None);
}
