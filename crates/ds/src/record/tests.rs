//! Tests each change of each part of a record.

use super::*;
use std::sync::Arc;

type Plain = Record<Arc<Vec<u8>>>;

#[test]
fn a_small_pair_takes_its_class() {
    let record = Plain::new(&[b'k'; 16], 3, Payload::Bytes(&[b'v'; 32]), None, 7);
    assert_eq!(record.view().allocated_bytes(), 56);
    assert_eq!(
        (record.view().kind(), record.view().access_clock(), record.view().expires_at()),
        (3, 7, None)
    );
    assert_eq!(class_bytes(65), 80);
    assert_eq!(class_bytes(128), 128);
    assert_eq!(class_bytes(129), 160);
}

#[test]
fn every_part_survives_every_change() {
    for key_len in [0usize, 1, 16, 4095, 4096, 70_000] {
        let key = vec![b'k'; key_len];
        for len in [0usize, 1, 8, 300, (1 << 20) - 1, 1 << 20] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut record = Plain::new(&key, 1, Payload::Bytes(&value), None, 0xabcdef);
            record.set_expires_at(Some(-5));
            assert_eq!((record.view().key(), record.view().bytes()), (&key[..], Some(&value[..])));
            assert_eq!(
                (record.view().expires_at(), record.view().access_clock()),
                (Some(-5), 0xabcdef)
            );
            record.set_bytes(2, b"short");
            assert_eq!(
                (record.view().bytes(), record.view().expires_at()),
                (Some(&b"short"[..]), Some(-5))
            );
            record.resize_bytes(2, len + 5);
            let own = record.view().bytes().map(<[u8]>::to_vec);
            assert!(own.is_some_and(
                |own| own.starts_with(b"short") && own[5..].iter().all(|b| *b == 0)
            ));
            record.set_expires_at(None);
            assert_eq!(
                (record.view().key(), record.view().expires_at(), record.view().kind()),
                (&key[..], None, 2)
            );
        }
    }
}

#[test]
fn objects_are_dropped_once() {
    let object = Arc::new(vec![1u8]);
    let mut record = Plain::new(b"key", 4, Payload::Object(object.clone()), Some(9), 1);
    assert_eq!(Arc::strong_count(&object), 2);
    record.set_expires_at(None);
    record.set_access_clock(5);
    assert_eq!(record.view().object().map(|o| o.len()), Some(1));
    assert!(record.view().bytes().is_none());
    record.set_bytes(0, b"text");
    assert_eq!(Arc::strong_count(&object), 1);
    assert!(record.set_object(4, object.clone()).is_none());
    assert!(record.set_object(4, object.clone()).is_some());
    assert_eq!(Arc::strong_count(&object), 2);
    assert_eq!(
        (record.view().key(), record.view().access_clock(), record.view().kind()),
        (&b"key"[..], 5, 4)
    );
    drop(record.into_object());
    assert_eq!(Arc::strong_count(&object), 1);
}
