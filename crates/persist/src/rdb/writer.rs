//! Writing a file; see [`reader`](super::reader) for its parts.

use store::Stored;

use super::encode::Encoder;
use super::reader::{Attributes, Sizes};
use super::{SHARED_VERSION, VERSION, length, opcode, string};
use crate::Sink;
use crate::crc64::Crc64;

/// What is collected before it goes on.
const BUFFER_BYTES: usize = 64 << 10;

/// Collects small pieces and computes the checksum of all.
#[derive(Debug)]
struct Buffer<S> {
    sink: S,
    bytes: Vec<u8>,
    checksum: Option<Crc64>,
    /// Bytes that have gone on.
    passed: u64,
}

impl<S: Sink> Buffer<S> {
    fn pass(&mut self) -> Result<(), S::Error> {
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&self.bytes);
        }
        self.sink.put(&self.bytes)?;
        self.passed += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}

impl<S: Sink> Sink for Buffer<S> {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        let mut rest = bytes;
        while self.bytes.len() + rest.len() > BUFFER_BYTES {
            let (now, later) = rest.split_at(BUFFER_BYTES - self.bytes.len());
            self.bytes.extend_from_slice(now);
            self.pass()?;
            rest = later;
        }
        self.bytes.extend_from_slice(rest);
        Ok(())
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether strings are compressed: `rdbcompression`.
    pub compress: bool,
    /// Whether the file ends with its checksum, or with 0: `rdbchecksum`.
    pub checksum: bool,
    /// Whether fields of hashes expire. A file without such fields has the version that Valkey
    /// reads as well.
    pub fields_expire: bool,
}

impl Options {
    /// The version of the file.
    pub fn version(self) -> u16 {
        if self.fields_expire { VERSION } else { SHARED_VERSION }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { compress: true, checksum: true, fields_expire: true }
    }
}

/// Writes a file. The pieces that the sink gets have 64 KB, but the last.
#[derive(Debug)]
pub struct Writer<S> {
    out: Buffer<S>,
    encoder: Encoder,
}

impl<S: Sink> Writer<S> {
    /// Begins a file with its magic.
    ///
    /// # Errors
    /// Those of the sink, as everywhere here.
    pub fn new(sink: S, options: Options) -> Result<Self, S::Error> {
        let checksum = options.checksum.then(Crc64::new);
        let bytes = Vec::with_capacity(BUFFER_BYTES);
        let mut out = Buffer { sink, bytes, checksum, passed: 0 };
        out.put(format!("REDIS{:04}", options.version()).as_bytes())?;
        Ok(Self { out, encoder: Encoder::of_file(options) })
    }

    /// How many bytes have been written, those included that wait for more.
    pub fn written(&self) -> u64 {
        self.out.passed + self.out.bytes.len() as u64
    }

    /// Writes a name and a value about the file. Before all keys; Redis tells its version first.
    ///
    /// # Errors
    /// See `new`.
    pub fn aux(&mut self, name: &[u8], value: &[u8]) -> Result<(), S::Error> {
        self.out.put(&[opcode::AUX])?;
        string::write(&mut self.out, name, None)?;
        self.encoder.string(value, &mut self.out)
    }

    /// Writes the source of a library of functions.
    ///
    /// # Errors
    /// See `new`.
    pub fn function(&mut self, source: &[u8]) -> Result<(), S::Error> {
        self.out.put(&[opcode::FUNCTION])?;
        self.encoder.string(source, &mut self.out)
    }

    /// The keys that follow are in this database, of which the sizes are told.
    ///
    /// # Errors
    /// See `new`.
    pub fn database(&mut self, number: u64, sizes: Sizes) -> Result<(), S::Error> {
        self.select(number)?;
        self.out.put(&[opcode::RESIZE_DB])?;
        self.sizes(sizes)
    }

    /// The keys that follow are in this database.
    ///
    /// # Errors
    /// See `new`.
    pub fn select(&mut self, number: u64) -> Result<(), S::Error> {
        self.encoder.select(number, &mut self.out)
    }

    /// The keys that follow are in this slot of a cluster, of which the sizes are told.
    ///
    /// # Errors
    /// See `new`.
    pub fn slot(&mut self, number: u64, sizes: Sizes) -> Result<(), S::Error> {
        self.out.put(&[opcode::SLOT_INFO])?;
        length::write(&mut self.out, number)?;
        self.sizes(sizes)
    }

    fn sizes(&mut self, sizes: Sizes) -> Result<(), S::Error> {
        length::write(&mut self.out, sizes.keys)?;
        length::write(&mut self.out, sizes.expiring)
    }

    /// Writes a key and its value.
    ///
    /// # Errors
    /// See `new`.
    pub fn key(&mut self, value: Stored<'_>, attributes: Attributes) -> Result<(), S::Error> {
        self.encoder.key(value, attributes, &mut self.out)
    }

    /// Writes keys that [`Encoder::key`] has written elsewhere.
    ///
    /// # Errors
    /// See `new`.
    pub fn keys(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        self.out.put(bytes)
    }

    /// Writes the end. Returns the sink, which has everything now.
    ///
    /// # Errors
    /// See `new`.
    pub fn finish(mut self) -> Result<S, S::Error> {
        self.out.put(&[opcode::END])?;
        self.out.pass()?;
        let checksum = self.out.checksum.map_or(0, |checksum| checksum.value());
        self.out.sink.put(&checksum.to_le_bytes())?;
        Ok(self.out.sink)
    }
}

/// For an [`Encoder`] that writes keys: see [`Writer::keys`].
impl<S: Sink> Sink for Writer<S> {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        self.out.put(bytes)
    }
}

impl Encoder {
    /// Writes that the keys that follow are in this database.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn select<S: Sink>(&mut self, number: u64, out: &mut S) -> Result<(), S::Error> {
        out.put(&[opcode::SELECT_DB])?;
        length::write(out, number)
    }

    /// Writes a key with its value as it stands in a file.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn key<S: Sink>(
        &mut self,
        value: Stored<'_>,
        attributes: Attributes,
        out: &mut S,
    ) -> Result<(), S::Error> {
        attributes.write(out)?;
        out.put(&[self.value_type(value).number()])?;
        self.string(value.key(), out)?;
        self.value(value, out)
    }
}

impl Attributes {
    /// Writes what stands before a value's type.
    pub(super) fn write<S: Sink>(self, out: &mut S) -> Result<(), S::Error> {
        if let Some(at) = self.expires_at {
            out.put(&[opcode::EXPIRES_AT_MS])?;
            out.put(&at.to_le_bytes())?;
        }
        if let Some(seconds) = self.idle_seconds {
            out.put(&[opcode::IDLE])?;
            length::write(out, seconds)?;
        }
        match self.frequency {
            Some(frequency) => out.put(&[opcode::FREQUENCY, frequency]),
            None => Ok(()),
        }
    }
}
