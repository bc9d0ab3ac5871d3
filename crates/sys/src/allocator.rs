//! The allocator, and what it says about itself.
//!
//! jemalloc is built with 8-byte steps between its small classes (see `.cargo/config.toml`), which
//! saves up to 8 bytes a key. It then aligns a 24-byte block to 8 only, also when 16 were asked
//! for, so sizes are padded to their alignment on the way in.

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

/// What jemalloc counts, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Handed out and not released.
    pub allocated: u64,
    /// In pages that hold something handed out.
    pub active: u64,
    /// In pages that are in memory.
    pub resident: u64,
    /// Kept as address space without memory.
    pub retained: u64,
    /// Used by the allocator itself.
    pub metadata: u64,
    /// In pages that the system may take back and has not yet.
    pub muzzy: u64,
}

/// Fresh statistics of the allocator.
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
    // 4096 names all arenas together in the version of jemalloc in use.
    // SAFETY: both controls hold a size_t, and the names are NUL-terminated.
    let (pages, page_bytes): (usize, usize) = unsafe {
        (ctl::raw::read(b"stats.arenas.4096.pmuzzy\0")?, ctl::raw::read(b"arenas.page\0")?)
    };
    Ok(pages * page_bytes)
}

/// How much a thread has ever been handed out and has given back, where the allocator counts it.
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

/// Bytes that this thread has been handed out by the allocator less those that it has given back,
/// whoever was handed them out: negative for a thread that frees what others have made. The sum
/// over all threads, ended ones too, is what is in use. Costs two reads of the thread's own memory.
#[inline]
pub fn thread_bytes() -> i64 {
    // Once the thread's own memory is gone, which is at its very end, nobody asks.
    let counts = THREAD_COUNTS.try_with(|counts| *counts).ok().flatten();
    counts.map_or(0, |counts| {
        counts.allocated.get().wrapping_sub(counts.deallocated.get()).cast_signed()
    })
}

/// Sets how long unused pages are kept before they return to the system, for every thread. What a
/// growing table leaves behind is then not counted against the data for long.
pub fn set_page_decay_ms(decay_ms: isize) {
    for name in [&b"arenas.dirty_decay_ms\0"[..], b"arena.0.dirty_decay_ms\0"] {
        // SAFETY: both controls take an isize, and the names are NUL-terminated.
        let _ = unsafe { ctl::raw::write(name, decay_ms) };
    }
}

/// Returns all unused pages to the system.
pub fn purge() {
    // 4096 names all arenas together in the version of jemalloc in use.
    // SAFETY: the name is a NUL-terminated control without a value.
    let _ = unsafe { ctl::raw::write(b"arena.4096.purge\0", ()) };
}

/// Returns unused memory of the C library's allocator to the system: that of code in C++, such as
/// the compiler of Luau. Without glibc it does nothing.
pub fn trim_c_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the locks of the heap, and touches no memory that is handed out.
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
    fn blocks_have_the_alignment_they_ask_for() {
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
    fn a_thread_knows_what_it_has_taken_and_given_back() {
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
        // Blocks that the thread keeps for its next allocations count as given back.
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
