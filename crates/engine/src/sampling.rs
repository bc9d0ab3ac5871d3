//! Selection sampling (Knuth, TAOCP 3.4.2, Algorithm S): selects a number of elements of a sequence
//! in one pass, with each selection equally likely.

use base::random::Random;

/// Selects `wanted` of `len` elements, one by one.
pub(crate) struct Selection {
    left: usize,
    wanted: usize,
}

impl Selection {
    pub(crate) fn new(len: usize, wanted: usize) -> Self {
        Self { left: len, wanted }
    }

    /// Whether the next element is selected.
    pub(crate) fn takes_next(&mut self, random: &mut Random) -> bool {
        let takes = random.below(self.left as u64) < self.wanted as u64;
        self.left = self.left.saturating_sub(1);
        self.wanted -= usize::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_number_is_selected() {
        let mut random = Random::new(5);
        for len in 0..20 {
            for wanted in 0..=len {
                let mut selection = Selection::new(len, wanted);
                let selected = (0..len).filter(|_| selection.takes_next(&mut random)).count();
                assert_eq!(selected, wanted);
            }
        }
    }
}
