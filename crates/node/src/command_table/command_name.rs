//! Names of commands, compared in any case: nearly always by one comparison of eight bytes.

/// The first eight bytes of a name in lower case, and its length: all of a short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    folded: u64,
    len: usize,
}

impl Start {
    #[inline]
    fn of(name: &[u8]) -> Self {
        Self { folded: to_lowercase(first_bytes(name)), len: name.len() }
    }
}

#[derive(Debug)]
pub(super) struct CommandName {
    start: Start,
    /// The bytes after the first eight.
    rest: Box<[u8]>,
}

/// The name that a request has, read once to be compared with several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called<'a> {
    start: Start,
    name: &'a [u8],
}

impl CommandName {
    pub(super) fn new(name: &[u8]) -> Self {
        Self { start: Start::of(name), rest: name.get(8..).unwrap_or_default().into() }
    }

    /// Whether it is this one.
    #[inline]
    pub(super) fn is(&self, called: Called<'_>) -> bool {
        self.start == called.start
            && (self.rest.is_empty() || called.name[8..].eq_ignore_ascii_case(&self.rest))
    }
}

impl<'a> Called<'a> {
    #[inline]
    pub(super) fn new(name: &'a [u8]) -> Self {
        Self { start: Start::of(name), name }
    }

    /// A number from which the place in an index of names is made; the highest bits are mixed best.
    #[inline]
    pub(super) fn hash(self) -> u64 {
        (self.start.folded ^ self.start.len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The first eight bytes, the first one lowest; zeros where there are fewer.
#[inline]
fn first_bytes(name: &[u8]) -> u64 {
    if let Some(bytes) = name.first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        // They overlap in equal bytes.
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (name.len() - 4));
    }
    // Of up to three bytes each is the first, the middle or the last one, or several of these.
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    let middle = name.len() / 2;
    u64::from(*first)
        | u64::from(name[middle]) << (8 * middle)
        | u64::from(*last) << (8 * (name.len() - 1))
}

/// Eight bytes with the letters `A` to `Z` in lower case, all others as they are.
#[inline]
fn to_lowercase(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = bytes & (EACH * 0x7f);
    // The highest bit of each byte says whether it is from A on, and beyond Z.
    let from_a = low + EACH * (0x80 - u64::from(b'A'));
    let beyond_z = low + EACH * (0x7f - u64::from(b'Z'));
    let is_upper = from_a & !beyond_z & !bytes & (EACH * 0x80);
    bytes | is_upper >> 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_compared_as_std_does(name: Vec<u8>, flips: Vec<bool>, other: u8, at: usize) {
            let mut called = name.clone();
            for (byte, flip) in called.iter_mut().zip(flips) {
                if flip {
                    *byte = if byte.is_ascii_lowercase() {
                        byte.to_ascii_uppercase()
                    } else {
                        byte.to_ascii_lowercase()
                    };
                }
            }
            let command = CommandName::new(&name);
            prop_assert!(command.is(Called::new(&called)));
            prop_assert_eq!(Called::new(&name).hash(), Called::new(&called).hash());
            if !called.is_empty() {
                let at = at % called.len();
                called[at] = other;
                let is_equal = called.eq_ignore_ascii_case(&name);
                prop_assert_eq!(command.is(Called::new(&called)), is_equal);
                called.pop();
                prop_assert!(!command.is(Called::new(&called)));
            }
        }

        #[test]
        fn short_names_are_compared_as_std_does(name in "[ -~]{0,9}", called in "[ -~]{0,9}") {
            let is = CommandName::new(name.as_bytes()).is(Called::new(called.as_bytes()));
            prop_assert_eq!(is, name.eq_ignore_ascii_case(&called));
        }
    }
}
