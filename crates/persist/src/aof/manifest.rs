//! The manifest: the list of the files that an append-only file consists of.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.1.incr.aof seq 1 type h
//! file appendonly.aof.2.incr.aof seq 2 type i startoffset 1250
//! ```
//!
//! Each line is a file: the base (`b`), at most one; incremental files (`i`) in the order of their
//! numbers; and superseded files, the history (`h`). A load reads the base, then the incremental
//! files. `startoffset` and `endoffset` are positions in the log. Lines that begin with `#` and
//! pairs with an unknown first word are ignored. The first line that Weft writes ends with a seal:
//! see `manifest_seal`.
//!
//! The text is parsed as strictly as Redis parses it. Whether the files exist is not checked here.

use std::fmt;

use base::{number, quote};

use super::manifest_seal::{self, LogId};
use super::names::AofNames;

/// The longest line with its end.
pub const LINE_BYTES_MAX: usize = 1024;
/// The longest manifest that is read. A line has about 50 bytes.
pub const BYTES_MAX: u64 = 16 << 20;

const WORDS_MIN: usize = 6;

/// The use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileType {
    /// All data as of a moment.
    Base,
    /// Superseded by a base.
    History,
    /// Commands that were written from a moment on.
    Incremental,
}

impl FileType {
    fn letter(self) -> u8 {
        match self {
            Self::Base => b'b',
            Self::History => b'h',
            Self::Incremental => b'i',
        }
    }
}

/// A file of an append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its name within the directory.
    pub name: Vec<u8>,
    /// Its number among the files of its type.
    pub sequence: u64,
    /// Its use.
    pub file_type: FileType,
    /// The position in the log where it begins.
    pub start_offset: Option<u64>,
    /// The position in the log where it ends, if it was closed.
    pub end_offset: Option<u64>,
}

impl ManifestEntry {
    /// An entry without positions.
    pub fn new(name: Vec<u8>, sequence: u64, file_type: FileType) -> Self {
        Self { name, sequence, file_type, start_offset: None, end_offset: None }
    }
}

/// The files of an append-only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All data as of a moment.
    pub base: Option<ManifestEntry>,
    /// The commands since then, in order.
    pub incremental: Vec<ManifestEntry>,
    /// Superseded files.
    pub history: Vec<ManifestEntry>,
    /// The log that continues where the files end.
    pub log: Option<LogId>,
}

/// Why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The number of the line, from 1; 0 for the manifest as a whole.
    pub line: usize,
    /// The beginning of the line, to show it.
    pub text: Vec<u8>,
    /// The fault.
    pub fault: ManifestFault,
}

/// A fault in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestFault {
    /// It has no lines.
    Empty,
    /// A line is too long, or does not end.
    LongLine,
    /// A line does not consist of pairs of words, lacks a required one, or has an invalid value.
    Format,
    /// A name is a path.
    Path,
    /// There are two bases.
    TwoBases,
    /// The number of an incremental file is not higher than that of the one before.
    Order,
    /// A file has an unknown type.
    Type,
    /// The text does not match its checksum.
    Checksum,
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "Found an empty AOF manifest",
            Self::LongLine => "The AOF manifest file contains too long line",
            Self::Format => "Invalid AOF manifest file format",
            Self::Path => "File can't be a path, just a filename",
            Self::TwoBases => "Found duplicate base file information",
            Self::Order => "Found a non-monotonic sequence number",
            Self::Type => "Unknown AOF file type",
            Self::Checksum => {
                "the manifest does not match its checksum; after a change on purpose, remove \
                 'checksum' and the word after it"
            }
        })
    }
}

/// How many bytes of a line are shown.
const SHOWN_BYTES_MAX: usize = 128;

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)?;
        if self.line > 0 {
            let mut quoted = Vec::new();
            quote::push_quoted(&mut quoted, &self.text);
            write!(f, ", at line {}: {}", self.line, String::from_utf8_lossy(&quoted))?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let mut manifest = Self::default();
        if text.is_empty() {
            return Err(ManifestError { line: 0, text: Vec::new(), fault: ManifestFault::Empty });
        }
        let is_intact = manifest_seal::is_intact(text);
        for (index, line) in ManifestLines(text).enumerate() {
            let added = match () {
                () if index == 0 && !is_intact => Err(ManifestFault::Checksum),
                () if line.starts_with(b"#") => Ok(()),
                () => manifest.add_line(line, index == 0),
            };
            added.map_err(|fault| ManifestError {
                line: index + 1,
                text: line[..line.len().min(SHOWN_BYTES_MAX)].trim_ascii().to_vec(),
                fault,
            })?;
        }
        Ok(manifest)
    }

    fn add_line(&mut self, line: &[u8], is_first: bool) -> Result<(), ManifestFault> {
        // Redis reads lines as C strings, which end at a zero byte.
        if !line.ends_with(b"\n") || line.contains(&0) {
            return Err(ManifestFault::LongLine);
        }
        let words = quote::split_args(line).ok_or(ManifestFault::Format)?;
        let entry = parse_line(&words)?;
        self.add_seal(&words, is_first)?;
        match entry.file_type {
            FileType::Base if self.base.is_some() => return Err(ManifestFault::TwoBases),
            FileType::Base => self.base = Some(entry),
            FileType::History => self.history.push(entry),
            FileType::Incremental => {
                let last = self.incremental.last();
                if last.is_some_and(|last| entry.sequence <= last.sequence) {
                    return Err(ManifestFault::Order);
                }
                self.incremental.push(entry);
            }
        }
        Ok(())
    }

    /// Takes the log from a line. A checksum is valid only in the first line, where it was
    /// verified.
    fn add_seal(&mut self, words: &[Vec<u8>], is_first: bool) -> Result<(), ManifestFault> {
        for pair in words.chunks_exact(2) {
            let [word, value] = pair else { return Err(ManifestFault::Format) };
            let is_known = is_first && word == b"checksum";
            if !is_known && manifest_seal::is_checksum(word, value) {
                return Err(ManifestFault::Checksum);
            }
            if word == manifest_seal::LOG.as_bytes() {
                self.log = manifest_seal::log(value);
            }
        }
        Ok(())
    }

    /// The text with a seal.
    pub fn sealed(&self) -> Vec<u8> {
        manifest_seal::sealed(&self.write(), self.log)
    }

    /// The text without a seal: a line for each file.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in self.base.iter().chain(&self.history).chain(&self.incremental) {
            write_line(&mut out, entry);
        }
        out
    }

    /// Whether there is nothing to load.
    pub fn has_no_data(&self) -> bool {
        self.base.is_none() && self.incremental.is_empty()
    }

    /// The files that are loaded, in order.
    pub fn load_order(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.base.iter().chain(&self.incremental)
    }

    /// An entry of a file to load. Only Weft's positions are those of the bytes in the files.
    pub(crate) fn trusted(&self, entry: &ManifestEntry) -> ManifestEntry {
        let end_offset = entry.end_offset.filter(|_| self.log.is_some());
        ManifestEntry { end_offset, ..entry.clone() }
    }

    /// The manifest for other names of the same files in another directory, and the name of a new
    /// file there. A server that uses that directory appends to the new file only, so that the
    /// files that both directories have stay as they are.
    pub fn of_second_names(&self, names: &AofNames) -> (Self, Vec<u8>) {
        let sequence = self.free_sequence(FileType::Incremental);
        let name = names.incremental(sequence);
        let mut incremental = self.incremental.clone();
        incremental.push(ManifestEntry::new(name.clone(), sequence, FileType::Incremental));
        (Self { base: self.base.clone(), incremental, ..Self::default() }, name)
    }

    /// A number that no file of this type has.
    pub fn free_sequence(&self, file_type: FileType) -> u64 {
        // Files of the history may have had any type.
        let all = self.base.iter().filter(|_| file_type == FileType::Base);
        let all = all.chain(self.incremental.iter().filter(|_| file_type != FileType::Base));
        all.chain(&self.history).map(|entry| entry.sequence).max().unwrap_or(0).saturating_add(1)
    }

    /// Moves the base and the first `incremental` incremental files to the history.
    pub fn retire(&mut self, incremental: usize) {
        let base = self.base.take();
        let retired = base.into_iter().chain(self.incremental.drain(..incremental));
        self.history
            .extend(retired.map(|entry| ManifestEntry { file_type: FileType::History, ..entry }));
    }
}

/// Lines with their ends. A line that is too long comes in pieces, as Redis reads it.
struct ManifestLines<'a>(&'a [u8]);

impl<'a> Iterator for ManifestLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = self.0.len().min(LINE_BYTES_MAX);
        let end = memchr::memchr(b'\n', &self.0[..len]).map_or(len, |at| at + 1);
        let (line, rest) = self.0.split_at(end);
        self.0 = rest;
        (!line.is_empty()).then_some(line)
    }
}

fn parse_line(words: &[Vec<u8>]) -> Result<ManifestEntry, ManifestFault> {
    if words.len() < WORDS_MIN || !words.len().is_multiple_of(2) {
        return Err(ManifestFault::Format);
    }
    let (mut name, mut sequence, mut letter) = (None, None, None);
    let (mut start_offset, mut end_offset) = (None, None);
    for pair in words.chunks_exact(2) {
        let [word, value] = pair else { return Err(ManifestFault::Format) };
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted.as_bytes());
        if is("file") {
            if value.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
                return Err(ManifestFault::Path);
            }
            // "." and ".." are directories.
            let is_name = !value.is_empty() && value != b"." && value != b"..";
            name = Some(value.clone()).filter(|_| is_name && !value.contains(&0));
        } else if is("seq") {
            sequence = leading_number(value).filter(|sequence| *sequence > 0);
        } else if is("type") {
            letter = value.first().copied();
        } else if is("startoffset") {
            start_offset = leading_number(value);
        } else if is("endoffset") {
            end_offset = leading_number(value);
        }
    }
    let (Some(name), Some(sequence), Some(letter)) = (name, sequence, letter) else {
        return Err(ManifestFault::Format);
    };
    let types = [FileType::Base, FileType::History, FileType::Incremental];
    let file_type = types.into_iter().find(|known| known.letter() == letter);
    let file_type = file_type.ok_or(ManifestFault::Type)?;
    Ok(ManifestEntry { name, sequence, file_type, start_offset, end_offset })
}

/// The number at the beginning of a text, whatever follows, as Redis reads it. `None` for a
/// negative number, which means that there is none.
fn leading_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zeros = text[..digits].iter().take_while(|digit| **digit == b'0').count();
    let significant = &text[zeros..digits];
    let value = if significant.is_empty() { 0 } else { number::parse_i64(significant)? };
    if digits == 0 { None } else { u64::try_from(value).ok() }
}

fn write_line(out: &mut Vec<u8>, entry: &ManifestEntry) {
    out.extend_from_slice(b"file ");
    // The name may begin with '#', because the line does not.
    let is_plain = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'\\' | b'"' | b'\'');
    if entry.name.iter().all(is_plain) {
        out.extend_from_slice(&entry.name);
    } else {
        quote::push_quoted(out, &entry.name);
    }
    out.extend_from_slice(b" seq ");
    number::push_u64(out, entry.sequence);
    out.extend_from_slice(b" type ");
    out.push(entry.file_type.letter());
    for (word, offset) in [("startoffset", entry.start_offset), ("endoffset", entry.end_offset)] {
        if let Some(offset) = offset {
            out.push(b' ');
            out.extend_from_slice(word.as_bytes());
            out.push(b' ');
            number::push_u64(out, offset);
        }
    }
    out.push(b'\n');
}
