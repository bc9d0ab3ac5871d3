//! What threads give back of memory while they end, after their own last look at their counts.
//!
//! A thread frees the rest of what it was started with when its function has returned: the box of
//! its closure, the place of its result, its name, and the values that are its own. Its counts go
//! with it, so what it frees then is added up here, for whoever counts the memory in use.
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

/// Rounds in which the destructor runs. Those of other keys, which may free memory, have run when
/// the last one begins; the system makes at least four.
const ROUNDS: usize = 3;

/// Bytes that threads have taken after their last looks, less those that they gave back, as far as
/// nobody has been told.
static REST_BYTES: AtomicI64 = AtomicI64::new(0);

static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

thread_local! {
    /// What is counted for this thread by now. It has no destructor, so it is there to the end.
    static COUNTED_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The calling thread ends, and is counted with so many bytes, what [`thread_bytes`] has told:
/// what it takes and gives back from here on comes to [`take_rest`].
pub fn count_rest(counted_bytes: i64) {
    COUNTED_BYTES.set(counted_bytes);
    if let Some(key) = *KEY.get_or_init(new_key) {
        begin_round(key, ROUNDS);
    }
}

/// The bytes that ended threads have taken less those that they have given back after they were
/// counted, as far as this has not told them before.
pub fn take_rest() -> i64 {
    if REST_BYTES.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    REST_BYTES.swap(0, Ordering::Relaxed)
}

fn new_key() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: the key is written to a variable that lives, and the destructor is a function of the
    // program, which is never unloaded.
    let result = unsafe { libc::pthread_key_create(&raw mut key, Some(end_round)) };
    (result == 0).then_some(key)
}

/// Has the destructor run in the next round; `rounds` with that one are left.
fn begin_round(key: libc::pthread_key_t, rounds: usize) {
    // SAFETY: the key was made and is never deleted; the value is a number that nobody follows.
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

    /// A value of a thread, which is freed when the thread has returned.
    const VALUE_BYTES: usize = 100_000;

    thread_local! {
        static VALUE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn what_ending_threads_free_is_told_to_the_byte() {
        let before = thread_bytes();
        let counted: i64 = (0..20)
            .map(|number| {
                let moved = vec![7u8; 3000 + number];
                let thread = std::thread::Builder::new().name(format!("ends-{number}"));
                let work = move || {
                    VALUE.set(vec![1; VALUE_BYTES]);
                    let bytes = thread_bytes() + i64::from(moved[0]) - 7;
                    count_rest(bytes);
                    // It goes with the closure.
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
