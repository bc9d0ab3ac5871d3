//! Macros for rows of the table whose value is a field of a plain type. A file that uses them
//! imports `Kind`, `Notation`, `Parameter` and `Slot`.

/// The slot of a field.
macro_rules! slot {
    ($($field:ident).+) => { Slot { of: |c| &c.$($field).+, of_mut: |c| &mut c.$($field).+ } };
}

macro_rules! flag {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Parameter::new($name, Kind::Flag(slot!($($field).+)), $about)
    };
}

macro_rules! text {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Parameter::new($name, Kind::Text(slot!($($field).+)), $about)
    };
}

/// A number. The range is checked before `write` is called, so its cast is exact.
macro_rules! number {
    ($name:literal, $($field:ident).+, $notation:ident $min:tt..=$max:expr, $about:literal) => {
        Parameter::new($name, Kind::Number {
            notation: Notation::$notation,
            min: $min,
            max: $max,
            read: |c| c.$($field).+ as i64,
            write: |c, value| c.$($field).+ = value as _,
        }, $about)
    };
}

macro_rules! choice {
    ($name:literal, $($field:ident).+, $type:ident, $about:literal) => {
        Parameter::new($name, Kind::Choice {
            names: $type::NAMES,
            read: |c| c.$($field).+.name(),
            write: |c, name| match $type::from_name(name) {
                Some(value) => { c.$($field).+ = value; true }
                None => false,
            },
        }, $about)
    };
}

pub(super) use {choice, flag, number, slot, text};
