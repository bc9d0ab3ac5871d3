//! Reading a file: what is in it, item by item.
//!
//! ```text
//! magic │ item ... │ ff │ CRC64 of all before it          the checksum from version 5 on
//! magic   REDIS and 4 digits of version, or VALKEY and 3
//! item    opcode and what it says, or the type of a value, its key and the value
//! ```
//!
//! The caller asks for the next item and, when it is a key, decides what becomes of the value: read
//! it, copy its bytes for another thread, or pass over it. A file may be followed by something
//! else, as in an append-only file that begins with one: [`Reader::into_source`] tells where.

use ds::record::{ACCESS_CLOCK_MASK, Record};
use store::Object;

use super::decode::{Decoder, UNSIGNED, module_name, skip, skip_module};
use super::types::{VALKEY_VERSION_MIN, ValueType};
use super::{VERSION, length, opcode, string};
use crate::crc64::CHECKSUM_BYTES;
use crate::error::MODULE_NAME_BYTES;
use crate::{Error, Input, Source};

const MAGIC_BYTES: usize = 9;
const REDIS: &[u8] = b"REDIS";
const VALKEY: &[u8] = b"VALKEY";
/// Older files end without a checksum.
pub(crate) const CHECKSUM_VERSION_MIN: u16 = 5;
/// The earliest expiry of a field, in front of a hash.
const EARLIEST_BYTES: usize = 8;
/// How an expiry that is none was written.
const NO_EXPIRY: i64 = -1;

/// What stands next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A key, whose value follows.
    Key(KeyHead<'a>),
    /// The keys that follow are in this database.
    Database(u64),
    /// How many keys the database has, and how many of them expire. A hint that may be wrong.
    Sizes(Sizes),
    /// The slot of the keys that follow, and the same about them.
    Slot(u64, Sizes),
    /// A name and a value about the file. Unknown names are passed over.
    Aux(&'a [u8], &'a [u8]),
    /// The source of a library of functions.
    Function(&'a [u8]),
    /// Something that has no meaning here and was passed over.
    Skipped(Skipped),
    /// Nothing more, and the checksum is right.
    End,
}

/// What has no meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// What a module of this name keeps besides keys.
    ModuleAux([u8; MODULE_NAME_BYTES]),
    /// The import of slots that was going on.
    SlotImport,
}

/// How many keys there are, and how many of them expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Keys.
    pub keys: u64,
    /// Those that expire.
    pub expiring: u64,
}

/// A key before its value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHead<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What its value is.
    pub value_type: ValueType,
    /// What else the file tells of it.
    pub attributes: Attributes,
}

/// What a file tells of a key besides its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// When it expires, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// Seconds since it was used.
    pub idle_seconds: Option<u64>,
    /// How often it is used, on the logarithmic scale of OBJECT FREQ.
    pub frequency: Option<u8>,
}

impl Attributes {
    /// The access clock of the key when that of the server is `now`.
    pub fn access_clock(&self, now: u32) -> u32 {
        // Seconds wrap as the clock does.
        now.wrapping_sub(self.idle_seconds.unwrap_or(0) as u32) & ACCESS_CLOCK_MASK
    }
}

/// Reads a file; see the module's description.
#[derive(Debug)]
pub struct Reader<S> {
    input: Input<S>,
    version: u16,
    is_valkey: bool,
    checks: bool,
    key: Vec<u8>,
    text: Vec<u8>,
    /// What is known of the last key, while its value has not been read.
    due: Option<(ValueType, Attributes)>,
}

impl<S: Source> Reader<S> {
    /// Reads the magic of a file. `checks` says whether its checksum must be right.
    ///
    /// # Errors
    /// When it is no file of a supported version.
    pub fn new(source: S, checks: bool) -> Result<Self, Error> {
        let mut input = if checks { Input::with_checksum(source) } else { Input::new(source) };
        let magic = input.array::<MAGIC_BYTES>()?;
        let (is_valkey, digits) = match (magic.strip_prefix(REDIS), magic.strip_prefix(VALKEY)) {
            (Some(digits), _) => (false, digits),
            (_, Some(digits)) => (true, digits),
            _ => return Err(Error::Version(None)),
        };
        let version = digits.iter().try_fold(0u16, |version, digit| {
            // Four digits at most.
            digit.is_ascii_digit().then(|| version * 10 + u16::from(digit - b'0'))
        });
        let version = version.ok_or(Error::Version(None))?;
        let versions =
            if is_valkey { VALKEY_VERSION_MIN..=VALKEY_VERSION_MIN } else { 1..=VERSION };
        if !versions.contains(&version) {
            return Err(Error::Version(Some(u32::from(version))));
        }
        let (key, text) = (Vec::new(), Vec::new());
        Ok(Self { input, version, is_valkey, checks, key, text, due: None })
    }

    /// Bytes that are known to follow; 0 when none are.
    pub fn announced(&self) -> u64 {
        self.input.room_for(u64::MAX, 1) as u64
    }

    /// The version of the file.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Whether Valkey wrote it in its own format.
    pub fn is_valkey(&self) -> bool {
        self.is_valkey
    }

    /// How many bytes have been read: after an error, where about the cause is.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// The source, and how much of its block has been read: what follows the file begins there.
    pub fn into_source(self) -> (S, usize) {
        self.input.into_source()
    }

    /// The next item. A value that nobody wanted is passed over.
    ///
    /// # Errors
    /// When the source fails, the file is damaged, or its checksum is wrong. After
    /// [`Error::Compressed`] reading can go on with the next item.
    pub fn item(&mut self) -> Result<Item<'_>, Error> {
        self.skip_value()?;
        let mut attributes = Attributes::default();
        loop {
            let number = self.input.byte()?;
            match number {
                opcode::EXPIRES_AT_MS => {
                    attributes.expires_at = expiry(i64::from_le_bytes(self.input.array()?));
                }
                opcode::EXPIRES_AT_SECONDS => {
                    let seconds = i32::from_le_bytes(self.input.array()?);
                    attributes.expires_at = expiry(i64::from(seconds)).map(|at| at * 1000);
                }
                opcode::IDLE => attributes.idle_seconds = Some(length::read(&mut self.input)?),
                opcode::FREQUENCY => attributes.frequency = Some(self.input.byte()?),
                opcode::END => {
                    self.check_end()?;
                    return Ok(Item::End);
                }
                opcode::SLOT_INFO.. => return self.opcode(number),
                opcode::SLOT_IMPORT if self.is_valkey => return self.opcode(number),
                _ => {
                    let value_type = ValueType::of(number, self.version)?;
                    self.key.clear();
                    let key = passed(string::append(&mut self.input, &mut self.key))?;
                    self.due = Some((value_type, attributes));
                    key?;
                    return Ok(Item::Key(KeyHead { key: &self.key, value_type, attributes }));
                }
            }
        }
    }

    /// What follows an opcode that is not about the next key.
    fn opcode(&mut self, number: u8) -> Result<Item<'_>, Error> {
        let Self { input, key, text, .. } = self;
        Ok(match number {
            opcode::SELECT_DB => Item::Database(length::read(input)?),
            opcode::RESIZE_DB => Item::Sizes(sizes(input)?),
            opcode::SLOT_INFO => Item::Slot(length::read(input)?, sizes(input)?),
            opcode::AUX => {
                key.clear();
                text.clear();
                let name = passed(string::append(input, key))?;
                passed(string::append(input, text))?.and(name)?;
                Item::Aux(key, text)
            }
            opcode::FUNCTION => {
                text.clear();
                string::append(input, text)?;
                Item::Function(text)
            }
            opcode::FUNCTION_PREVIEW => {
                preview_function(input, text)?;
                Item::Function(text)
            }
            opcode::MODULE_AUX => {
                let id = length::read(input)?;
                if length::read(input)? != UNSIGNED {
                    return Err(Error::Corrupt("when a module's data are due"));
                }
                length::read(input)?;
                skip_module(input)?;
                Item::Skipped(Skipped::ModuleAux(module_name(id)))
            }
            // SLOT_IMPORT: all others are met before.
            _ => {
                string::skip(input)?;
                for _ in 0..length::read(input)? {
                    length::read(input)?;
                    length::read(input)?;
                }
                Item::Skipped(Skipped::SlotImport)
            }
        })
    }

    fn check_end(&mut self) -> Result<(), Error> {
        if self.version < CHECKSUM_VERSION_MIN {
            return Ok(());
        }
        let computed = self.input.checksum();
        let stored = u64::from_le_bytes(self.input.array::<CHECKSUM_BYTES>()?);
        match computed {
            // Who writes without a checksum writes 0.
            Some(computed) if self.checks && stored != 0 && stored != computed => {
                Err(Error::Checksum { stored, computed })
            }
            _ => Ok(()),
        }
    }

    /// How much the last key's value is said to hold: bytes of a string, or elements. 0 when that
    /// does not stand in front of it, as for what is packed or compressed.
    pub fn announced_len(&self) -> u64 {
        let before = match self.due {
            Some((ValueType::HashExpiring, _)) => EARLIEST_BYTES,
            _ => 0,
        };
        let mut front = Input::new(self.input.rest().get(before..).unwrap_or_default());
        length::read(&mut front).unwrap_or(0)
    }

    /// Reads the value of the last key to a record.
    ///
    /// # Errors
    /// When the source fails or the value is damaged. After [`Error::EmptyValue`] and
    /// [`Error::Module`] reading can go on: the key has a value that no key can have here.
    ///
    /// # Panics
    /// When the last item was no key, or its value has been read.
    pub fn record(
        &mut self,
        decoder: &mut Decoder<'_>,
        access_clock: u32,
    ) -> Result<Record<Object>, Error> {
        let (value_type, attributes) = self.take_due();
        let access_clock = attributes.access_clock(access_clock);
        match decoder.value(value_type, &mut self.input) {
            Ok(value) => Ok(value.record(&self.key, attributes.expires_at, access_clock)),
            Err(Error::Module(name)) => {
                skip_module(&mut self.input)?;
                Err(Error::Module(name))
            }
            Err(error) => Err(error),
        }
    }

    /// Appends the bytes of the last key's value to `out`, for a [`Decoder`] elsewhere.
    ///
    /// # Errors
    /// When the source fails or the outline of the value is damaged.
    ///
    /// # Panics
    /// As for `record`.
    pub fn copy_value(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let (value_type, _) = self.take_due();
        self.input.copied(out, |input| skip(value_type, input))
    }

    /// Passes over the last key's value, if it has not been read.
    ///
    /// # Errors
    /// As for `copy_value`.
    pub fn skip_value(&mut self) -> Result<(), Error> {
        match self.due.take() {
            Some((value_type, _)) => skip(value_type, &mut self.input),
            None => Ok(()),
        }
    }

    fn take_due(&mut self) -> (ValueType, Attributes) {
        self.due.take().unwrap_or_else(|| unreachable!("a value is read once, behind its key"))
    }
}

fn expiry(at: i64) -> Option<i64> {
    (at != NO_EXPIRY).then_some(at)
}

fn sizes<S: Source>(input: &mut Input<S>) -> Result<Sizes, Error> {
    Ok(Sizes { keys: length::read(input)?, expiring: length::read(input)? })
}

/// Reads a library as the release candidates of Redis 7 wrote it, with its name and engine outside
/// of the source, and gives it the first line that says both.
fn preview_function<S: Source>(input: &mut Input<S>, text: &mut Vec<u8>) -> Result<(), Error> {
    let (mut name, mut engine) = (Vec::new(), Vec::new());
    let name_read = passed(string::append(input, &mut name))?;
    let engine_read = passed(string::append(input, &mut engine))?;
    if length::read(input)? != 0 {
        // What it is for.
        string::skip(input)?;
    }
    text.clear();
    for part in [b"#!", &engine[..], b" name=", &name, b"\n"] {
        text.extend_from_slice(part);
    }
    passed(string::append(input, text))?.and(name_read).and(engine_read)
}

/// Tells an error after which the input is behind what was read, so that reading can go on, from
/// others.
fn passed(read: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match read {
        Ok(()) => Ok(Ok(())),
        Err(error @ Error::Compressed(_)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}
