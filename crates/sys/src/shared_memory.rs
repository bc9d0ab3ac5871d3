//! Memory that several threads write to at once. It may be the contents of a file, which keeps the
//! written bytes after the process is killed (mmap(2), MAP_SHARED).
//!
//! The callers decide which thread writes which bytes. Two threads that access the same bytes at
//! once read or leave unspecified bytes, without other harm: the copies use instructions that the
//! compiler does not analyse, so it assumes nothing about other threads.
//!
//! No process may shorten the file while it is mapped: an access after its end raises SIGBUS.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;
/// Up to this many bytes, vectors copy faster than the one instruction, which is slow to start.
#[cfg(target_arch = "x86_64")]
const VECTOR_BYTES: std::ops::Range<usize> = 16..1024;

/// Mapped memory, initially zero.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to this value until it is dropped, and every access is either atomic
// or a copy that tolerates concurrent accesses.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps the first `bytes` of a file and allocates their blocks, so that a full disk is an error
    /// here.
    ///
    /// # Errors
    /// If the file cannot be extended or mapped.
    pub fn of_file(file: &File, bytes: usize) -> io::Result<Self> {
        let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: no pointers are involved.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
            0 => Self::map(libc::MAP_SHARED, file.as_raw_fd(), bytes),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Maps the first `bytes` of a file that has as many.
    ///
    /// # Errors
    /// If the file is shorter or cannot be mapped.
    pub fn of_whole_file(file: &File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::Error::other("the file is shorter"));
        }
        Self::map(libc::MAP_SHARED, file.as_raw_fd(), bytes)
    }

    /// Maps memory without a file.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        Self::map(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, bytes)
    }

    fn map(flags: libc::c_int, fd: libc::c_int, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses a free address.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, bytes })
            .ok_or_else(|| io::Error::other("the kernel mapped memory at address zero"))
    }

    /// The size in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The first `count` words of 8 bytes, for counters that threads share.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn words(&self, count: usize) -> &[AtomicU64] {
        assert!(count <= self.bytes / 8, "the words are within the memory");
        // SAFETY: a mapping starts at a page, so words are aligned. They are within the mapping, as
        // was just checked, and live as long. Atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast::<AtomicU64>(), count) }
    }

    /// The address of an offset.
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(fits, "the bytes are within the memory");
        // SAFETY: the offset is within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Writes bytes.
    ///
    /// # Panics
    /// If they exceed the memory.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: both sides have so many bytes, and a slice is not in the mapping.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Reads bytes.
    ///
    /// # Panics
    /// If they exceed the memory.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.at(offset, bytes.len());
        // SAFETY: both sides have so many bytes, and a slice is not in the mapping.
        unsafe { copy(from, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Prefetches bytes for writing into the processor's cache.
    ///
    /// # Panics
    /// If they exceed the memory.
    #[inline]
    pub fn prefetch(&self, offset: usize, bytes: usize) {
        let from = self.at(offset, bytes);
        for line in (0..bytes).step_by(CACHE_LINE) {
            // SAFETY: the offset is within the mapping.
            let line = unsafe { from.add(line) };
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch reads and writes nothing.
            unsafe {
                std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        }
    }

    /// Writes zeros.
    ///
    /// # Panics
    /// If they exceed the memory.
    pub fn clear(&self, offset: usize, bytes: usize) {
        let to = self.at(offset, bytes);
        // SAFETY: so many bytes are within the mapping.
        unsafe { clear(to, bytes) }
    }

    /// Writes bytes of the memory to a file. Returns how many were written, which may be fewer.
    ///
    /// # Errors
    /// Those of write(2).
    ///
    /// # Panics
    /// If they exceed the memory.
    pub fn write_to(&self, file: &File, offset: usize, bytes: usize) -> io::Result<usize> {
        let from = self.at(offset, bytes);
        // SAFETY: so many bytes are within the mapping; the kernel copies them.
        let written = unsafe { libc::write(file.as_raw_fd(), from.cast(), bytes) };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: no borrow of the memory remains, and it was mapped with this length.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Copies bytes.
///
/// # Safety
/// Both sides have so many bytes, and do not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if VECTOR_BYTES.contains(&bytes) {
        // SAFETY: by the caller's promise; there are at least the bytes of one vector.
        return unsafe { copy_vectors(from, to, bytes) };
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller promises that the bytes exist; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for at in 0..bytes {
        use std::sync::atomic::{AtomicU8, Ordering};
        // SAFETY: the caller promises that the bytes exist; atomics of a byte are always aligned.
        unsafe {
            let byte = AtomicU8::from_ptr(from.add(at).cast_mut()).load(Ordering::Relaxed);
            AtomicU8::from_ptr(to.add(at)).store(byte, Ordering::Relaxed);
        }
    }
}

/// Copies bytes in vectors of 16; the last one may overlap the previous one.
///
/// # Safety
/// Both sides have so many bytes, at least 16, and do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_vectors(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: vectors at 0, 16, ... are copied while they start before the last one, which ends
    // with the bytes.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {vector}, [{from} + {at}]",
            "movups [{to} + {at}], {vector}",
            "add {at}, 16",
            "cmp {at}, {last}",
            "jb 2b",
            "movups {vector}, [{from} + {last}]",
            "movups [{to} + {last}], {vector}",
            from = in(reg) from,
            to = in(reg) to,
            last = in(reg) bytes - 16,
            at = inout(reg) 0usize => _,
            vector = out(xmm_reg) _,
            options(nostack)
        );
    }
}

/// Writes zeros.
///
/// # Safety
/// There are so many bytes.
unsafe fn clear(to: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller promises that the bytes exist; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep stosb",
            inout("rcx") bytes => _, inout("rdi") to => _, in("al") 0u8,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for at in 0..bytes {
        use std::sync::atomic::{AtomicU8, Ordering};
        // SAFETY: the caller promises that the bytes exist; atomics of a byte are always aligned.
        unsafe { AtomicU8::from_ptr(to.add(at)) }.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn written_bytes_are_read() -> io::Result<()> {
        let memory = SharedMemory::anonymous(8192)?;
        memory.write(8190, b"ab");
        memory.write(100, &[b'x'; 300]);
        let mut bytes = [1; 302];
        memory.read(99, &mut bytes);
        assert!(bytes[1..301] == [b'x'; 300] && bytes[0] == 0 && bytes[301] == 0);
        memory.clear(101, 298);
        memory.read(99, &mut bytes);
        assert_eq!([bytes[1], bytes[2], bytes[299], bytes[300]], [b'x', 0, 0, b'x']);
        memory.words(2)[1].store(7, Ordering::Relaxed);
        let mut word = [0; 8];
        memory.read(8, &mut word);
        assert_eq!(u64::from_ne_bytes(word), 7);
        Ok(())
    }

    #[test]
    fn copies_every_length_and_offset() -> io::Result<()> {
        let memory = SharedMemory::anonymous(4096)?;
        let written: Vec<u8> = (0..1100).map(|at| (at % 251) as u8 + 1).collect();
        for bytes in (0..100).chain(1000..1050) {
            let offset = 500 + bytes % 17;
            memory.prefetch(offset, bytes);
            memory.write(offset, &written[..bytes]);
            let mut read = vec![0; bytes + 2];
            memory.read(offset - 1, &mut read);
            assert_eq!((read[0], read[bytes + 1]), (0, 0), "{bytes} bytes");
            assert_eq!(read[1..=bytes], written[..bytes]);
            let mut own = vec![7; bytes];
            memory.read(offset, &mut own);
            assert_eq!(own, written[..bytes]);
            memory.clear(offset, bytes);
        }
        Ok(())
    }

    #[test]
    fn a_file_has_the_bytes_written_to_its_mapping() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let open = || {
            let path = folder.path().join("mapped");
            File::options().read(true).write(true).create(true).truncate(false).open(path)
        };
        let memory = SharedMemory::of_file(&open()?, 4096)?;
        memory.write(10, b"kept");
        drop(memory);
        let memory = SharedMemory::of_file(&open()?, 4096)?;
        let mut copy = open()?;
        assert_eq!(memory.write_to(&copy, 10, 4)?, 4);
        let mut bytes = [0; 4];
        copy.rewind()?;
        copy.read_exact(&mut bytes)?;
        assert_eq!(&bytes, b"kept");
        Ok(())
    }

    #[test]
    #[should_panic(expected = "within the memory")]
    fn nothing_is_written_beyond_the_end() {
        if let Ok(memory) = SharedMemory::anonymous(4096) {
            memory.write(usize::MAX, b"ab");
        }
    }
}
