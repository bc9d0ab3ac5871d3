//! Sockets by their numbers.

/// Shuts down both directions of the socket with this number, so that its peer notices at once. A
/// number that is not a socket is ignored; the caller ensures that it is the intended one.
pub fn shut_down(fd: i32) {
    // SAFETY: the call takes a number and no memory.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_sides_notice() {
        let (mut own, mut peer) = UnixStream::pair().unwrap();
        shut_down(own.as_raw_fd());
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(own.read(&mut [0; 8]).unwrap(), 0);
        shut_down(-1);
    }
}
