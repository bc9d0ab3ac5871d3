//! The allocator and its statistics.
//!
//! jemalloc is built with 8-byte steps between its small classes (see `.cargo/config.toml`), which
//! saves up to 8 bytes a key. It then aligns a 24-byte block only to 8, even if the caller asks for
//! 16, so every size is padded to its alignment.

use std::alloc::{GlobalAlloc, Layout};

use tikv_jemalloc_ctl as ctl;
use tikv_jemalloc_ctl::thread::ThreadLocal;
use tikv_jemallocator::Jemalloc;

/// The process's allocator: `#[global_allocator] static A: Allocator = Allocator;`.
pub struct Allocator;

// SAFETY: every call goes to jemalloc with the same padded layout on allocation and release.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises hold for the padded layout as well.
        unsafe { Jemalloc.alloc(layout.pad_to_align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { Jemalloc.alloc_zeroed(layout.pad_to_align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block was allocated with this padded layout.
        unsafe { Jemalloc.dealloc(block, layout.pad_to_align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let padded = size.next_multiple_of(layout.align());
        // SAFETY: as above; padding keeps the new size below isize::MAX, which the caller promised
        // for the size rounded up to the alignment.
        unsafe { Jemalloc.realloc(block, layout.pad_to_align(), padded) }
    }
}

/// The statistics of jemalloc, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Allocated and not freed.
    pub allocated: u64,
    /// In pages with allocated memory.
    pub active: u64,
    /// In resident pages.
    pub resident: u64,
    /// Kept as address space without memory.
    pub retained: u64,
    /// Used by the allocator itself.
    pub metadata: u64,
    /// In pages that the system may reclaim and has not yet.
    pub muzzy: u64,
}

/// Current statistics of the allocator.
pub fn statistics() -> Statistics {
    let _ = ctl::epoch::advance();
    let read = |value: Result<usize, ctl::Error>| value.unwrap_or_default() as u64;
    Statistics {
        allocated: read(ctl::stats::allocated::read()),
        active: read(ctl::stats::active::read()),
        resident: read(ctl::stats::resident::read()),
        retained: read(ctl::stats::retained::read()),
        metadata: read(ctl::stats::metadata::read()),
        muzzy: read(muzzy_bytes()),
    }
}

fn muzzy_bytes() -> Result<usize, ctl::Error> {
    // In this version of jemalloc, 4096 means all arenas.
    // SAFETY: both controls hold a size_t, and the names are NUL-terminated.
    let (pages, page_bytes): (usize, usize) = unsafe {
        (ctl::raw::read(b"stats.arenas.4096.pmuzzy\0")?, ctl::raw::read(b"arenas.page\0")?)
    };
    Ok(pages * page_bytes)
}

/// The addresses of the allocator's counters of the bytes that a thread allocated and freed.
#[derive(Clone, Copy)]
struct ThreadCounts {
    allocated: ThreadLocal<u64>,
    deallocated: ThreadLocal<u64>,
}

thread_local! {
    static THREAD_COUNTS: Option<ThreadCounts> = thread_counts();
}

fn thread_counts() -> Option<ThreadCounts> {
    let allocated = ctl::thread::allocatedp::read().ok()?;
    let deallocated = ctl::thread::deallocatedp::read().ok()?;
    Some(ThreadCounts { allocated, deallocated })
}

/// Bytes that this thread allocated minus the bytes that it freed; negative for a thread that frees
/// memory of other threads. The sum over all threads, including ended ones, is the memory in use.
/// Costs two reads of thread-local memory.
#[inline]
pub fn thread_bytes() -> i64 {
    // No code asks after the end of the thread's local memory.
    let counts = THREAD_COUNTS.try_with(|counts| *counts).ok().flatten();
    counts.map_or(0, |counts| {
        counts.allocated.get().wrapping_sub(counts.deallocated.get()).cast_signed()
    })
}

/// Sets for every thread how long unused pages are kept before they return to the system, so that
/// the old memory of a growing table does not count for long.
pub fn set_page_decay_ms(decay_ms: isize) {
    for name in [&b"arenas.dirty_decay_ms\0"[..], b"arena.0.dirty_decay_ms\0"] {
        // SAFETY: both controls take an isize, and the names are NUL-terminated.
        let _ = unsafe { ctl::raw::write(name, decay_ms) };
    }
}

/// Returns all unused pages to the system.
pub fn purge() {
    // In this version of jemalloc, 4096 means all arenas.
    // SAFETY: the name is a NUL-terminated control without a value.
    let _ = unsafe { ctl::raw::write(b"arena.4096.purge\0", ()) };
}

/// Returns unused memory of the C library's allocator to the system. C++ code such as Luau's
/// compiler uses it. Without glibc this does nothing.
pub fn trim_c_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the locks of the heap, and accesses no allocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Lets jemalloc return unused pages on a background thread instead of on the request path.
pub fn set_background_thread(on: bool) -> bool {
    ctl::background_thread::write(on).is_ok()
}

/// jemalloc's name and version, as INFO prints it.
pub fn version() -> String {
    let text = ctl::version::read().unwrap_or("unknown");
    format!("jemalloc-{}", text.split('-').next().unwrap_or(text))
}

/// jemalloc's own report, as MEMORY MALLOC-STATS prints it.
pub fn report() -> String {
    let mut text = Vec::new();
    match ctl::stats_print::stats_print(&mut text, ctl::stats_print::Options::default()) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    #[test]
    fn blocks_have_the_requested_alignment() {
        let blocks: Vec<u128> = Vec::with_capacity(3);
        assert_eq!(blocks.as_ptr() as usize % 16, 0);
        let mut kept = Vec::new();
        for size in [1usize, 20, 24, 40, 52, 56, 100] {
            for _ in 0..100 {
                let layout = Layout::from_size_align(size, 16).unwrap_or(Layout::new::<u128>());
                // SAFETY: the size is not zero; the block is released below with its layout.
                let block = unsafe { std::alloc::alloc(layout) };
                assert_eq!(block as usize % 16, 0, "{size}");
                kept.push((block, layout));
            }
        }
        for (block, layout) in kept {
            // SAFETY: allocated above with this layout.
            unsafe { std::alloc::dealloc(block, layout) };
        }
    }

    #[test]
    fn a_thread_counts_its_allocated_and_freed_bytes() {
        let before = thread_bytes();
        let block = vec![1u8; 256 << 10];
        let taken = thread_bytes() - before;
        assert!((256 << 10..260 << 10).contains(&taken), "{taken}");
        let given_back = std::thread::spawn(move || {
            let before = thread_bytes();
            drop(block);
            thread_bytes() - before
        });
        assert_eq!(given_back.join().ok(), Some(-taken));
        let small: Vec<Box<u64>> = (0..1000).map(Box::new).collect();
        let held = thread_bytes();
        drop(small);
        // Blocks in the thread's cache count as freed.
        assert!(held - thread_bytes() >= 8 * 1000, "{}", held - thread_bytes());
    }

    #[test]
    fn statistics_follow_allocations() {
        let before = statistics().allocated;
        let block = vec![1u8; 32 << 20];
        let after = statistics().allocated;
        assert!(after >= before + (31 << 20), "{after} after {before}");
        drop(block);
        set_page_decay_ms(1000);
        // SAFETY: the control holds an isize.
        let decay: isize = unsafe { ctl::raw::read(b"arenas.dirty_decay_ms\0") }.unwrap_or(0);
        assert_eq!(decay, 1000);
        purge();
        assert!(version().starts_with("jemalloc-5"));
        assert_eq!(muzzy_bytes().map(|bytes| bytes % 4096), Ok(0));
    }
}
