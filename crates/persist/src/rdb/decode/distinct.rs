//! Checks that packed elements are distinct.

use base::hash::KeyHasher;
use ds::packed::Packed;

/// Up to this many elements, each is compared with all others.
const COMPARED_MAX: usize = 8;

/// Finds elements that occur twice, with a hash table of positions whose memory is used again.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// 1 + the position of an entry; 0: empty. A packed list is below 4 GiB.
    slots: Vec<u32>,
}

impl Distinct {
    /// Whether the elements 0, `stride`, 2 * `stride` and so on are all different. Entries are in
    /// canonical form, so equal ones have the same bytes.
    pub(super) fn check(&mut self, list: Packed<'_>, stride: usize, hasher: &KeyHasher) -> bool {
        let len = list.len() / stride;
        if len <= COMPARED_MAX {
            return all_differ(list, stride);
        }
        let mask = (2 * len).next_power_of_two() - 1;
        self.slots.clear();
        self.slots.resize(mask + 1, 0);
        let entries = list.entries();
        let mut at = 0;
        while at < list.end() {
            let after = list.after(at);
            let entry = &entries[at..after];
            let mut slot = hasher.hash(entry) as usize & mask;
            while let Some(other) = self.slots[slot].checked_sub(1) {
                // An entry contains its length, so none is the beginning of another.
                if entries[other as usize..].starts_with(entry) {
                    return false;
                }
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = at as u32 + 1;
            at = list.skip(after, stride - 1);
        }
        true
    }
}

fn all_differ(list: Packed<'_>, stride: usize) -> bool {
    let mut at = 0;
    while at < list.end() {
        let after = list.skip(at, stride);
        if list.find(list.entry(at), after, stride).is_some() {
            return false;
        }
        at = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use base::random::Random;
    use ds::packed::PackedMut;

    use super::*;

    #[test]
    fn it_agrees_with_a_hash_set_at_every_length() {
        let (hasher, mut random) = (KeyHasher::new(1), Random::new(2));
        let mut distinct = Distinct::default();
        let mut found = [0; 2];
        for round in 0..2000 {
            let len = random.below(if round % 2 == 0 { 12 } else { 200 });
            let names: Vec<String> =
                (0..len).map(|_| format!("name-{}", random.below(len * len + 1))).collect();
            for stride in 1..=3 {
                let mut bytes = Vec::new();
                let mut list = PackedMut::new(&mut bytes);
                for name in &names {
                    list.push_back(name.as_bytes());
                    (1..stride).for_each(|_| list.push_back(&b"name-0"[..]));
                }
                let is_set =
                    names.iter().collect::<std::collections::HashSet<_>>().len() == names.len();
                assert_eq!(distinct.check(Packed::new(&bytes), stride, &hasher), is_set);
                found[usize::from(is_set)] += 1;
            }
        }
        assert!(found[0] > 500 && found[1] > 500, "{found:?}");
    }
}
