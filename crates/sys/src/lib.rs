//! Layer 0: safe functions for services of the kernel and the processor.
//!
//! Only this crate and `ds` may contain unsafe code. It has no policy, no protocol and no domain.

pub mod allocator;
pub mod child;
pub mod clock;
pub mod crash;
pub mod epoll;
pub mod eventfd;
pub mod luau;
pub mod process;
pub mod random;
pub mod shared_memory;
pub mod signal;
pub mod socket;
pub mod syslog;
pub mod thread_end;
pub mod title;

/// Prefetches the cache line of `value`.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing.
    unsafe {
        let address = std::ptr::from_ref(value).cast::<i8>();
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// The result of a system call that reports failure as a negative number.
pub(crate) fn check(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
