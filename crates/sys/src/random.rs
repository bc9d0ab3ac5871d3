//! Random bytes from the kernel, fit for secrets (getrandom(2)).

use std::io;

/// Fills a buffer. It may wait only shortly after the machine started.
///
/// # Errors
/// If the kernel does not provide it.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the kernel writes at most the given number of bytes to the start of the slice.
        let written = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(written) {
            Ok(count) => rest = &mut rest[count..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_call_returns_different_bytes() {
        let [mut one, mut other] = [[0; 512], [0; 512]];
        fill(&mut one).unwrap();
        fill(&mut other).unwrap();
        assert_ne!(one, other);
        assert!(one.iter().filter(|byte| **byte == 0).count() < 64);
        fill(&mut []).unwrap();
    }
}
