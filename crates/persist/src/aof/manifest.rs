//! The manifest: which files an append-only file consists of.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.1.incr.aof seq 1 type h
//! file appendonly.aof.2.incr.aof seq 2 type i startoffset 1250
//! ```
//!
//! A line is a file: the base (`b`), of which there is one at most; incremental files (`i`) in the
//! order of their numbers; and those of the history (`h`), which nobody needs any more. They are
//! read in this order: base, incremental files. `startoffset` and `endoffset` are positions in the
//! log. Lines that begin with `#` and pairs of unknown words mean nothing. The first line of a
//! manifest from here ends with a seal: see `manifest_seal`.
//!
//! Only text is looked at here, as strictly as Redis does; whether the files exist is seen when
//! they are opened.

use std::fmt;

use base::{number, quote};

use super::manifest_seal::{self, LogId};

/// Bytes of a line with its end.
pub const LINE_BYTES_MAX: usize = 1024;
/// Bytes of a manifest that is read. A file has about 50.
pub const BYTES_MAX: u64 = 16 << 20;

const WORDS_MIN: usize = 6;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileType {
    /// All data as of a moment.
    Base,
    /// Needed by nobody.
    History,
    /// What was written from a moment on.
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
pub struct Entry {
    /// Its name within the directory.
    pub name: Vec<u8>,
    /// Its number among those of its type.
    pub sequence: u64,
    /// What it is for.
    pub file_type: FileType,
    /// The position in the log where it begins.
    pub start_offset: Option<u64>,
    /// The position in the log where it ends, if it was closed.
    pub end_offset: Option<u64>,
}

impl Entry {
    /// An entry without positions.
    pub fn new(name: Vec<u8>, sequence: u64, file_type: FileType) -> Self {
        Self { name, sequence, file_type, start_offset: None, end_offset: None }
    }
}

/// The files of an append-only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All data as of a moment.
    pub base: Option<Entry>,
    /// What was written since, in its order.
    pub incremental: Vec<Entry>,
    /// What nobody needs.
    pub history: Vec<Entry>,
    /// The log that goes on where the files end.
    pub log: Option<LogId>,
}

/// Why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The number of the line, from 1; 0 for the whole.
    pub line: usize,
    /// The line, as much of it as is shown.
    pub text: Vec<u8>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no lines.
    Empty,
    /// A line is too long, or does not end.
    LongLine,
    /// A line is not made of pairs of words, or lacks some, or has a value that is none.
    Format,
    /// A name is a path.
    Path,
    /// There are two bases.
    TwoBases,
    /// An incremental file has no higher number than the one before.
    Order,
    /// A file has an unknown type.
    Type,
    /// The text is not what was written here.
    Checksum,
}

impl fmt::Display for Fault {
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
                "the manifest does not have its checksum; who has changed it on purpose removes \
                 'checksum' and the word behind it"
            }
        })
    }
}

/// Bytes of a line that are shown.
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
    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let mut manifest = Self::default();
        if text.is_empty() {
            return Err(ManifestError { line: 0, text: Vec::new(), fault: Fault::Empty });
        }
        let seal = manifest_seal::check(text);
        for (index, line) in Lines(text).enumerate() {
            let added = match seal {
                Err(fault) if index == 0 => Err(fault),
                _ if line.starts_with(b"#") => Ok(()),
                _ => manifest.add_line(line, index == 0),
            };
            added.map_err(|fault| ManifestError {
                line: index + 1,
                text: line[..line.len().min(SHOWN_BYTES_MAX)].trim_ascii().to_vec(),
                fault,
            })?;
        }
        Ok(manifest)
    }

    fn add_line(&mut self, line: &[u8], is_first: bool) -> Result<(), Fault> {
        // Redis reads lines as C strings, which end at a zero.
        if !line.ends_with(b"\n") || line.contains(&0) {
            return Err(Fault::LongLine);
        }
        let words = quote::split_args(line).ok_or(Fault::Format)?;
        let entry = parse_line(&words)?;
        self.add_seal(&words, is_first)?;
        match entry.file_type {
            FileType::Base if self.base.is_some() => return Err(Fault::TwoBases),
            FileType::Base => self.base = Some(entry),
            FileType::History => self.history.push(entry),
            FileType::Incremental => {
                let last = self.incremental.last();
                if last.is_some_and(|last| entry.sequence <= last.sequence) {
                    return Err(Fault::Order);
                }
                self.incremental.push(entry);
            }
        }
        Ok(())
    }

    /// Takes the log of a line. A checksum that was not looked at is in a wrong place.
    fn add_seal(&mut self, words: &[Vec<u8>], is_first: bool) -> Result<(), Fault> {
        for pair in words.chunks_exact(2) {
            let [word, value] = pair else { return Err(Fault::Format) };
            let is_known = is_first && word == b"checksum";
            if !is_known && manifest_seal::is_checksum(word, value) {
                return Err(Fault::Checksum);
            }
            if word == manifest_seal::LOG.as_bytes() {
                self.log = manifest_seal::log(value);
            }
        }
        Ok(())
    }

    /// The text, with a seal.
    pub fn sealed(&self) -> Vec<u8> {
        manifest_seal::sealed(&self.write(), self.log)
    }

    /// A line for each file.
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

    /// The files in the order in which they are loaded.
    pub fn load_order(&self) -> impl Iterator<Item = &Entry> {
        self.base.iter().chain(&self.incremental)
    }

    /// A number that no file of a type has.
    pub fn free_sequence(&self, file_type: FileType) -> u64 {
        // Those of the history may have had any type.
        let all = self.base.iter().filter(|_| file_type == FileType::Base);
        let all = all.chain(self.incremental.iter().filter(|_| file_type != FileType::Base));
        all.chain(&self.history).map(|entry| entry.sequence).max().unwrap_or(0).saturating_add(1)
    }

    /// Makes the base a part of the history, and the first `incremental` of the other files.
    pub fn retire(&mut self, incremental: usize) {
        let base = self.base.take();
        let retired = base.into_iter().chain(self.incremental.drain(..incremental));
        self.history.extend(retired.map(|entry| Entry { file_type: FileType::History, ..entry }));
    }
}

/// Lines with their ends; those that are too long in pieces, as Redis reads them.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = self.0.len().min(LINE_BYTES_MAX);
        let end = memchr::memchr(b'\n', &self.0[..len]).map_or(len, |at| at + 1);
        let (line, rest) = self.0.split_at(end);
        self.0 = rest;
        (!line.is_empty()).then_some(line)
    }
}

fn parse_line(words: &[Vec<u8>]) -> Result<Entry, Fault> {
    if words.len() < WORDS_MIN || !words.len().is_multiple_of(2) {
        return Err(Fault::Format);
    }
    let (mut name, mut sequence, mut letter) = (None, None, None);
    let (mut start_offset, mut end_offset) = (None, None);
    for pair in words.chunks_exact(2) {
        let [word, value] = pair else { return Err(Fault::Format) };
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted.as_bytes());
        if is("file") {
            if value.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
                return Err(Fault::Path);
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
        return Err(Fault::Format);
    };
    let types = [FileType::Base, FileType::History, FileType::Incremental];
    let file_type = types.into_iter().find(|known| known.letter() == letter);
    let file_type = file_type.ok_or(Fault::Type)?;
    Ok(Entry { name, sequence, file_type, start_offset, end_offset })
}

/// The number at the beginning of a text, whatever follows, as Redis reads it; none below 0, which
/// stands for none.
fn leading_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let zeros = text[..digits].iter().take_while(|digit| **digit == b'0').count();
    let significant = &text[zeros..digits];
    let value = if significant.is_empty() { 0 } else { number::parse_i64(significant)? };
    if digits == 0 { None } else { u64::try_from(value).ok() }
}

fn write_line(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(b"file ");
    // A line is a comment when it begins with '#', so a name may.
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
