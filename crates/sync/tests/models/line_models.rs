//! Models of the line: nobody uses a descriptor that the owner has closed.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::line::Line;
use crate::{fails, holds};

/// Somebody uses the descriptor while its owner closes it, after ending the line or before.
fn used_and_closed(ends_first: bool) {
    let line = Arc::new(Line::new(7));
    let closed = Arc::new(AtomicBool::new(false));
    let user = {
        let (line, closed) = (Arc::clone(&line), Arc::clone(&closed));
        thread::spawn(move || {
            line.with(|fd| {
                assert_eq!(fd, 7);
                thread::yield_now();
                assert!(!closed.load(Ordering::Relaxed), "it is open while it is used");
            });
        })
    };
    if ends_first {
        line.end();
    }
    closed.store(true, Ordering::Relaxed);
    line.end();
    user.join().expect("it ends");
    line.with(|_| panic!("the line has ended"));
}

#[test]
fn a_descriptor_is_open_while_it_is_used() {
    holds(3, || used_and_closed(true));
}

#[test]
fn closing_before_the_end_of_the_line_is_found() {
    fails("it is open while it is used", 3, || used_and_closed(false));
}
