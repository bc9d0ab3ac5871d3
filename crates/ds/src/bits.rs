//! Counts bits with the best instructions of the processor.
//!
//! The binary runs on any x86-64 processor, but the first ones had no instruction for it. The loop
//! is therefore compiled twice, and the choice is made at run time.

/// The number of set bits in `bytes`.
pub fn ones(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= 16 && has_vectors() {
        // SAFETY: `has_vectors` has found the instructions.
        return unsafe { ones_by_vectors(bytes) };
    }
    ones_of(bytes)
}

#[cfg(target_arch = "x86_64")]
fn has_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")
}

/// The loop compiled for processors with AVX2.
///
/// # Safety
/// The processor has AVX2 and POPCNT.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn ones_by_vectors(bytes: &[u8]) -> usize {
    ones_of(bytes)
}

#[inline(always)]
fn ones_of(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let of_words: u64 =
        words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum();
    let of_rest: u32 = rest.iter().map(|byte| byte.count_ones()).sum();
    of_words as usize + of_rest as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_loops_count_the_same() {
        let mut random = base::random::Random::new(1);
        let bytes: Vec<u8> = (0..300).map(|_| random.below(256) as u8).collect();
        for start in 0..20 {
            for end in start..bytes.len() {
                let part = &bytes[start..end];
                let counted: u32 = part.iter().map(|byte| byte.count_ones()).sum();
                assert_eq!((ones(part), ones_of(part)), (counted as usize, counted as usize));
            }
        }
    }
}
