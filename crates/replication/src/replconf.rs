//! REPLCONF: a replica's description of itself, and its ACKs.
//!
//! Options come as pairs of name and value, and are processed in order: those before a wrong one
//! stay set. A primary ignores capabilities that it does not know, and refuses options. The options
//! of the second connection of Redis 8 and Valkey 8 (`rdb-channel` and its relatives) and of their
//! cluster mode are among the unknown ones, so both peers use one connection.

use base::number::parse_i64;
use base::quote::split_args;
use resp::Args;

/// The longest address; 255 in both peers.
const IP_BYTES_MAX: usize = 255;
/// How much of a wrong argument an error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// The options that a client set by REPLCONF, before or after PSYNC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaOptions {
    /// The port at which the replica can be reached; 0 if it sent none.
    pub listening_port: i64,
    /// The address at which the replica can be reached, instead of that of its connection.
    pub ip_address: Option<Vec<u8>>,
    /// `capa eof`: the replica reads RDB files that end with a mark.
    pub eof: bool,
    /// `capa psync2`: the replica reads the id of +CONTINUE.
    pub psync2: bool,
    /// The version, which Valkey 8 and later send.
    pub version: Option<PeerVersion>,
    /// The replica wants an RDB file and no stream.
    pub rdb_only: bool,
    /// The replica wants only a part of the RDB file.
    pub rdb_filter: Option<RdbFilter>,
}

/// The contents of an RDB file after `rdb-filter-only`: no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdbFilter {
    /// Whether it has the functions.
    pub functions: bool,
}

/// A version of Valkey: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerVersion(pub [u8; 3]);

impl PeerVersion {
    /// Reads `x.y.z`, each at most 255.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.split(|byte| *byte == b'.');
        let mut next = || u8::try_from(parse_i64(parts.next()?)?).ok();
        let version = [next()?, next()?, next()?];
        parts.next().is_none().then_some(Self(version))
    }
}

/// The result of REPLCONF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplconfAnswer {
    /// +OK.
    Ok,
    /// No reply: the replica has applied its primary's stream up to `applied`.
    Ack {
        /// The last applied byte.
        applied: u64,
        /// The last byte in its synced append-only file.
        durable: Option<u64>,
    },
    /// No reply: the receiver, if it is a replica, sends its primary an ACK.
    GetAck,
    /// No reply and no effect.
    Ignored,
}

/// Why an option is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplconfError {
    /// A name without a value.
    Syntax,
    /// A value that is no number.
    NotInteger,
    /// A value other than 0 and 1.
    OutOfRange,
    /// A long address, with its length.
    IpTooLong(usize),
    /// A filter with an open quote.
    MissingFilter,
    /// A filter that does not exist.
    UnknownFilter(Vec<u8>),
    /// A version that is not of the form x.y.z.
    VersionFormat(Vec<u8>),
    /// An option that does not exist.
    UnknownOption(Vec<u8>),
}

impl ReplconfError {
    /// The reply, without its `-`.
    pub fn text(&self) -> Vec<u8> {
        let with = |text: &str, arg: &[u8]| [text.as_bytes(), arg].concat();
        match self {
            Self::Syntax => b"ERR syntax error".to_vec(),
            Self::NotInteger => b"ERR value is not an integer or out of range".to_vec(),
            Self::OutOfRange => b"ERR value is out of range, value must between 0 and 1".to_vec(),
            Self::IpTooLong(bytes) => format!(
                "ERR REPLCONF ip-address provided by replica instance is too long: {bytes} bytes"
            )
            .into_bytes(),
            Self::MissingFilter => b"ERR Missing rdb-filter-only values".to_vec(),
            Self::UnknownFilter(name) => with("ERR Unsupported rdb-filter-only option: ", name),
            Self::VersionFormat(text) => with("ERR Unrecognized version format: ", text),
            Self::UnknownOption(name) => with("ERR Unrecognized REPLCONF option: ", name),
        }
    }
}

impl ReplicaOptions {
    /// Whether a synchronization is refused: a filtered RDB file has no length in advance.
    pub fn is_filtered_without_eof(&self) -> bool {
        self.rdb_filter.is_some() && !self.eof
    }

    /// Applies REPLCONF of a client, which `is_replica` after SYNC or PSYNC.
    ///
    /// # Errors
    /// At the first option that is refused.
    pub fn replconf(
        &mut self,
        args: &Args<'_>,
        is_replica: bool,
    ) -> Result<ReplconfAnswer, ReplconfError> {
        if args.len().is_multiple_of(2) {
            return Err(ReplconfError::Syntax);
        }
        for at in (1..args.len()).step_by(2) {
            let (name, value) = (args.text(at), args.text(at + 1));
            if name.eq_ignore_ascii_case(b"ack") {
                let ack = is_replica.then(|| ack(&args.tail(at))).flatten();
                return Ok(ack.unwrap_or(ReplconfAnswer::Ignored));
            }
            if name.eq_ignore_ascii_case(b"getack") {
                return Ok(ReplconfAnswer::GetAck);
            }
            self.set(name, value)?;
        }
        Ok(ReplconfAnswer::Ok)
    }

    fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), ReplconfError> {
        match name.to_ascii_lowercase().as_slice() {
            b"listening-port" => {
                self.listening_port = parse_i64(value).ok_or(ReplconfError::NotInteger)?;
            }
            b"ip-address" if value.len() > IP_BYTES_MAX => {
                return Err(ReplconfError::IpTooLong(value.len()));
            }
            b"ip-address" => self.ip_address = Some(value.to_vec()),
            b"capa" => {
                self.eof |= value.eq_ignore_ascii_case(b"eof");
                self.psync2 |= value.eq_ignore_ascii_case(b"psync2");
            }
            b"version" => {
                let version = PeerVersion::parse(value);
                let wrong = || ReplconfError::VersionFormat(shown(value));
                self.version = Some(version.ok_or_else(wrong)?);
            }
            b"rdb-only" => {
                self.rdb_only = match parse_i64(value).ok_or(ReplconfError::NotInteger)? {
                    0 => false,
                    1 => true,
                    _ => return Err(ReplconfError::OutOfRange),
                };
            }
            b"rdb-filter-only" => self.filter(value)?,
            _ => return Err(ReplconfError::UnknownOption(shown(name))),
        }
        Ok(())
    }

    fn filter(&mut self, value: &[u8]) -> Result<(), ReplconfError> {
        let words = split_args(value).ok_or(ReplconfError::MissingFilter)?;
        let filter = self.rdb_filter.insert(RdbFilter { functions: false });
        for word in words {
            match word.eq_ignore_ascii_case(b"functions") {
                true => filter.functions = true,
                false => return Err(ReplconfError::UnknownFilter(shown(&word))),
            }
        }
        Ok(())
    }
}

/// Reads `ACK offset [FACK offset]`. Negative offsets are those of a replica without a history.
fn ack(args: &Args<'_>) -> Option<ReplconfAnswer> {
    let offset = |at| parse_i64(args.text(at)).map(|offset| u64::try_from(offset).unwrap_or(0));
    let applied = offset(1)?;
    let durable = args.text(2).eq_ignore_ascii_case(b"fack").then(|| offset(3)).flatten();
    Some(ReplconfAnswer::Ack { applied, durable })
}

fn shown(arg: &[u8]) -> Vec<u8> {
    arg[..arg.len().min(SHOWN_BYTES_MAX)].to_vec()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use resp::CopiedArgs;

    use super::*;

    type Answer = Result<ReplconfAnswer, ReplconfError>;

    fn send(options: &mut ReplicaOptions, words: &[&str], is_replica: bool) -> Answer {
        let words = ["REPLCONF"].iter().chain(words).map(|word| word.as_bytes());
        options.replconf(&CopiedArgs::of(words).args(), is_replica)
    }

    /// The options after one command, separated by spaces.
    fn options(line: &str) -> ReplicaOptions {
        let mut options = ReplicaOptions::default();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(send(&mut options, &words, false), Ok(ReplconfAnswer::Ok), "{line}");
        options
    }

    fn error(words: &[&str]) -> String {
        let error = send(&mut ReplicaOptions::default(), words, false).unwrap_err();
        String::from_utf8(error.text()).unwrap()
    }

    #[test]
    fn options_of_both_peers_are_taken() {
        let set = options("listening-port 6380 ip-address host CAPA EOF capa psync2 capa x");
        let wanted = ReplicaOptions {
            listening_port: 6380,
            ip_address: Some(b"host".to_vec()),
            eof: true,
            psync2: true,
            ..ReplicaOptions::default()
        };
        assert_eq!(set, wanted);
        // The second channel is not announced.
        let known = options("capa eof capa rdb-channel-repl capa dual-channel");
        assert_eq!(known, ReplicaOptions { eof: true, ..ReplicaOptions::default() });
        assert_eq!(options("version 9.1.2").version, Some(PeerVersion([9, 1, 2])));
        assert!(options("rdb-only 1").rdb_only);
        assert!(!options("rdb-only 1 rdb-only 0").rdb_only);
        let filter = |words: &[&str]| {
            let mut options = ReplicaOptions::default();
            send(&mut options, words, false).unwrap();
            options.rdb_filter
        };
        let functions = |functions| Some(RdbFilter { functions });
        assert_eq!(filter(&["rdb-filter-only", ""]), functions(false));
        assert_eq!(filter(&["rdb-filter-only", " 'functions' "]), functions(true));
        assert_eq!(filter(&["rdb-only", "1"]), None);
        assert!(options("rdb-filter-only functions").is_filtered_without_eof());
        assert!(!options("rdb-filter-only functions capa eof").is_filtered_without_eof());
    }

    #[test]
    fn errors_have_the_text_of_the_peers_and_keep_what_came_before() {
        let not_integer = "ERR value is not an integer or out of range";
        for (words, text) in [
            (&["capa"][..], "ERR syntax error"),
            (&["listening-port", "x"], not_integer),
            (&["rdb-only", "x"], not_integer),
            (&["rdb-only", "2"], "ERR value is out of range, value must between 0 and 1"),
            (&["rdb-filter-only", "'"], "ERR Missing rdb-filter-only values"),
            (&["rdb-filter-only", "keys"], "ERR Unsupported rdb-filter-only option: keys"),
            (&["version", "9.1"], "ERR Unrecognized version format: 9.1"),
            (&["version", "9.1.256"], "ERR Unrecognized version format: 9.1.256"),
            (&["Frob", "1"], "ERR Unrecognized REPLCONF option: Frob"),
            (&["rdb-channel", "1"], "ERR Unrecognized REPLCONF option: rdb-channel"),
        ] {
            assert_eq!(error(words), text);
        }
        let long = "a".repeat(256);
        let text = "ERR REPLCONF ip-address provided by replica instance is too long: 256 bytes";
        assert_eq!(error(&["ip-address", &long]), text);
        assert_eq!(options(&format!("ip-address {}", &long[1..])).ip_address.unwrap().len(), 255);
        let mut kept = ReplicaOptions::default();
        assert!(send(&mut kept, &["capa", "eof", "x", "1", "capa", "psync2"], false).is_err());
        assert_eq!(kept, ReplicaOptions { eof: true, ..ReplicaOptions::default() });
    }

    #[test]
    fn acks_come_from_replicas_and_get_no_reply() {
        let ack = |words: &[&str], is_replica| {
            send(&mut ReplicaOptions::default(), words, is_replica).unwrap()
        };
        let acked = |applied, durable| ReplconfAnswer::Ack { applied, durable };
        assert_eq!(ack(&["ACK", "1050"], true), acked(1050, None));
        assert_eq!(ack(&["ack", "1050", "fack", "7"], true), acked(1050, Some(7)));
        assert_eq!(ack(&["ACK", "-1", "FACK", "-1"], true), acked(0, Some(0)));
        assert_eq!(ack(&["ACK", "5", "x", "1"], true), acked(5, None));
        assert_eq!(ack(&["capa", "eof", "ACK", "5"], true), acked(5, None));
        assert_eq!(ack(&["ACK", "x"], true), ReplconfAnswer::Ignored);
        assert_eq!(ack(&["ACK", "1050"], false), ReplconfAnswer::Ignored);
        assert_eq!(ack(&["GETACK", "*"], true), ReplconfAnswer::GetAck);
    }
}
