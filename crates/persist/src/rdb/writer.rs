//! Writes a file; see [`reader`](super::reader) for its parts.

use store::Stored;

use super::encode::{Options, ValueEncoder};
use super::reader::{Attributes, DatabaseSizes};
use super::{length, opcode, string};
use crate::ByteSink;
use crate::crc64::Crc64;

/// How many bytes are collected for the sink.
const BUFFER_BYTES: usize = 64 << 10;

/// Collects small pieces for a sink, and computes the checksum of all bytes.
#[derive(Debug)]
struct ChecksumBuffer<S> {
    sink: S,
    bytes: Vec<u8>,
    checksum: Option<Crc64>,
    /// How many bytes the sink has.
    flushed: u64,
}

impl<S: ByteSink> ChecksumBuffer<S> {
    fn flush(&mut self) -> Result<(), S::Error> {
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&self.bytes);
        }
        self.sink.put(&self.bytes)?;
        self.flushed += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}

impl<S: ByteSink> ByteSink for ChecksumBuffer<S> {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        let mut rest = bytes;
        while self.bytes.len() + rest.len() > BUFFER_BYTES {
            let (now, later) = rest.split_at(BUFFER_BYTES - self.bytes.len());
            self.bytes.extend_from_slice(now);
            self.flush()?;
            rest = later;
        }
        self.bytes.extend_from_slice(rest);
        Ok(())
    }
}

/// Writes a file. The sink gets pieces of 64 KB, except the last two.
#[derive(Debug)]
pub struct RdbWriter<S> {
    out: ChecksumBuffer<S>,
    encoder: ValueEncoder,
}

impl<S: ByteSink> RdbWriter<S> {
    /// Begins a file with its magic.
    ///
    /// # Errors
    /// Those of the sink, as for all methods here.
    pub fn new(sink: S, options: Options) -> Result<Self, S::Error> {
        let checksum = options.checksum.then(Crc64::new);
        let bytes = Vec::with_capacity(BUFFER_BYTES);
        let mut out = ChecksumBuffer { sink, bytes, checksum, flushed: 0 };
        out.put(format!("REDIS{:04}", options.version()).as_bytes())?;
        Ok(Self { out, encoder: ValueEncoder::of_file(options) })
    }

    /// How many bytes have been written, including those that the sink does not have yet.
    pub fn written(&self) -> u64 {
        self.out.flushed + self.out.bytes.len() as u64
    }

    /// Writes metadata: a name and a value. To be called before all keys; Redis writes its version
    /// first.
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

    /// Begins a database, and writes its sizes.
    ///
    /// # Errors
    /// See `new`.
    pub fn database(&mut self, number: u64, sizes: DatabaseSizes) -> Result<(), S::Error> {
        self.select(number)?;
        self.out.put(&[opcode::RESIZE_DB])?;
        self.sizes(sizes)
    }

    /// Begins a database, or continues it.
    ///
    /// # Errors
    /// See `new`.
    pub fn select(&mut self, number: u64) -> Result<(), S::Error> {
        self.encoder.select(number, &mut self.out)
    }

    /// Begins a slot of a cluster, and writes its sizes.
    ///
    /// # Errors
    /// See `new`.
    pub fn slot(&mut self, number: u64, sizes: DatabaseSizes) -> Result<(), S::Error> {
        self.out.put(&[opcode::SLOT_INFO])?;
        length::write(&mut self.out, number)?;
        self.sizes(sizes)
    }

    fn sizes(&mut self, sizes: DatabaseSizes) -> Result<(), S::Error> {
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

    /// Writes keys that [`ValueEncoder::key`] encoded.
    ///
    /// # Errors
    /// See `new`.
    pub fn keys(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        self.out.put(bytes)
    }

    /// Writes the end and flushes all bytes. Returns the sink.
    ///
    /// # Errors
    /// See `new`.
    pub fn finish(mut self) -> Result<S, S::Error> {
        self.out.put(&[opcode::END])?;
        self.out.flush()?;
        let checksum = self.out.checksum.map_or(0, |checksum| checksum.value());
        self.out.sink.put(&checksum.to_le_bytes())?;
        Ok(self.out.sink)
    }
}

/// For a [`ValueEncoder`] that writes keys: see [`RdbWriter::keys`].
impl<S: ByteSink> ByteSink for RdbWriter<S> {
    type Error = S::Error;

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        self.out.put(bytes)
    }
}

impl ValueEncoder {
    /// Begins a database, or continues it.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn select<S: ByteSink>(&mut self, number: u64, out: &mut S) -> Result<(), S::Error> {
        out.put(&[opcode::SELECT_DB])?;
        length::write(out, number)
    }

    /// Writes a key with its attributes and its value.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn key<S: ByteSink>(
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
    /// Writes the attributes, which precede the type of the value.
    pub(super) fn write<S: ByteSink>(self, out: &mut S) -> Result<(), S::Error> {
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
