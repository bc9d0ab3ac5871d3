//! The sizes of keys and values in requests.
//!
//! All names of a range have one length, so that the next key is a few digits written over the last
//! one. Values have one length too, unless [`ValueSizes`] says otherwise.

use std::borrow::Cow;
use std::str::FromStr;

use fastrand::Rng;

use crate::Error;

/// The text before the number of a key.
const KEY_PREFIX: &str = "key:";

/// The largest value: the limit of servers for a string.
const VALUE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The longest name of a key.
const KEY_BYTES_MAX: usize = 1024 * 1024;

/// The keys and values of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestShape {
    /// How many different keys there are, at least 1.
    pub keys: u64,
    /// The number of the first.
    pub first: u64,
    /// The text before the number in a name.
    pub prefix: Cow<'static, str>,
    /// The length of a name in bytes: the prefix and a zero-padded number.
    pub key_bytes: usize,
    /// The length of a value in bytes.
    pub value_bytes: usize,
    /// Lengths that differ from value to value, instead of the one.
    pub sizes: Option<ValueSizes>,
}

impl Default for RequestShape {
    /// 100,000 keys of 16 bytes (`key:%012d`) and values of 256 bytes.
    fn default() -> Self {
        RequestShape {
            keys: 100_000,
            first: 0,
            prefix: Cow::Borrowed(KEY_PREFIX),
            key_bytes: 16,
            value_bytes: 256,
            sizes: None,
        }
    }
}

impl RequestShape {
    /// Digits of a key's number, leading zeros included.
    pub(super) fn key_digits(&self) -> usize {
        self.key_bytes.saturating_sub(self.prefix.len())
    }

    /// Digits of a key's number that are not always zero.
    pub(crate) fn moving_digits(&self) -> usize {
        decimal_width(self.last())
    }

    /// The number of the last key.
    pub(super) fn last(&self) -> u64 {
        self.first.saturating_add(self.keys.saturating_sub(1))
    }

    /// Checks that the range fits in the keys.
    ///
    /// # Errors
    /// An empty range, names too short to hold their numbers, values too long.
    pub fn check(&self) -> Result<(), Error> {
        if self.keys == 0 {
            return Err(Error::Usage("the key range is empty: --keys must be at least 1".into()));
        }
        if self.first.checked_add(self.keys - 1).is_none() {
            return Err(Error::Usage("the key range ends beyond 64 bits".into()));
        }
        if self.key_digits() < self.moving_digits() {
            let needed = self.prefix.len() + self.moving_digits();
            return Err(Error::Usage(format!(
                "{} keys need key names of at least {needed} bytes: give --key-size",
                self.keys
            )));
        }
        if self.key_bytes > KEY_BYTES_MAX {
            return Err(Error::Usage("a key name has at most 1 MB".into()));
        }
        match self.value_bytes_max() > VALUE_BYTES_MAX {
            true => Err(Error::Usage("a value has at most 512 MB".into())),
            false => Ok(()),
        }
    }

    /// The length of the longest value.
    pub(super) fn value_bytes_max(&self) -> usize {
        self.sizes.as_ref().map_or(self.value_bytes, ValueSizes::longest)
    }

    /// The bytes of all values, in the length of the longest: letters that hardly compress, the
    /// same in every run.
    pub fn value(&self) -> Vec<u8> {
        let mut rng = Rng::with_seed(0x0077_6566_7400);
        (0..self.value_bytes_max()).map(|_| rng.alphanumeric() as u8).collect()
    }
}

/// How many digits a number has.
pub(super) fn decimal_width(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Lengths of values that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSizes {
    /// Any length from the first to the second, all equally often.
    Range(usize, usize),
    /// These lengths, each with the sum of the weights up to it.
    List(Vec<(usize, u32)>),
}

impl ValueSizes {
    /// Reads `MIN-MAX`.
    ///
    /// # Errors
    /// The error text for another text.
    pub fn range(text: &str) -> Result<ValueSizes, String> {
        let numbers = text.split_once('-').and_then(|(low, high)| {
            Some((low.parse::<usize>().ok()?, high.parse::<usize>().ok()?))
        });
        match numbers {
            Some((low, high)) if low <= high => Ok(ValueSizes::Range(low, high)),
            _ => Err(format!("'{text}' is no range of sizes; write 32-1024")),
        }
    }

    /// Reads `SIZE:WEIGHT,SIZE:WEIGHT,...`.
    ///
    /// # Errors
    /// The error text for another text.
    pub fn list(text: &str) -> Result<ValueSizes, String> {
        let failed = || format!("'{text}' is no list of sizes with weights; write 32:9,1024:1");
        let (mut list, mut sum) = (Vec::new(), 0u32);
        for item in text.split(',') {
            let (size, weight) = item.split_once(':').ok_or_else(failed)?;
            let size = size.parse().map_err(|_| failed())?;
            let weight = u32::from_str(weight).map_err(|_| failed())?;
            sum = sum.checked_add(weight).ok_or_else(failed)?;
            list.push((size, sum));
        }
        match sum {
            0 => Err(failed()),
            _ => Ok(ValueSizes::List(list)),
        }
    }

    fn longest(&self) -> usize {
        match self {
            ValueSizes::Range(_, high) => *high,
            ValueSizes::List(list) => list.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }

    /// The length of the next value.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        match self {
            ValueSizes::Range(low, high) => rng.usize(*low..=*high),
            ValueSizes::List(list) => {
                let at = rng.u32(0..list.last().map_or(1, |(_, sum)| *sum));
                list.iter().find(|(_, sum)| at < *sum).map_or(0, |(size, _)| *size)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_from_their_range_or_by_their_weights() {
        let mut rng = Rng::with_seed(1);
        let mut drawn =
            |sizes: &ValueSizes| (0..3000).map(|_| sizes.draw(&mut rng)).collect::<Vec<_>>();
        let range = drawn(&ValueSizes::range("3-5").unwrap());
        for size in 3..=5 {
            let count = range.iter().filter(|drawn| **drawn == size).count();
            assert!((800..1200).contains(&count), "{count} of {size}");
        }
        assert!(range.iter().all(|size| (3..=5).contains(size)));
        let list = drawn(&ValueSizes::list("10:3,20:0,1000:1").unwrap());
        let count = |size| list.iter().filter(|drawn| **drawn == size).count();
        assert_eq!((count(10) + count(1000), count(20)), (3000, 0));
        assert!((2100..2400).contains(&count(10)), "{}", count(10));
    }

    #[test]
    fn other_sizes_are_refused() {
        for text in ["", "5", "5-3", "a-b", "1-"] {
            assert!(ValueSizes::range(text).is_err(), "{text}");
        }
        for text in ["", "5", "5:", "5:x", "5:0", "1:4294967295,2:1"] {
            assert!(ValueSizes::list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_that_do_not_fit_are_refused() {
        let fits = |first, keys, key_bytes| {
            RequestShape { first, keys, key_bytes, ..RequestShape::default() }.check().is_ok()
        };
        assert!(fits(0, 1000, 7) && fits(999, 1, 7) && fits(u64::MAX, 1, 24));
        assert!(!fits(0, 10, KEY_BYTES_MAX + 1) && !fits(0, 10, usize::MAX));
        assert!(!fits(0, 1001, 7) && !fits(999, 2, 7) && !fits(u64::MAX, 2, 24) && !fits(0, 0, 16));
        let long = ValueSizes::range("1-600000000").unwrap();
        assert!(RequestShape { sizes: Some(long), ..RequestShape::default() }.check().is_err());
    }
}
