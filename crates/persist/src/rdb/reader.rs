//! Reads a file item by item.
//!
//! ```text
//! magic │ item ... │ ff │ CRC64 of all before it          the checksum from version 5 on
//! magic   REDIS and 4 digits of version, or VALKEY and 3
//! item    opcode and its data, or the type of a value, its key and the value
//! ```
//!
//! The caller requests the next item and, when it is a key, either decodes the value, copies its
//! bytes for another thread, or skips it. Other data may follow the file, as in an append-only file
//! that begins with one; they begin where [`RdbReader::into_source`] says.

use ds::record::{ACCESS_CLOCK_MASK, Record};
use store::Object;

use super::decode::{UNSIGNED, ValueDecoder, skip, skip_module};
use super::types::{VALKEY_VERSION_MIN, ValueType};
use super::{VERSION, length, opcode, string};
use crate::crc64::CHECKSUM_BYTES;
use crate::rdb_magic::{REDIS, VALKEY};
use crate::{ByteInput, ByteSource, Error, ModuleId};

const MAGIC_BYTES: usize = 9;
/// Older files end without a checksum.
pub(crate) const CHECKSUM_VERSION_MIN: u16 = 5;
/// The earliest expiry of a field, which precedes a hash.
const EARLIEST_BYTES: usize = 8;
/// Stands for no expiry.
const NO_EXPIRY: i64 = -1;

/// The next item of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum RdbItem<'a> {
    /// A key, whose value follows.
    Key(KeyHead<'a>),
    /// The keys that follow are in this database.
    Database(u64),
    /// The sizes of the database. They are a hint and may be wrong.
    Sizes(DatabaseSizes),
    /// The slot of the keys that follow, and its sizes.
    Slot(u64, DatabaseSizes),
    /// Metadata of the file: a name and a value. Unknown names are ignored.
    Aux(&'a [u8], &'a [u8]),
    /// The source of a library of functions.
    Function(&'a [u8]),
    /// Data without meaning here, which were skipped.
    Skipped(Skipped),
    /// The end. The checksum is right.
    End,
}

/// Data without meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// Data of a module other than keys.
    ModuleAux(ModuleId),
    /// An import of slots that was in progress.
    SlotImport,
}

/// The sizes of a database or slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseSizes {
    /// How many keys it has.
    pub keys: u64,
    /// How many of them expire.
    pub expiring: u64,
}

/// A key before its value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHead<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The type of its value.
    pub value_type: ValueType,
    /// Its other attributes.
    pub attributes: Attributes,
}

/// The attributes of a key besides its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Its expiry, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// Seconds since its last use.
    pub idle_seconds: Option<u64>,
    /// How often it is used, on the logarithmic scale of OBJECT FREQ.
    pub frequency: Option<u8>,
}

impl Attributes {
    /// The access clock of the key, if that of the server is `now`.
    pub fn access_clock(&self, now: u32) -> u32 {
        // Seconds wrap like the clock.
        now.wrapping_sub(self.idle_seconds.unwrap_or(0) as u32) & ACCESS_CLOCK_MASK
    }
}

/// Reads a file; see the module's description.
#[derive(Debug)]
pub struct RdbReader<S> {
    input: ByteInput<S>,
    version: u16,
    is_valkey: bool,
    checks: bool,
    key: Vec<u8>,
    text: Vec<u8>,
    /// The attributes of the next key, from the opcodes before it.
    attributes: Attributes,
    /// The last key, until its value is read.
    due: Option<(ValueType, Attributes)>,
    /// Where the last item begins, without the attributes before it.
    item_at: u64,
}

impl<S: ByteSource> RdbReader<S> {
    /// Reads the magic of a file. `checks` says whether the checksum is verified.
    ///
    /// # Errors
    /// When this is no file of a supported version.
    pub fn new(source: S, checks: bool) -> Result<Self, Error> {
        let mut input =
            if checks { ByteInput::with_checksum(source) } else { ByteInput::new(source) };
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
        let (key, text, attributes) = (Vec::new(), Vec::new(), Attributes::default());
        let item_at = input.offset();
        Ok(Self { input, version, is_valkey, checks, key, text, attributes, due: None, item_at })
    }

    /// How many bytes follow, if that is known; 0 otherwise.
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

    /// How many bytes have been read. After an error, its cause is near this offset.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Where the last item begins: its opcode, or the type of a value. The attributes of a key are
    /// somewhere before that.
    pub fn item_offset(&self) -> u64 {
        self.item_at
    }

    /// The source, and how much of its block has been read: data after the file begin there.
    pub fn into_source(self) -> (S, usize) {
        self.input.into_source()
    }

    /// The next item. Skips the value of the last key, if it was not read.
    ///
    /// # Errors
    /// When the source fails, the file is damaged, or its checksum is wrong. After
    /// [`Error::Compressed`], reading can continue with the next item.
    pub fn item(&mut self) -> Result<RdbItem<'_>, Error> {
        self.skip_value()?;
        loop {
            self.item_at = self.input.offset();
            let number = self.input.byte()?;
            // They belong to the next key, whatever opcode is between: KeyDB writes metadata there.
            let attributes = &mut self.attributes;
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
                    return Ok(RdbItem::End);
                }
                opcode::SLOT_INFO.. => return self.opcode(number),
                opcode::SLOT_IMPORT if self.is_valkey => return self.opcode(number),
                _ => {
                    let value_type = ValueType::of(number, self.version)?;
                    self.key.clear();
                    let attributes = std::mem::take(attributes);
                    let key = recoverable(string::append(&mut self.input, &mut self.key))?;
                    self.due = Some((value_type, attributes));
                    key?;
                    return Ok(RdbItem::Key(KeyHead { key: &self.key, value_type, attributes }));
                }
            }
        }
    }

    /// Reads the data of an opcode that does not belong to the next key.
    fn opcode(&mut self, number: u8) -> Result<RdbItem<'_>, Error> {
        let Self { input, key, text, .. } = self;
        Ok(match number {
            opcode::SELECT_DB => RdbItem::Database(length::read(input)?),
            opcode::RESIZE_DB => RdbItem::Sizes(sizes(input)?),
            opcode::SLOT_INFO => RdbItem::Slot(length::read(input)?, sizes(input)?),
            opcode::AUX => {
                key.clear();
                text.clear();
                let name = recoverable(string::append(input, key))?;
                recoverable(string::append(input, text))?.and(name)?;
                RdbItem::Aux(key, text)
            }
            opcode::FUNCTION => {
                text.clear();
                string::append(input, text)?;
                RdbItem::Function(text)
            }
            opcode::FUNCTION_PREVIEW => {
                preview_function(input, text)?;
                RdbItem::Function(text)
            }
            opcode::MODULE_AUX => {
                let id = length::read(input)?;
                if length::read(input)? != UNSIGNED {
                    return Err(Error::Corrupt("the time to load a module's data"));
                }
                length::read(input)?;
                skip_module(input)?;
                RdbItem::Skipped(Skipped::ModuleAux(ModuleId(id)))
            }
            // SLOT_IMPORT: the other opcodes are handled above or by the caller.
            _ => {
                string::skip(input)?;
                for _ in 0..length::read(input)? {
                    length::read(input)?;
                    length::read(input)?;
                }
                RdbItem::Skipped(Skipped::SlotImport)
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
            // A file that was written without a checksum has 0.
            Some(computed) if self.checks && stored != 0 && stored != computed => {
                Err(Error::Checksum { stored, computed })
            }
            _ => Ok(()),
        }
    }

    /// The length that the last key's value announces: bytes of a string, or elements. 0 if it does
    /// not begin with a length, as in packed or compressed values.
    pub fn announced_len(&self) -> u64 {
        let before = match self.due {
            Some((ValueType::HashExpiring, _)) => EARLIEST_BYTES,
            _ => 0,
        };
        let mut front = ByteInput::new(self.input.rest().get(before..).unwrap_or_default());
        length::read(&mut front).unwrap_or(0)
    }

    /// Decodes the value of the last key into a record.
    ///
    /// # Errors
    /// When the source fails or the value is damaged. After [`Error::EmptyValue`] and
    /// [`Error::Module`], reading can continue: the key has a value that no key can have here.
    ///
    /// # Panics
    /// When the last item was no key, or its value has been read.
    pub fn record(
        &mut self,
        decoder: &mut ValueDecoder<'_>,
        access_clock: u32,
    ) -> Result<Record<Object>, Error> {
        let (value_type, attributes) = self.take_due();
        let access_clock = attributes.access_clock(access_clock);
        match decoder.value(value_type, &mut self.input) {
            Ok(value) => Ok(value.record(&self.key, attributes.expires_at, access_clock)),
            Err(Error::Module(module)) => {
                skip_module(&mut self.input)?;
                Err(Error::Module(module))
            }
            Err(error) => Err(error),
        }
    }

    /// Appends the bytes of the last key's value to `out`, for a [`ValueDecoder`] on another
    /// thread.
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

    /// Skips the last key's value, if it was not read.
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
        self.due.take().unwrap_or_else(|| unreachable!("a value is read once, after its key"))
    }
}

fn expiry(at: i64) -> Option<i64> {
    (at != NO_EXPIRY).then_some(at)
}

fn sizes<S: ByteSource>(input: &mut ByteInput<S>) -> Result<DatabaseSizes, Error> {
    Ok(DatabaseSizes { keys: length::read(input)?, expiring: length::read(input)? })
}

/// Reads a library as the release candidates of Redis 7 wrote it, with its name and engine before
/// the source, and adds the first line that has both.
fn preview_function<S: ByteSource>(
    input: &mut ByteInput<S>,
    text: &mut Vec<u8>,
) -> Result<(), Error> {
    let (mut name, mut engine) = (Vec::new(), Vec::new());
    let name_read = recoverable(string::append(input, &mut name))?;
    let engine_read = recoverable(string::append(input, &mut engine))?;
    if length::read(input)? != 0 {
        // The description.
        string::skip(input)?;
    }
    text.clear();
    for part in [b"#!", &engine[..], b" name=", &name, b"\n"] {
        text.extend_from_slice(part);
    }
    recoverable(string::append(input, text))?.and(name_read).and(engine_read)
}

/// Separates an error after which the input is at the end of the string, so that reading can
/// continue, from other errors.
fn recoverable(read: Result<(), Error>) -> Result<Result<(), Error>, Error> {
    match read {
        Ok(()) => Ok(Ok(())),
        Err(error @ Error::Compressed(_)) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}
