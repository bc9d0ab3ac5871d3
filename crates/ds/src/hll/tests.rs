//! Compares both encodings with an array of a byte for each register, and with results of Redis.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use proptest::prelude::*;

/// Raises a register in the encoding of `bytes`, as a command does.
fn raise(bytes: &mut Vec<u8>, register: Register, bytes_max: usize) -> bool {
    if encoding(bytes) == Some(Encoding::Sparse) {
        match raise_sparse(bytes, register, bytes_max).unwrap() {
            Raise::Nothing => return false,
            Raise::Splice(splice) => {
                bytes.splice(splice.at..splice.at + splice.removed, splice.bytes().iter().copied());
                return true;
            }
            Raise::Dense => *bytes = to_dense(bytes).unwrap(),
        }
    }
    let lower = dense_value(bytes, register.index) < register.value;
    assert_eq!(raise_dense(bytes, register), lower);
    lower
}

type Registers = [u8; REGISTERS];

fn registers(bytes: &[u8]) -> Registers {
    let dense = to_dense(bytes).unwrap();
    std::array::from_fn(|index| dense_value(&dense, index))
}

fn count_registers(registers: &Registers) -> u64 {
    let mut histogram = [0; 64];
    registers.iter().for_each(|value| histogram[usize::from(*value)] += 1);
    estimate::count(&histogram)
}

/// Registers that are often neighbours, so that runs are split and joined.
fn register() -> impl Strategy<Value = Register> {
    let index = prop_oneof![
        4 => 0..12usize,
        2 => 8000..8200usize,
        2 => REGISTERS - 12..REGISTERS,
        1 => 0..REGISTERS
    ];
    let value = prop_oneof![8 => 1..4u8, 2 => 1..=32u8, 1 => 33..=51u8];
    (index, value).prop_map(|(index, value)| Register { index, value })
}

proptest! {
    #[test]
    fn both_encodings_equal_the_registers(
        raised_registers in proptest::collection::vec(register(), 1..120),
        limit in prop_oneof![Just(3000usize), 2..60usize],
    ) {
        let mut model = [0u8; REGISTERS];
        let (mut sparse, mut dense) = (EMPTY.to_vec(), to_dense(&EMPTY).unwrap());
        for register in raised_registers {
            let raised = model[register.index] < register.value;
            model[register.index] = model[register.index].max(register.value);
            prop_assert_eq!(raise(&mut sparse, register, limit), raised);
            prop_assert_eq!(raise(&mut dense, register, limit), raised);
            let is_sparse = encoding(&sparse) == Some(Encoding::Sparse);
            prop_assert!(!is_sparse || sparse.len() <= limit.max(EMPTY.len()));
        }
        prop_assert!(registers(&sparse) == model);
        prop_assert!(registers(&dense) == model);
        prop_assert_eq!(count(&sparse).unwrap(), count_registers(&model));
        prop_assert_eq!(count(&dense).unwrap(), count_registers(&model));
        prop_assert_eq!(&to_dense(&sparse).unwrap(), &dense);
    }

    #[test]
    fn a_union_has_the_highest_registers(
        sets in proptest::collection::vec(
            (proptest::collection::vec(register(), 0..40), any::<bool>()),
            1..5,
        ),
    ) {
        let mut model = [0u8; REGISTERS];
        let mut union = Union::new(vec![7; 10]);
        let mut last = EMPTY.to_vec();
        let mut dense = false;
        for (raised_registers, is_dense) in sets {
            last = EMPTY.to_vec();
            if is_dense {
                last = to_dense(&last).unwrap();
            }
            for register in raised_registers {
                raise(&mut last, register, 3000);
                model[register.index] = model[register.index].max(register.value);
            }
            union.add(&last).unwrap();
            dense |= encoding(&last) == Some(Encoding::Dense);
        }
        prop_assert_eq!(union.is_dense(), dense);
        prop_assert_eq!(union.count(), count_registers(&model));
        let mut merged = to_dense(&last).unwrap();
        union.raise(&mut merged);
        prop_assert!(registers(&merged) == model);
        if !dense {
            for register in union.above(&last).unwrap() {
                prop_assert!(raise(&mut last, register, usize::MAX));
            }
            prop_assert!(registers(&last) == model);
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..40),
        at in register(),
    ) {
        for magic in [&b""[..], b"HYLL\0", b"HYLL\x01"] {
            let len = magic.len().min(bytes.len());
            bytes[..len].copy_from_slice(&magic[..len]);
            let _ = (count(&bytes), to_dense(&bytes), raise_sparse(&bytes, at, 3000));
            let _ = (cached_count(&bytes), dense_value(&bytes, at.index));
            let mut union = Union::new(Vec::new());
            let _ = (union.add(&bytes), union.above(&bytes));
            merge_dense(&mut bytes, &EMPTY);
            set_cached_count(&mut bytes, 1);
            mark_stale(&mut bytes);
            raise_dense(&mut bytes, at);
        }
    }
}

/// The value in Redis 8.0.6 after a PFADD each of "", "x", "xx" ... up to 23 letters.
const OF_REDIS: &str = "48594c4c010000000000000000000080450880425a9043749040a784427a8042c08441a1\
    80416d84435c8441dd84464794460d8042858c407b80405f8043a68c33800d8440728041f68046968444fa90442d88\
    410b8408";

#[test]
fn bytes_are_those_of_redis() {
    let mut bytes = EMPTY.to_vec();
    for len in 0..24 {
        assert!(raise(&mut bytes, Register::of(&vec![b'x'; len]), 3000));
        mark_stale(&mut bytes);
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((hex.as_str(), count(&bytes)), (OF_REDIS, Ok(24)));
    // The dense count is also that of Redis.
    let mut dense = to_dense(&bytes).unwrap();
    for number in 0..1_000_000 {
        raise(&mut dense, Register::of(number.to_string().as_bytes()), 3000);
    }
    assert_eq!(count(&dense), Ok(1_009_972));
}

#[test]
fn the_self_test_passes() {
    assert_eq!(self_test(), Ok(()));
}

#[test]
fn the_header_keeps_the_count() {
    let mut bytes = EMPTY.to_vec();
    assert_eq!(cached_count(&bytes), Some(0));
    set_cached_count(&mut bytes, 0x0123_4567_89ab);
    assert_eq!(cached_count(&bytes), Some(0x0123_4567_89ab));
    mark_stale(&mut bytes);
    assert_eq!(cached_count(&bytes), None);
    assert_eq!(cached_count(&bytes[..15]), None);
}

#[test]
fn invalid_bytes_are_rejected() {
    let dense = to_dense(&EMPTY).unwrap();
    assert_eq!(encoding(&dense), Some(Encoding::Dense));
    assert_eq!(encoding(&dense[1..]), None);
    assert_eq!(encoding(&dense[..DENSE_BYTES - 1]), None);
    assert_eq!(encoding(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0"), None);
    let short = &EMPTY[..17];
    assert_eq!(count(short), Err(Corrupt));
    assert_eq!(to_dense(&EMPTY[..16]), Err(Corrupt));
    let mut long = EMPTY.to_vec();
    long.push(0);
    assert_eq!(count(&long), Err(Corrupt));
    assert_eq!(to_dense(&long), Err(Corrupt));
    let last = Register { index: REGISTERS - 1, value: 1 };
    assert_eq!(raise_sparse(short, last, 3000), Err(Corrupt));
    assert_eq!(raise_sparse(&EMPTY[..16], last, 3000), Err(Corrupt));
}
