//! How much memory a reused buffer keeps between two uses.

/// Empties a buffer. It keeps at most `kept_bytes_max` of memory for the next use, so that one
/// large request does not occupy memory forever.
#[inline]
pub fn clear<T>(buffer: &mut Vec<T>, kept_bytes_max: usize) {
    buffer.clear();
    let kept_max = kept_bytes_max / size_of::<T>().max(1);
    if buffer.capacity() > kept_max {
        buffer.shrink_to(kept_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_buffer_keeps_a_bounded_number_of_bytes() {
        let mut buffer = vec![0u64; 100_000];
        clear(&mut buffer, 1 << 20);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 100_000));
        clear(&mut buffer, 1024);
        assert!(buffer.capacity() * size_of::<u64>() <= 1024);
        clear(&mut vec![(); 10], 0);
    }
}
