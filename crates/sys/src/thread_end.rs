//! Counts the memory that threads free while they end, after the last reading of their counters.
//!
//! After its function has returned, a thread frees the rest of its memory: the box of its closure,
//! the place of its result, its name, and its thread-local values. Its counters end with it, so
//! this module sums these bytes for the count of memory in use.
//!
//! ```text
//!   function returns    values of the thread    destructors of keys, some rounds
//!   ----------|-------------------|-----------------------|--------> gone
//!   count_rest                              adds to the rest of all
//! ```

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::allocator::thread_bytes;

/// Rounds in which the destructor runs. Before the last round, the destructors of other keys, which
/// may free memory, have run. The system makes at least four rounds.
const ROUNDS: usize = 3;

/// Bytes that threads allocated minus those that they freed after they were counted, and that
/// [`take_rest`] has not returned yet.
static REST_BYTES: AtomicI64 = AtomicI64::new(0);

static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

thread_local! {
    /// The bytes counted for this thread so far. It has no destructor, so it exists to the end.
    static COUNTED_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Call it when the calling thread ends, with the value of [`thread_bytes`] that counts for it:
/// [`take_rest`] returns the bytes that it allocates and frees from now on.
pub fn count_rest(counted_bytes: i64) {
    COUNTED_BYTES.set(counted_bytes);
    if let Some(key) = *KEY.get_or_init(new_key) {
        begin_round(key, ROUNDS);
    }
}

/// The bytes that ended threads allocated minus those that they freed after they were counted. Each
/// byte is returned once.
pub fn take_rest() -> i64 {
    if REST_BYTES.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    REST_BYTES.swap(0, Ordering::Relaxed)
}

fn new_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: the key is written to a live variable, and the destructor is a function of the
    // program, which is never unloaded.
    let result = unsafe { libc::pthread_key_create(&raw mut key, Some(end_round)) };
    (result == 0).then_some(key)
}

/// Makes the destructor run in the next round; `rounds` are left, including that one.
fn begin_round(key: libc::pthread_key_t, rounds: usize) {
    // SAFETY: the key exists and is never deleted; the value is a number, not a pointer in use.
    let _ = unsafe { libc::pthread_setspecific(key, without_provenance_mut::<c_void>(rounds)) };
}

extern "C" fn end_round(rounds: *mut c_void) {
    let now = thread_bytes();
    REST_BYTES.fetch_add(now - COUNTED_BYTES.replace(now), Ordering::Relaxed);
    let left = rounds.addr().saturating_sub(1);
    if let (1.., Some(Some(key))) = (left, KEY.get()) {
        begin_round(*key, left);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A thread-local value, which is freed after the thread's function has returned.
    const VALUE_BYTES: usize = 100_000;

    thread_local! {
        static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn bytes_that_ending_threads_free_are_counted_exactly() {
        let before = thread_bytes();
        let counted: i64 = (0..20)
            .map(|number| {
                let moved = vec![7u8; 3000 + number];
                let thread = std::thread::Builder::new().name(format!("ends-{number}"));
                let work = move || {
                    VALUE.set(vec![1; VALUE_BYTES]);
                    let bytes = thread_bytes() + i64::from(moved[0]) - 7;
                    count_rest(bytes);
                    // It is freed with the closure.
                    drop(moved);
                    bytes
                };
                thread.spawn(work).unwrap().join().unwrap()
            })
            .sum();
        let taken = thread_bytes() - before;
        let rest = take_rest();
        assert!(rest < -20 * (VALUE_BYTES as i64), "{rest}");
        assert_eq!(taken + counted + rest, 0, "{taken} {counted} {rest}");
        assert_eq!(take_rest(), 0);
    }
}
