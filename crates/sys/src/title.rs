//! The command line of the process in `ps`.
//!
//! The kernel reads it from the memory of the process where it stored the arguments at start. If
//! the last byte of the arguments is not zero, it continues into the environment after them.
//!
//! ```text
//!   start                 arg_end = env_start         env_end
//!   | weft\0server\0...   | PATH=...\0HOME=...\0      |
//!   | title, then zeros .............................0|
//! ```

use std::ffi::{CStr, c_char};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// The environment's texts, ended by a null pointer.
    static mut environ: *mut *mut c_char;
}

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The memory of the arguments and the environment.
#[derive(Debug)]
pub struct ProcessTitle {
    start: usize,
    len: usize,
}

impl ProcessTitle {
    /// Takes the memory of the arguments and of the environment, which it copies elsewhere. Call it
    /// once, before any thread starts, and do not read the process's arguments afterwards.
    ///
    /// # Errors
    /// If the kernel does not report where the memory is, or it was taken before.
    pub fn take() -> io::Result<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let [start, arg_end, env_start, env_end] =
            memory(&stat).ok_or_else(|| io::Error::other("/proc/self/stat has an unknown form"))?;
        if IS_TAKEN.swap(true, Ordering::Relaxed) {
            return Err(io::Error::other("the memory of the arguments is taken"));
        }
        let end = if arg_end == env_start {
            move_environment()?;
            env_end
        } else {
            arg_end
        };
        Ok(Self { start, len: end - start })
    }

    /// Shows a title instead of the arguments, cut to the room that there is.
    pub fn set(&mut self, title: &[u8]) {
        // The last byte stays zero.
        let len = title.len().min(self.len.saturating_sub(1));
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.start);
        // SAFETY: the kernel put `len` writable bytes here, which exist as long as the process.
        // Only the one owner of this value writes to them, and no code in the process reads them:
        // std has copied the arguments, and the environment has moved.
        unsafe {
            std::ptr::copy_nonoverlapping(title.as_ptr(), start, len);
            std::ptr::write_bytes(start.add(len), 0, self.len - len);
        }
    }
}

/// The start and end of the arguments and of the environment, fields 48 to 51 in proc(5).
fn memory(stat: &str) -> Option<[usize; 4]> {
    // The program's name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(48 - 3);
    let mut ends = [0; 4];
    for end in &mut ends {
        *end = fields.next()?.parse().ok()?;
    }
    let [start, arg_end, env_start, env_end] = ends;
    let in_order = start < arg_end && arg_end <= env_start && env_start <= env_end;
    (in_order && start != 0).then_some(ends)
}

/// Replaces the texts of the environment with copies that are never freed.
fn move_environment() -> io::Result<()> {
    // SAFETY: no other thread exists yet that could use the list, which ends with a null pointer;
    // its texts are NUL-terminated.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let copy = libc::strdup(CStr::from_ptr(*entry).as_ptr());
            if copy.is_null() {
                return Err(io::Error::last_os_error());
            }
            *entry = copy;
            entry = entry.add(1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn the_range_of_the_arguments_is_read_from_stat() {
        let before: String = (3..48).map(|field| format!("{field} ")).collect();
        let stat = |ends: &str| format!("7 (a) (b) c) {before}{ends} 0\n");
        assert_eq!(memory(&stat("100 120 120 200")), Some([100, 120, 120, 200]));
        for wrong in ["0 0 0 0", "100 90 120 200", "100 120 110 200", "1 2 3", "a 2 3 4", ""] {
            assert_eq!(memory(&stat(wrong)), None, "{wrong}");
        }
    }
}
