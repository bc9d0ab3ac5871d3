//! Validates entries from a file or another server before they are used as a packed list.

use super::Encoded;
use super::entry::{Entry, back_len};

/// The properties of valid entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Elements.
    pub len: usize,
    /// Whether each entry has the form that this crate writes. Other programs may write integers as
    /// text or in more bytes than necessary; such lists must be encoded again.
    pub canonical: bool,
}

/// The longest head of an integer.
const INTEGER_BODY_BYTES_MAX: usize = 9;

/// Validates entries. Returns `None` for an unknown encoding, a length past the end, or a back
/// length that differs from the entry's length.
pub fn check(entries: &[u8]) -> Option<Checked> {
    let mut checked = Checked { len: 0, canonical: true };
    let mut rest = entries;
    while let Some(first) = rest.first() {
        // The shortest forms are the usual ones.
        let end = match first {
            0..0x80 if rest.get(1) == Some(&1) => 2,
            _ => {
                let (end, canonical) = check_entry(rest)?;
                checked.canonical &= canonical;
                end
            }
        };
        rest = &rest[end..];
        checked.len += 1;
    }
    Some(checked)
}

/// The length of the first entry, and whether its form is canonical.
fn check_entry(rest: &[u8]) -> Option<(usize, bool)> {
    let byte = |at: usize| rest.get(at).map(|byte| usize::from(*byte));
    let (head, text) = match *rest.first()? {
        0..0x80 => (1, 0),
        first @ 0x80..0xc0 => (1, usize::from(first & 0x3f)),
        0xc0..0xe0 => (2, 0),
        first @ 0xe0..0xf0 => (2, usize::from(first & 0xf) << 8 | byte(1)?),
        0xf0 => {
            let len = u32::from_le_bytes(*rest.get(1..)?.first_chunk()?);
            (5, usize::try_from(len).ok()?)
        }
        0xf1 => (3, 0),
        0xf2 => (4, 0),
        0xf3 => (5, 0),
        0xf4 => (INTEGER_BODY_BYTES_MAX, 0),
        _ => return None,
    };
    let body = head + text;
    let end = body + back_len(body);
    let own = rest.get(..end)?;
    if back_length(&own[body..]) != Some(body) {
        return None;
    }
    let encoded = match Entry::at(own, 0) {
        Entry::Integer(value) => Encoded::integer(value),
        Entry::Bytes(text) => Encoded::text(text),
    };
    Some((end, encoded.head() == &own[..head]))
}

/// Decodes a back length.
fn back_length(groups: &[u8]) -> Option<usize> {
    let mut value = 0;
    for (at, byte) in groups.iter().enumerate() {
        // The high bit is set in every group but the first.
        if (at > 0) != (byte & 0x80 != 0) {
            return None;
        }
        value = value << 7 | usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::random::Random;

    use super::*;
    use crate::packed::Packed;

    fn entries<'a>(elements: impl IntoIterator<Item = Encoded<'a>>) -> Vec<u8> {
        let mut out = Vec::new();
        elements.into_iter().for_each(|element| element.append_to(&mut out));
        out
    }

    /// Elements of all encodings.
    fn all() -> Vec<u8> {
        let texts = [0, 1, 63, 64, 127, 128, 4095, 4096, 16_376, 16_377, 16_378, 20_000];
        let texts = texts.map(|len| vec![b'x'; len]);
        let integers = [0, 127, 128, -1, -4096, 4095, 4096, 1 << 15, 1 << 23, 1 << 31, i64::MIN];
        let integers =
            integers.iter().flat_map(|value| [*value, value.wrapping_sub(1), -(value / 3)]);
        entries(texts.iter().map(|text| Encoded::text(text)).chain(integers.map(Encoded::integer)))
    }

    #[test]
    fn own_entries_are_valid_and_canonical() {
        let all = all();
        assert_eq!(check(&all), Some(Checked { len: 12 + 33, canonical: true }));
        assert_eq!(check(b""), Some(Checked { len: 0, canonical: true }));
        let list = Packed::of_entries(&all, 45);
        let ends: Vec<usize> =
            list.iter().scan(0, |at, _| Some(std::mem::replace(at, list.after(*at)))).collect();
        for len in 0..all.len() {
            assert_eq!(check(&all[..len]).is_some(), ends.contains(&len), "{len} bytes");
        }
    }

    #[test]
    fn longer_forms_of_elements_are_valid_but_not_canonical() {
        // 7 as text, as 13 bits, as 16 bits and as 64; `a` with a length of 12 bits and of 32.
        let others: &[&[u8]] = &[
            b"\x817\x02",
            b"\xc0\x07\x02",
            b"\xf1\x07\x00\x03",
            b"\xf4\x07\x00\x00\x00\x00\x00\x00\x00\x09",
            b"\xe0\x01a\x03",
            b"\xf0\x01\x00\x00\x00a\x06",
        ];
        for other in others {
            assert_eq!(check(other), Some(Checked { len: 1, canonical: false }), "{other:?}");
        }
    }

    #[test]
    fn faults_are_rejected() {
        let faults: &[&[u8]] = &[
            b"\x07",
            b"\x07\x02",
            b"\x07\x81",
            b"\x81a",
            b"\x81a\x01",
            b"\xf5\x01",
            b"\xff",
            b"\xf0\xff\xff\xff\xff",
            b"\xf0\xff\xff\xff\xffa\x06",
            b"\xe1",
        ];
        for fault in faults {
            assert_eq!(check(fault), None, "{fault:?}");
        }
    }

    #[test]
    fn valid_entries_can_be_read_in_both_directions() {
        let (all, mut random) = (all(), Random::new(5));
        let small = &all[all.len() - 200..];
        let start = (0..200).find(|at| check(&small[*at..]).is_some()).unwrap();
        let mut valid = 0;
        for _ in 0..50_000 {
            let mut bytes = small[start..].to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            let Some(Checked { len, .. }) = check(&bytes) else { continue };
            valid += 1;
            let list = Packed::of_entries(&bytes, len);
            assert_eq!(list.iter().count(), len);
            assert_eq!(list.iter().rev().count(), len);
            assert_eq!(list.iter().rev().collect::<Vec<_>>().len(), len);
        }
        assert!(valid > 1000, "only {valid} lists were valid");
    }
}
