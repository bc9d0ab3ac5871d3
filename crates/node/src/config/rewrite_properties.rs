//! CONFIG REWRITE with random values: a value never becomes another one, nor a line of its own.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::live::split;
use super::tests::other_value;
use super::*;

/// Bytes that have a meaning in a file, and others.
const BYTES: &[u8] = b"\n\r\0 \t\x0b\"'\\#-:.%*a1\xc3\xa9";

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(BYTES), 0..5)
}

/// A value to try: bytes, perhaps within a value of the parameter itself.
#[derive(Clone, Debug)]
struct TriedValue {
    bytes: Vec<u8>,
    is_inserted: bool,
    at: prop::sample::Index,
}

fn tried_values() -> impl Strategy<Value = TriedValue> {
    let parts = (some_bytes(), any::<bool>(), any::<prop::sample::Index>());
    parts.prop_map(|(bytes, is_inserted, at)| TriedValue { bytes, is_inserted, at })
}

impl TriedValue {
    fn of(&self, row: &Parameter) -> Vec<u8> {
        if !self.is_inserted {
            return self.bytes.clone();
        }
        let mut value = match row.name {
            "activedefrag" => b"no".to_vec(),
            _ => other_value(row, &Config::default()),
        };
        let at = self.at.index(value.len() + 1);
        value.splice(at..at, self.bytes.iter().copied());
        value
    }
}

/// Loads a text that includes nothing.
fn load(text: &[u8]) -> Config {
    let mut config = Config::default();
    config.load(text, Origin::Stdin, &mut |_| Ok(vec![])).unwrap();
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_accepted_value_is_read_back_from_its_own_lines(tried in tried_values()) {
        for row in PARAMETERS {
            let mut config = Config::default();
            config.saving.begin_points();
            let value = tried.of(row);
            if row.read(&mut config, &split(row, &value)).is_err() {
                continue;
            }
            let old = format!("{} x\n", row.name).into_bytes();
            for old in [&b""[..], &old] {
                let new = config.rewrite(old, &[]);
                let lines = new.split(|byte| *byte == b'\n');
                let is_line = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
                let lines: Vec<_> = lines.filter(is_line).collect();
                prop_assert!(lines.len() <= row.file_values(&config).len());
                let name = format!("{} ", row.name);
                prop_assert!(lines.iter().all(|line| line.starts_with(name.as_bytes())));
                prop_assert!(new.is_ascii());
                prop_assert_eq!(&load(&new), &config, "{} {:?}", row.name, value);
            }
        }
    }
}
