//! A request compiled to RESP bytes.
//!
//! A request is one command, or several that are sent, answered and counted together. Only decimal
//! digits of fixed width differ from one request to the next: the number of the key, or a random
//! integer. A request is therefore a fixed byte string with a list of digit fields, and the next
//! one is made by writing a few digits, without formatting or allocation. Only a request whose
//! values differ in length is copied together each time.

use std::ops::Range;

use fastrand::Rng;

use super::keys::KeySource;
use super::notation::{
    DigitField, RandomDraw, TemplateArgument, expand_groups, table_argument, word_argument,
};
use super::shape::{RequestShape, ValueSizes};
use crate::Error;
use crate::client::replies::ExpectedReplies;

/// The word that ends a command within a request.
const COMMAND_END: &str = ";";

/// The longest request.
const REQUEST_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// One request, whose fields are drawn before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    fields: Vec<DigitField>,
    /// The positions of values of varying length, heads included.
    values: Vec<usize>,
    /// The bytes that such values begin with.
    value: Vec<u8>,
    sizes: Option<ValueSizes>,
    /// The first argument with the number of a key.
    key_argument: Option<Range<usize>>,
    answer: ExpectedReplies,
}

impl Template {
    /// Compiles the notation of the [workload table](super::workload::table).
    pub fn compile(text: &str, shape: &RequestShape) -> Result<Template, Error> {
        let mut template = Template::empty(shape)?;
        let flat = expand_groups(text)?;
        let words: Vec<&str> = flat.split_ascii_whitespace().collect();
        for command in words.split(|word| *word == COMMAND_END) {
            let name = command
                .first()
                .ok_or_else(|| Error::Usage(format!("template '{text}' has an empty command")))?;
            template.begin_command(command.len(), *name == "EXEC");
            for word in command {
                let has_key = template.fields.iter().any(DigitField::is_key);
                let argument = table_argument(word, shape, has_key)?;
                template.push(argument)?;
            }
        }
        Ok(template)
    }

    /// Compiles one command of the command line, in which `__key__` stands for a key of the range,
    /// `__data__` for a value and `__rand_int__` for the twelve digits of a number of the range.
    pub fn of_words(words: &[Vec<u8>], shape: &RequestShape) -> Result<Template, Error> {
        let mut template = Template::empty(shape)?;
        if words.is_empty() {
            return Err(Error::Usage("a command is empty".into()));
        }
        template.begin_command(words.len(), false);
        for word in words {
            let argument = word_argument(word, shape)?;
            template.push(argument)?;
        }
        Ok(template)
    }

    fn empty(shape: &RequestShape) -> Result<Template, Error> {
        shape.check()?;
        Ok(Template {
            bytes: Vec::new(),
            fields: Vec::new(),
            values: Vec::new(),
            value: shape.value(),
            sizes: shape.sizes.clone(),
            key_argument: None,
            answer: ExpectedReplies { replies: 0, is_transaction: false },
        })
    }

    fn begin_command(&mut self, arguments: usize, is_exec: bool) {
        self.bytes.extend_from_slice(format!("*{arguments}\r\n").as_bytes());
        let replies = self.answer.replies + 1;
        self.answer = ExpectedReplies { replies, is_transaction: is_exec };
    }

    fn push(&mut self, argument: TemplateArgument) -> Result<(), Error> {
        let TemplateArgument { body, fields, has_value } = argument;
        if has_value && !body.is_empty() {
            let text = "a value of varying size is an argument of its own";
            return Err(Error::Usage(text.into()));
        }
        if has_value {
            self.values.push(self.bytes.len());
        }
        if self.bytes_max().saturating_add(body.len()) > REQUEST_BYTES_MAX {
            return Err(Error::Usage("a request has at most 1 GB".into()));
        }
        if has_value {
            return Ok(());
        }
        self.bytes.extend_from_slice(format!("${}\r\n", body.len()).as_bytes());
        let start = self.bytes.len();
        if self.key_argument.is_none() && fields.iter().any(DigitField::is_key) {
            self.key_argument = Some(start..start + body.len());
        }
        self.fields.extend(fields.into_iter().map(|f| DigitField { at: f.at + start, ..f }));
        self.bytes.extend_from_slice(&body);
        self.bytes.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The replies to one request.
    pub fn answer(&self) -> ExpectedReplies {
        self.answer
    }

    /// The length of a request in bytes, if all have the same.
    pub fn fixed_bytes(&self) -> Option<usize> {
        self.values.is_empty().then_some(self.bytes.len())
    }

    /// About the length of the longest request in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes.len().saturating_add(self.values.len().saturating_mul(self.value.len()))
    }

    /// The position of the argument with the first key, which decides the node of a cluster.
    pub fn key_argument(&self) -> Option<Range<usize>> {
        self.key_argument.clone()
    }

    /// Appends a request of fixed length, to be drawn there by [`draw`](Self::draw).
    pub fn lay_out(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    /// Draws new values for every field of a request that was [laid out](Self::lay_out).
    #[inline]
    pub fn draw(&self, request: &mut [u8], keys: &mut KeySource, rng: &mut Rng) {
        draw(&self.fields, request, |rng| keys.draw(rng), rng);
    }

    /// Draws the next request. Returns its bytes without values of varying length.
    #[inline]
    pub fn draw_next(&mut self, keys: &mut KeySource, rng: &mut Rng) -> &[u8] {
        draw(&self.fields, &mut self.bytes, |rng| keys.draw(rng), rng);
        &self.bytes
    }

    /// The same with this key in every key field, for a fill key by key.
    pub fn draw_key(&mut self, key: u64, rng: &mut Rng) -> &[u8] {
        draw(&self.fields, &mut self.bytes, |_| key, rng);
        &self.bytes
    }

    /// Appends the request that was drawn last.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>, rng: &mut Rng) {
        let mut start = 0;
        for &at in &self.values {
            let size = self.sizes.as_ref().map_or(0, |sizes| sizes.draw(rng));
            out.extend_from_slice(&self.bytes[start..at]);
            out.extend_from_slice(format!("${size}\r\n").as_bytes());
            out.extend_from_slice(&self.value[..size]);
            out.extend_from_slice(b"\r\n");
            start = at;
        }
        out.extend_from_slice(&self.bytes[start..]);
    }
}

#[inline]
fn draw(
    fields: &[DigitField],
    request: &mut [u8],
    mut next_key: impl FnMut(&mut Rng) -> u64,
    rng: &mut Rng,
) {
    let mut key = 0;
    for field in fields {
        let number = match field.draw {
            RandomDraw::Key => {
                key = next_key(rng);
                key
            }
            RandomDraw::SameKey => key,
            RandomDraw::Integer { low, span } => low + rng.u64(0..span),
        };
        write_digits(&mut request[field.at..field.at + field.width], number);
    }
}

/// Writes `number` right-aligned over all of `digits`.
#[inline]
fn write_digits(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    use crate::load::keys::{Law, ThreadIndex};
    use crate::load::workload::scripts;

    const SHAPE: RequestShape = RequestShape {
        keys: 1000,
        first: 0,
        prefix: Cow::Borrowed("key:"),
        key_bytes: 10,
        value_bytes: 4,
        sizes: None,
    };

    fn drawn(text: &str, shape: &RequestShape, key: u64) -> String {
        let mut template = Template::compile(text, shape).unwrap();
        let (mut request, mut rng) = (Vec::new(), Rng::with_seed(1));
        template.draw_key(key, &mut rng);
        template.append(&mut request, &mut rng);
        assert_eq!(Some(request.len()), template.fixed_bytes());
        String::from_utf8(request).unwrap()
    }

    /// Requests drawn in place.
    fn requests(text: &str, shape: &RequestShape, count: usize) -> Vec<String> {
        let template = Template::compile(text, shape).unwrap();
        let mut keys = KeySource::new(Law::Uniform, shape, ThreadIndex::ONLY).unwrap();
        let (mut request, mut rng) = (Vec::new(), Rng::with_seed(7));
        template.lay_out(&mut request);
        let mut next = || {
            template.draw(&mut request, &mut keys, &mut rng);
            String::from_utf8(request.clone()).unwrap()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn placeholders_become_arguments() {
        let value = String::from_utf8(SHAPE.value()).unwrap();
        assert_eq!(
            drawn("SET a:{key} {value} EX 10", &SHAPE, 42),
            format!(
                "*5\r\n$3\r\nSET\r\n$12\r\na:key:000042\r\n$4\r\n{value}\r\n\
                 $2\r\nEX\r\n$2\r\n10\r\n"
            )
        );
        assert_eq!(drawn("PING", &SHAPE, 0), "*1\r\n$4\r\nPING\r\n");
        assert_eq!(
            drawn("MGET 2*({key}) x", &SHAPE, 999),
            "*4\r\n$4\r\nMGET\r\n$10\r\nkey:000999\r\n$10\r\nkey:000999\r\n$1\r\nx\r\n"
        );
    }

    #[test]
    fn a_request_may_be_several_commands() {
        let text = "WATCH {key} ; MULTI ; 2*(SET a:{same-key} x ;) EXEC";
        let set = "*3\r\n$3\r\nSET\r\n$12\r\na:key:000042\r\n$1\r\nx\r\n";
        assert_eq!(
            drawn(text, &SHAPE, 42),
            format!(
                "*2\r\n$5\r\nWATCH\r\n$10\r\nkey:000042\r\n*1\r\n$5\r\nMULTI\r\n{set}{set}\
                 *1\r\n$4\r\nEXEC\r\n"
            )
        );
        let answer = |text| Template::compile(text, &SHAPE).unwrap().answer();
        assert_eq!(answer(text), ExpectedReplies { replies: 5, is_transaction: true });
        assert_eq!(
            answer("SET EXEC ; GET x"),
            ExpectedReplies { replies: 2, is_transaction: false }
        );
        assert_eq!(answer("PING"), ExpectedReplies::ONE_REPLY);
    }

    #[test]
    fn the_same_key_is_the_one_drawn_before_it() {
        let mut differ = 0;
        for text in requests("X {key} {same-key} {key}", &SHAPE, 100) {
            let keys: Vec<&str> = text.split("\r\n").filter(|a| a.starts_with("key:")).collect();
            assert_eq!((keys.len(), keys[0]), (3, keys[1]));
            differ += usize::from(keys[1] != keys[2]);
        }
        assert!(differ > 90, "{differ}");
    }

    #[test]
    fn scripts_are_single_arguments() {
        let source = scripts::source("get").unwrap();
        let sha1 = scripts::sha1("get").unwrap();
        assert_eq!(
            drawn("X {script:get} {sha1:get}", &SHAPE, 0),
            format!("*3\r\n$1\r\nX\r\n${}\r\n{source}\r\n$40\r\n{sha1}\r\n", source.len())
        );
    }

    #[test]
    fn draws_stay_in_range_and_reach_all_of_it() {
        let shape = RequestShape { keys: 11, ..SHAPE };
        let (mut keys, mut numbers) = ([0u32; 11], [0u32; 10]);
        for text in requests("X {key} {7..9}", &shape, 2000) {
            let arguments: Vec<&str> = text.split("\r\n").collect();
            keys[arguments[4].strip_prefix("key:").unwrap().parse::<usize>().unwrap()] += 1;
            numbers[arguments[6].parse::<usize>().unwrap()] += 1;
        }
        assert!(keys.iter().all(|&n| n > 100), "{keys:?}");
        assert!(numbers[7..].iter().all(|&n| n > 400), "{numbers:?}");
    }

    #[test]
    fn invalid_templates_are_refused() {
        for text in [
            "",
            "GET {ky}",
            "X {9..10}",
            "X {9..1}",
            "X 2*(a",
            "X b*(a)",
            "MULTI ;",
            "a ; ; b",
            "GET {same-key} {key}",
            "EVAL {script:none}",
        ] {
            assert!(Template::compile(text, &SHAPE).is_err(), "{text}");
        }
        let sizes = Some(ValueSizes::range("1-1000000").unwrap());
        let large = RequestShape { sizes, ..SHAPE };
        assert!(Template::compile("MSET 2000*({key} {value})", &large).is_err());
        let narrow = RequestShape { keys: 1001, key_bytes: 7, ..SHAPE };
        assert!(Template::compile("GET {key}", &narrow).is_err());
        assert!(Template::compile("PING", &RequestShape { keys: 0, ..SHAPE }).is_err());
    }

    #[test]
    fn the_range_may_begin_anywhere_and_have_another_prefix() {
        let shape =
            RequestShape { first: 90, keys: 20, prefix: "m-".into(), key_bytes: 6, ..SHAPE };
        assert_eq!(drawn("GET {key}", &shape, 109), "*2\r\n$3\r\nGET\r\n$6\r\nm-0109\r\n");
        let name = |text: &String| text.split("\r\n").nth(4).unwrap().to_owned();
        let names: std::collections::HashSet<String> =
            requests("GET {key}", &shape, 1000).iter().map(name).collect();
        assert_eq!(names.len(), 20);
        assert!(names.contains("m-0090") && names.contains("m-0109"), "{names:?}");
    }

    #[test]
    fn commands_of_the_command_line_have_their_own_placeholders() {
        let words = |text: &str| text.split(' ').map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>();
        let compiled = |text: &str| Template::of_words(&words(text), &SHAPE);
        let mut template =
            compiled("X a{key}__key__b __data__! __rand_int__:__rand_int__").unwrap();
        let mut request = Vec::new();
        template.draw_key(42, &mut Rng::with_seed(1));
        template.append(&mut request, &mut Rng::with_seed(1));
        let value = String::from_utf8(SHAPE.value()).unwrap();
        assert_eq!(
            String::from_utf8(request.clone()).unwrap(),
            format!(
                "*4\r\n$1\r\nX\r\n$17\r\na{{key}}key:000042b\r\n$5\r\n{value}!\r\n\
                 $25\r\n000000000042:000000000042\r\n"
            )
        );
        assert_eq!(&request[template.key_argument().unwrap()], b"a{key}key:000042b");
        assert_eq!(compiled("MULTI").unwrap().answer(), ExpectedReplies::ONE_REPLY);
        assert!(Template::of_words(&[], &SHAPE).is_err());
    }

    #[test]
    fn values_may_differ_in_length() {
        let shape = RequestShape { sizes: Some(ValueSizes::range("0-3").unwrap()), ..SHAPE };
        let mut template = Template::compile("SET {key} {value} EX 10", &shape).unwrap();
        assert_eq!(template.fixed_bytes(), None);
        let (mut rng, mut seen) = (Rng::with_seed(1), [0; 4]);
        for _ in 0..100 {
            let mut request = Vec::new();
            template.draw_key(7, &mut rng);
            template.append(&mut request, &mut rng);
            let text = String::from_utf8(request).unwrap();
            let parts: Vec<&str> = text.split("\r\n").collect();
            assert_eq!((parts[4], parts[7], parts[10]), ("key:000007", "$2", "10"));
            assert_eq!(parts[5], format!("${}", parts[6].len()));
            seen[parts[6].len()] += 1;
        }
        assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
        assert!(Template::compile("SET {key} x{value}", &shape).is_err());
    }
}
