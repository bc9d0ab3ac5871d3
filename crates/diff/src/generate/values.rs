//! Pools of values.
//!
//! The pools are small, so that requests meet on the same values, and contain difficult ones: edges
//! of integers, infinities, empty and binary strings, sizes around the thresholds of encodings.
//! They omit times to live that end during a run, legal offsets and counts that take gigabytes, and
//! endless waits.

use command::Group;
use fastrand::Rng;

use super::hints::Class;

/// Keys of each group of commands, and keys of no group.
const HOME_KEYS: u32 = 3;

/// The longest strings, which are rare because they cost time.
const LONG_BYTES: usize = 1_000;
const HUGE_BYTES: usize = 20_000;

/// Lengths up to the size of a list chunk, for one or two elements.
const CHUNK_BYTES: &[usize] = &[2040, 3000, 4076, 4080, 4085, 4090, 8170, 8175, 8180, 8192, 8193];

/// Lengths around the thresholds that [`crate::settings`] chooses from.
const THRESHOLD_BYTES: &[usize] = &[7, 8, 9, 43, 44, 45, 63, 64, 65];

/// Different members of a long list.
const WIDE_MEMBERS: u32 = 12_000;

/// The first second of the year 2100, which no run reaches.
const FAR_UNIX_SECONDS: u64 = 4_102_444_800;

/// Integers at the edges of types, without legal counts and offsets.
const EDGES: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "4611686018427387904",
];

/// The same, and values that are numbers but no integers.
const INTEGERS: &[&str] = &[
    "9223372036854775806",
    "-9223372036854775807",
    "4294967295",
    "4294967296",
    "-4294967296",
    "2147483648",
    "-2147483649",
    "10000000000000000000000",
    "00",
    "-0",
    "+1",
    " 1",
    "1 ",
    "0x10",
    "1e3",
    "",
];

const DOUBLES: &[&str] = &[
    "0",
    "-0",
    "0.1",
    "-1.5",
    "3.0e3",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "5e-324",
    "1e-10",
    "123456789.123456789",
    "9007199254740993",
    "9223372036854775808",
    "inf",
    "-inf",
    "+inf",
    "nan",
    "-nan",
    "infinity",
    "1e400",
    "0x1p3",
    "1_0",
    "1.",
    ".5",
    "",
    "abc",
    " 1",
];

const JUNK: &[&str] =
    &["", "abc", "-1", "nan", "1.5", "9223372036854775808", "LIMIT", "COUNT", "*", "(", "[", "#"];

/// One payload of DUMP for each form.
const PAYLOADS: &[&[u8]] = &[
    b"\x00\x04text\x0c\x00\xb7\x85\x12\xad0\x9f;x",
    b"\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2",
    b"\x00\xc3\t(\x01aa\xe0\x1b\x00\x01aa\x0c\x00\x04\x7f\x1bjT\x0f\x1dT",
    b"\x12\x01\x02\x0f\x0f\0\0\0\x03\0\x81a\x02\x01\x01\x81b\x02\xff\x0c\0[5\x97\x8c\x11\xa4\x85U",
    b"\x0b\x0e\x02\0\0\0\x03\0\0\0\x01\0\x02\0,\x01\x0c\0.f\x86N\x81\xbf\xb7\xe3",
    b"\x14\n\n\0\0\0\x01\0\x81a\x02\xff\x0c\0Uv\xf6h\x9eZ\x0c\xb4",
    b"\x11\x14\x14\0\0\0\x04\0\x81a\x02\x01\x01\x81b\x02\x832.5\x04\xff\x0c\0\x1f:Zd\x0cnG\x9e",
    b"\x10\r\r\0\0\0\x02\0\x81f\x02\x81v\x02\xff\x0c\0\xeb\x87\t\x84\xd9~\x96\xd4",
];

/// Only the ids of streams depend on earlier values.
#[derive(Debug, Default)]
pub struct Values {
    /// The milliseconds of the newest id.
    newest_id: u64,
    /// Draws members from a large pool, for a long list.
    pub wide: bool,
}

impl Values {
    /// A value of a class; keys mostly have the type of the group.
    pub fn draw(&mut self, class: Class, home: Group, rng: &mut Rng) -> Vec<u8> {
        match class {
            Class::Key => return key(home, rng),
            Class::LevelKey => return level_key(rng),
            Class::Value => return self.value(rng),
            Class::Member => return self.member(rng),
            Class::Payload => return payload(rng),
            _ => {}
        }
        // Any value may occur at any position.
        if rng.u32(..60) == 0 {
            return self.junk(rng);
        }
        self.number(class, rng)
            .or_else(|| stream(self, class, rng))
            .unwrap_or_else(|| word(class, rng))
    }

    /// A value that fits no class.
    pub fn junk(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.u32(..8) {
            0 => b"\xff\x00\r\n".to_vec(),
            1 => vec![b'j'; 64],
            _ => pick(JUNK, rng).into(),
        }
    }

    /// A count.
    pub fn count(&self, rng: &mut Rng) -> String {
        match rng.u32(..12) {
            0 => pick(EDGES, rng).to_owned(),
            1 => "0".to_owned(),
            2 => rng.i64(-20..0).to_string(),
            3 => rng.i64(10..400).to_string(),
            _ => rng.i64(1..8).to_string(),
        }
    }

    fn number(&mut self, class: Class, rng: &mut Rng) -> Option<Vec<u8>> {
        let text = match class {
            Class::Count | Class::ListLength => self.count(rng),
            Class::Integer => match rng.u32(..10) {
                0 => pick(EDGES, rng).to_owned(),
                1 => pick(INTEGERS, rng).to_owned(),
                _ => rng.i64(-30..100).to_string(),
            },
            Class::Double => match rng.u32(..4) {
                0 => pick(DOUBLES, rng).to_owned(),
                1 => rng.i64(-10..50).to_string(),
                _ => (rng.i64(-1000..1000) as f64 / 8.0).to_string(),
            },
            Class::Score => score(rng),
            Class::ScoreBound => bound(score(rng), rng),
            Class::AnyBound if rng.u32(..8) > 0 => rng.i64(-12..13).to_string(),
            Class::Index if rng.u32(..3) > 0 => rng.i64(-12..13).to_string(),
            Class::Index => match rng.u32(..3) {
                0 => pick(EDGES, rng).to_owned(),
                _ => rng.i64(-300..300).to_string(),
            },
            Class::ByteOffset => match rng.u32(..10) {
                0 => pick(&["536870912", "4294967296", "9223372036854775807", "-1"], rng).into(),
                1 => rng.u32(..5_000).to_string(),
                _ => rng.u32(..60).to_string(),
            },
            Class::BitOffset | Class::FieldOffset => match rng.u32(..12) {
                0 => pick(&["4294967296", "9223372036854775807", "-1"], rng).into(),
                1 => rng.u32(..20_000).to_string(),
                2 | 3 if class == Class::FieldOffset => format!("#{}", rng.u32(..40)),
                _ => rng.u32(..200).to_string(),
            },
            Class::BitValue => {
                pick(&["0", "1", "0", "1", "0", "1", "0", "1", "2", "-1"], rng).into()
            }
            Class::Seconds => relative(rng, 1),
            Class::MillisecondsOrOne if rng.u32(..8) == 0 => "1".to_owned(),
            Class::Milliseconds | Class::MillisecondsOrOne => relative(rng, 1000),
            Class::UnixSeconds => absolute(rng, 1),
            Class::UnixMilliseconds => absolute(rng, 1000),
            Class::Wait => match rng.u32(..10) {
                0 => pick(&["-1", "1e400", "1e300", "-0.5e1", "nan"], rng).into(),
                _ => "0.001".to_owned(),
            },
            Class::WaitMilliseconds => match rng.u32(..10) {
                0 => pick(&["-1", "9223372036854775808", "1.5"], rng).into(),
                _ => "1".to_owned(),
            },
            Class::Cursor => match rng.u32(..12) {
                0 => pick(EDGES, rng).into(),
                _ => "0".into(),
            },
            Class::Database => pick(&["0", "1", "1", "1", "-1", "16", "4294967296"], rng).into(),
            Class::Longitude => degrees(180.0, rng),
            Class::Latitude => degrees(85.05112878, rng),
            Class::Distance => match rng.u32(..6) {
                0 => pick(DOUBLES, rng).to_owned(),
                1 => rng.u32(..10).to_string(),
                _ => (f64::from(rng.u32(..80_000_000)) / 4.0).to_string(),
            },
            Class::Idle => pick(&["0", "0", "0", "5000000", "1000000000", "-1"], rng).into(),
            _ => return None,
        };
        Some(text.into_bytes())
    }

    fn member(&self, rng: &mut Rng) -> Vec<u8> {
        if self.wide && rng.u32(..8) > 0 {
            let number = rng.u32(..WIDE_MEMBERS);
            return if rng.bool() { number.to_string() } else { format!("w{number}") }.into_bytes();
        }
        match rng.u32(..200) {
            0 => vec![b'M'; HUGE_BYTES],
            1 => vec![b'L'; LONG_BYTES],
            2 => vec![b'C'; pick(CHUNK_BYTES, rng)],
            3..20 => vec![b'a' + rng.u8(..3); pick(THRESHOLD_BYTES, rng)],
            20..30 => odd_string(rng),
            30..40 => rng.i64(-200_000..200_000).to_string().into_bytes(),
            40..110 => rng.u32(..24).to_string().into_bytes(),
            110..150 => vec![b'a' + rng.u8(..16)],
            _ => format!("m{}", rng.u32(..24)).into_bytes(),
        }
    }

    fn value(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.u32(..10) {
            0 => pick(DOUBLES, rng).into(),
            1 => odd_string(rng),
            2 => (rng.i64(-1000..1000) as f64 / 16.0).to_string().into_bytes(),
            3 => (0..rng.usize(..90)).map(|_| rng.u8(..)).collect(),
            4..7 => rng.i64(-100..100).to_string().into_bytes(),
            _ => self.member(rng),
        }
    }
}

/// A payload, sometimes damaged.
fn payload(rng: &mut Rng) -> Vec<u8> {
    let mut payload = PAYLOADS[rng.usize(..PAYLOADS.len())].to_vec();
    if rng.u32(..8) == 0 {
        let at = rng.usize(..payload.len());
        payload[at] = rng.u8(..);
    }
    payload
}

fn stream(values: &mut Values, class: Class, rng: &mut Rng) -> Option<Vec<u8>> {
    let newest = values.newest_id;
    let near = |rng: &mut Rng| match rng.u32(..4) {
        0 => rng.u64(..=newest.saturating_add(2)).to_string(),
        _ => format!("{}-{}", rng.u64(newest.saturating_sub(20)..=newest + 1), rng.u32(..3)),
    };
    let text = match class {
        Class::NewId => match rng.u32(..16) {
            0 => pick(&["0-0", "0", "0-1", "0-*", "-", "18446744073709551615-*"], rng).to_owned(),
            1 => near(rng),
            2 => format!("{newest}-*"),
            kind => {
                values.newest_id += rng.u64(1..3);
                let dash = if kind < 5 { "-*" } else { "-1" };
                format!("{}{dash}", values.newest_id)
            }
        },
        Class::EntryId => match rng.u32(..12) {
            0 => pick(ODD_IDS, rng).to_owned(),
            _ => near(rng),
        },
        Class::IdBound => match rng.u32(..3) {
            0 => {
                pick(&["-", "+", "-", "+", "(", "(-", "0", "18446744073709551615"], rng).to_owned()
            }
            1 => format!("({}", near(rng)),
            _ => near(rng),
        },
        Class::ReadFrom => match rng.u32(..16) {
            0 => pick(ODD_IDS, rng).to_owned(),
            1..8 => pick(&[">", ">", ">", "0", "0", "0-0", "$", "+"], rng).to_owned(),
            _ => near(rng),
        },
        Class::DeliveredUpTo => match rng.u32(..16) {
            0 => pick(ODD_IDS, rng).to_owned(),
            1..8 => pick(&["0", "0", "$", "-", "0-0"], rng).to_owned(),
            _ => near(rng),
        },
        Class::Threshold => match rng.u32(..3) {
            0 => near(rng),
            _ => values.count(rng),
        },
        Class::GroupName => pick(&["g0", "g0", "g0", "g1"], rng).to_owned(),
        Class::Consumer => format!("c{}", rng.u32(..3)),
        _ => return None,
    };
    Some(text.into_bytes())
}

const ODD_IDS: &[&str] = &[
    "18446744073709551615-18446744073709551615",
    "18446744073709551616-0",
    "1-18446744073709551616",
    "-1-1",
    "1-",
    "-",
    "1-1-1",
    "x",
    "",
];

/// Words, patterns and names.
fn word(class: Class, rng: &mut Rng) -> Vec<u8> {
    match class {
        Class::NameBound | Class::AnyBound => match rng.u32(..4) {
            0 => pick(&["-", "+", "(", "[", "a", "(inf", "(1"], rng).into(),
            1 => format!("({}", char::from(b'a' + rng.u8(..16))).into_bytes(),
            2 => bound(score(rng), rng).into_bytes(),
            _ => format!("[m{}", rng.u32(..24)).into_bytes(),
        },
        Class::Pattern => pick(
            &["*", "*", "m*", "?", "[a-c]*", "*1*", "[^m]*", "\\*", "s?", "", "[", "m1", "*\\"],
            rng,
        )
        .into(),
        Class::SortBy => pick(&["s*", "h*->a", "nosort", "z*", "s*->", "*", "h*->m1"], rng).into(),
        Class::SortGet => pick(&["#", "s*", "h*->a", "h*->m1", "x", "*"], rng).into(),
        Class::TypeName => {
            pick(&["string", "list", "set", "zset", "hash", "stream", "String", "none", "x"], rng)
                .into()
        }
        // Some make it dense, which should be rare, and all registers make a long reply.
        Class::HllView => match rng.u32(..16) {
            0 => pick(&["todense", "getreg", "none", ""], rng).into(),
            _ => pick(&["encoding", "decode", "DECODE"], rng).into(),
        },
        Class::BitType => match rng.u32(..10) {
            0 => pick(&["u64", "i65", "u0", "i0", "x8", "u", "i-1", "u 1"], rng).into(),
            1 => pick(&["i64", "u63", "i1", "u1"], rng).into(),
            _ => format!("{}{}", pick(&["u", "i"], rng), rng.u32(1..64)).into_bytes(),
        },
        _ => odd_string(rng),
    }
}

/// A key of a group; sometimes one of another group, or of none.
fn key(home: Group, rng: &mut Rng) -> Vec<u8> {
    const PREFIXES: &[u8] = b"sbplhezgx";
    let own = match home {
        Group::String => b's',
        Group::Bitmap => b'b',
        Group::HyperLogLog => b'p',
        Group::List => b'l',
        Group::Hash => b'h',
        Group::Set => b'e',
        Group::SortedSet => b'z',
        Group::Geo => b'g',
        Group::Stream => b'x',
        _ => pick(PREFIXES, rng),
    };
    let prefix = match rng.u32(..24) {
        0 => return pick(&["", "none", "\u{0}", "s", "a b"], rng).into(),
        1..4 => pick(PREFIXES, rng),
        _ => own,
    };
    format!("{}{}", char::from(prefix), rng.u32(1..=HOME_KEYS)).into_bytes()
}

/// The key of a sorted set with equal scores, for ranges by name.
fn level_key(rng: &mut Rng) -> Vec<u8> {
    match rng.u32(..10) {
        // Not a key that may hold other scores.
        0 => pick(&["none", "l1", "h1"], rng).into(),
        _ => format!("{LEVEL_PREFIX}{}", rng.u32(1..=HOME_KEYS)).into_bytes(),
    }
}

/// The prefix of the keys of sorted sets with equal scores.
pub const LEVEL_PREFIX: char = 'y';

fn score(rng: &mut Rng) -> String {
    match rng.u32(..10) {
        0 => pick(DOUBLES, rng).to_owned(),
        1 | 2 => (rng.i64(-400..400) as f64 / 16.0).to_string(),
        _ => rng.i64(-5..25).to_string(),
    }
}

fn bound(score: String, rng: &mut Rng) -> String {
    match rng.u32(..5) {
        0 => format!("({score}"),
        1 => pick(&["-inf", "+inf", "inf", "(inf", "(-inf"], rng).to_owned(),
        _ => score,
    }
}

/// A time of expiry that has passed or lies beyond the run. Two near times would depend on the
/// clock, so the pool is large.
fn relative(rng: &mut Rng, per_second: u64) -> String {
    match rng.u32(..16) {
        0 => pick(EDGES, rng).to_owned(),
        1 => pick(&["0", "-1", "-100000", "9223372036854775", "70368744177664"], rng).to_owned(),
        _ => (rng.u64(1_000..10_000_000) * 37 * per_second).to_string(),
    }
}

fn absolute(rng: &mut Rng, per_second: u64) -> String {
    match rng.u32(..16) {
        0 => pick(EDGES, rng).to_owned(),
        1 => pick(&["0", "-1", "1", "9223372036854775", "70368744177664"], rng).to_owned(),
        2 => pick(&["70368744177663", "281474976710655", "281474976710656"], rng).to_owned(),
        _ => ((FAR_UNIX_SECONDS + rng.u64(..10_000_000) * 37) * per_second).to_string(),
    }
}

fn degrees(most: f64, rng: &mut Rng) -> String {
    match rng.u32(..16) {
        0 => pick(DOUBLES, rng).to_owned(),
        1 => format!("{}{most}", pick(&["", "-"], rng)),
        2 => (most + 0.000_001).to_string(),
        3..8 => rng.i64(-20..20).to_string(),
        _ => ((rng.f64() * 2.0 - 1.0) * most).to_string(),
    }
}

fn odd_string(rng: &mut Rng) -> Vec<u8> {
    match rng.u32(..4) {
        0 => Vec::new(),
        1 => pick(INTEGERS, rng).into(),
        2 => pick(EDGES, rng).into(),
        _ => pick(&[&b"\x00"[..], b"\xff\xfe", b"\r\n", b"a\x00b", b"\"'\\", b"\xc3\xa4"], rng)
            .into(),
    }
}

fn pick<T: Copy>(pool: &[T], rng: &mut Rng) -> T {
    pool[rng.usize(..pool.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_during_a_run() {
        let (mut values, mut rng) = (Values::default(), Rng::with_seed(1));
        for _ in 0..20_000 {
            for (class, per_second) in [(Class::Seconds, 1), (Class::Milliseconds, 1000)] {
                let drawn = values.draw(class, Group::String, &mut rng);
                let number = String::from_utf8_lossy(&drawn).parse::<i128>();
                let soon = 1..1_000 * per_second;
                assert!(number.is_err() || number.is_ok_and(|n| !soon.contains(&n)), "{drawn:?}");
            }
        }
    }

    #[test]
    fn members_and_keys_meet() {
        let (mut values, mut rng) = (Values::default(), Rng::with_seed(1));
        let mut draw = |class| values.draw(class, Group::Set, &mut rng);
        let members: std::collections::BTreeSet<_> =
            (0..500).map(|_| draw(Class::Member)).collect();
        assert!((30..300).contains(&members.len()), "{}", members.len());
        let own = (0..500).filter(|_| draw(Class::Key).starts_with(b"e")).count();
        assert!((300..480).contains(&own), "{own}");
    }
}
