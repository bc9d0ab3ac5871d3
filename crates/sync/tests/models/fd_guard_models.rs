//! Models of the guard: no thread uses a descriptor that the owner has closed.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::fd_guard::FdGuard;
use crate::{fails, holds};

/// A thread uses the descriptor while its owner closes it, after ending the guard or before.
fn used_and_closed(ends_first: bool) {
    let fd_guard = Arc::new(FdGuard::new(7));
    let closed = Arc::new(AtomicBool::new(false));
    let user = {
        let (fd_guard, closed) = (Arc::clone(&fd_guard), Arc::clone(&closed));
        thread::spawn(move || {
            fd_guard.with(|fd| {
                assert_eq!(fd, 7);
                thread::yield_now();
                assert!(!closed.load(Ordering::Relaxed), "it is open while it is used");
            });
        })
    };
    if ends_first {
        fd_guard.end();
    }
    closed.store(true, Ordering::Relaxed);
    fd_guard.end();
    user.join().expect("it ends");
    fd_guard.with(|_| panic!("the fd_guard has ended"));
}

#[test]
fn a_descriptor_is_open_while_it_is_used() {
    holds(3, || used_and_closed(true));
}

#[test]
fn closing_before_the_end_of_the_line_is_found() {
    fails("it is open while it is used", 3, || used_and_closed(false));
}
