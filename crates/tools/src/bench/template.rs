//! Templates of requests compiled to bytes whose random parts are patched in place.
//!
//! A request is a command, or several that are sent, answered and counted together. All that
//! varies from one request to the next are decimal digits of fixed width: the number of the key, or
//! a random integer. So a request is a fixed byte string plus a list of digit fields, and making
//! the next one means writing a few digits: no formatting, no allocation.

use std::borrow::Cow;

use fastrand::Rng;

use super::replies::Answer;
use super::scripts;
use crate::Error;

/// The prefix of every key; its number follows, padded with zeros.
const KEY_PREFIX: &str = "key:";

/// The word that ends a command within a request.
const COMMAND_END: &str = ";";

/// The most digits a `u64` range can need.
const DIGITS_MAX: usize = 19;

/// The sizes that requests are built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many different keys there are, at least 1.
    pub keys: u64,
    /// The length of a key in bytes: `key:` and a zero-padded number.
    pub key_bytes: usize,
    /// The length of a value in bytes.
    pub value_bytes: usize,
}

impl Default for Shape {
    /// 100,000 keys of 16 bytes (`key:%012d`) and values of 256 bytes.
    fn default() -> Self {
        Shape { keys: 100_000, key_bytes: 16, value_bytes: 256 }
    }
}

impl Shape {
    /// Digits of a key's number, leading zeros included.
    fn key_digits(&self) -> usize {
        self.key_bytes.saturating_sub(KEY_PREFIX.len())
    }

    /// Digits of a key's number that ever differ from zero.
    fn moving_digits(&self) -> usize {
        decimal_width(self.keys.saturating_sub(1))
    }

    /// Checks that the range fits in the keys.
    ///
    /// # Errors
    /// An empty range, or keys too short to hold their numbers.
    pub fn check(&self) -> Result<(), Error> {
        if self.keys == 0 {
            return Err(Error::Usage("the key range is empty: --keys must be at least 1".into()));
        }
        if self.key_digits() < self.moving_digits() {
            let needed = KEY_PREFIX.len() + self.moving_digits();
            return Err(Error::Usage(format!(
                "{} keys need key names of at least {needed} bytes",
                self.keys
            )));
        }
        Ok(())
    }

    /// The bytes of every value: letters that hardly compress, the same in every run.
    pub fn value(&self) -> Vec<u8> {
        let mut rng = Rng::with_seed(0x0077_6566_7400);
        (0..self.value_bytes).map(|_| rng.alphanumeric() as u8).collect()
    }
}

fn decimal_width(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// What a digit field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draw {
    /// The number of a key.
    Key,
    /// The number of the key before it in the request.
    SameKey,
    /// An integer from `low`, one of `span` values.
    Integer { low: u64, span: u64 },
}

/// A run of decimal digits inside a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    /// The position of its first digit.
    at: usize,
    width: usize,
    draw: Draw,
}

impl Field {
    fn is_key(&self) -> bool {
        matches!(self.draw, Draw::Key | Draw::SameKey)
    }
}

/// One request, ready to be sent once its fields are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    bytes: Vec<u8>,
    fields: Vec<Field>,
    keys: u64,
    answer: Answer,
}

impl Template {
    /// Compiles the notation described in `workload`.
    ///
    /// # Errors
    /// When the text does not follow the notation, or the shape cannot be met.
    pub fn compile(text: &str, shape: &Shape) -> Result<Template, Error> {
        shape.check()?;
        let flat = expand_groups(text)?;
        let words: Vec<&str> = flat.split_ascii_whitespace().collect();
        let mut template = Template {
            bytes: Vec::new(),
            fields: Vec::new(),
            keys: shape.keys,
            answer: Answer { replies: 0, is_transaction: false },
        };
        for command in words.split(|word| *word == COMMAND_END) {
            template.push_command(command, text, shape)?;
        }
        Ok(template)
    }

    fn push_command(&mut self, arguments: &[&str], text: &str, shape: &Shape) -> Result<(), Error> {
        let name = arguments
            .first()
            .ok_or_else(|| Error::Usage(format!("template '{text}' has an empty command")))?;
        self.bytes.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
        for argument in arguments {
            self.push_argument(argument, shape)?;
        }
        let replies = self.answer.replies + 1;
        self.answer = Answer { replies, is_transaction: *name == "EXEC" };
        Ok(())
    }

    fn push_argument(&mut self, argument: &str, shape: &Shape) -> Result<(), Error> {
        let (mut body, mut fields) = (Vec::new(), Vec::new());
        let mut rest = argument;
        while let Some((before, inside, after)) = next_placeholder(rest) {
            body.extend_from_slice(before.as_bytes());
            match inside {
                "same-key" if !self.fields.iter().chain(&fields).any(Field::is_key) => {
                    let text = "{same-key} stands before any {key} of the request";
                    return Err(Error::Usage(text.into()));
                }
                "key" | "same-key" => {
                    body.extend_from_slice(KEY_PREFIX.as_bytes());
                    body.resize(body.len() + shape.key_digits(), b'0');
                    let width = shape.moving_digits();
                    let draw = if inside == "key" { Draw::Key } else { Draw::SameKey };
                    fields.push(Field { at: body.len() - width, width, draw });
                }
                "value" => body.extend_from_slice(&shape.value()),
                other => match (script_text(other), integer_range(other)) {
                    (Some(script), _) => body.extend_from_slice(script.as_bytes()),
                    (None, Some((low, high))) => {
                        let width = decimal_width(high);
                        let draw = Draw::Integer { low, span: high - low + 1 };
                        fields.push(Field { at: body.len(), width, draw });
                        body.extend_from_slice(low.to_string().as_bytes());
                    }
                    (None, None) => {
                        let text = format!("{{{other}}} is not a placeholder of a template");
                        return Err(Error::Usage(text));
                    }
                },
            }
            rest = after;
        }
        body.extend_from_slice(rest.as_bytes());
        self.bytes.extend_from_slice(format!("${}\r\n", body.len()).as_bytes());
        let start = self.bytes.len();
        self.fields.extend(fields.into_iter().map(|f| Field { at: f.at + start, ..f }));
        self.bytes.extend_from_slice(&body);
        self.bytes.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// What answers one request.
    pub fn answer(&self) -> Answer {
        self.answer
    }

    /// The length of one request in bytes.
    pub fn request_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the request to `out` with its fields as they were last drawn there: call
    /// [`draw`](Self::draw) on the appended bytes.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    /// Draws new values for every field of a request that starts at `request[0]`.
    #[inline]
    pub fn draw(&self, request: &mut [u8], rng: &mut Rng) {
        let mut key = 0;
        for field in &self.fields {
            let number = match field.draw {
                Draw::Key => {
                    key = rng.u64(0..self.keys);
                    key
                }
                Draw::SameKey => key,
                Draw::Integer { low, span } => low + rng.u64(0..span),
            };
            write_digits(&mut request[field.at..field.at + field.width], number);
        }
    }

    /// The same with a given key in every key field: for filling the range key by key.
    pub fn draw_key(&self, request: &mut [u8], key: u64, rng: &mut Rng) {
        self.draw(request, rng);
        for field in self.fields.iter().filter(|field| field.is_key()) {
            write_digits(&mut request[field.at..field.at + field.width], key);
        }
    }
}

/// Splits at the next `{...}`: before, inside, after.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}

/// `LOW..HIGH`, both of the same width, so that every number between them has it too.
fn integer_range(text: &str) -> Option<(u64, u64)> {
    let (low, high) = text.split_once("..")?;
    let fits = low.len() == high.len() && high.len() < DIGITS_MAX;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (fits && low <= high && decimal_width(low) == decimal_width(high)).then_some((low, high))
}

/// The source of a script for `script:NAME`, its hash for `sha1:NAME`.
fn script_text(text: &str) -> Option<Cow<'static, str>> {
    match text.split_once(':')? {
        ("script", name) => scripts::source(name).map(Cow::Borrowed),
        ("sha1", name) => scripts::sha1(name).map(Cow::Owned),
        _ => None,
    }
}

/// The text with `N*(...)` groups written out.
fn expand_groups(text: &str) -> Result<String, Error> {
    let mut flat = String::new();
    let mut rest = text;
    while let Some((before, group)) = rest.split_once("*(") {
        let (head, times) = before.rsplit_once(' ').unwrap_or(("", before));
        let (group, after) = group
            .split_once(')')
            .ok_or_else(|| Error::Usage(format!("template '{text}': a group lacks its ')'")))?;
        let times: usize = times
            .parse()
            .map_err(|_| Error::Usage(format!("template '{text}': '{times}' repeats nothing")))?;
        flat.push_str(head);
        (0..times).for_each(|_| {
            flat.push(' ');
            flat.push_str(group);
        });
        rest = after;
    }
    flat.push_str(rest);
    Ok(flat)
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
    use super::*;

    const SHAPE: Shape = Shape { keys: 1000, key_bytes: 10, value_bytes: 4 };

    fn drawn(text: &str, shape: &Shape, key: u64) -> String {
        let template = Template::compile(text, shape).unwrap();
        let mut request = Vec::new();
        template.append(&mut request);
        template.draw_key(&mut request, key, &mut Rng::with_seed(1));
        assert_eq!(request.len(), template.request_bytes());
        String::from_utf8(request).unwrap()
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
        assert_eq!(answer(text), Answer { replies: 5, is_transaction: true });
        assert_eq!(answer("SET EXEC ; GET x"), Answer { replies: 2, is_transaction: false });
        assert_eq!(answer("PING"), Answer::ONE_REPLY);
    }

    #[test]
    fn the_same_key_is_the_one_drawn_before_it() {
        let template = Template::compile("X {key} {same-key} {key}", &SHAPE).unwrap();
        let (mut request, mut rng) = (Vec::new(), Rng::with_seed(1));
        template.append(&mut request);
        let mut differ = 0;
        for _ in 0..100 {
            template.draw(&mut request, &mut rng);
            let text = std::str::from_utf8(&request).unwrap();
            let keys: Vec<&str> = text.split("\r\n").filter(|a| a.starts_with("key:")).collect();
            assert_eq!((keys.len(), keys[0]), (3, keys[1]));
            differ += usize::from(keys[1] != keys[2]);
        }
        assert!(differ > 90, "{differ}");
    }

    #[test]
    fn scripts_are_arguments_whatever_is_in_them() {
        let source = scripts::source("get").unwrap();
        let sha1 = scripts::sha1("get").unwrap();
        assert_eq!(
            drawn("X {script:get} {sha1:get}", &SHAPE, 0),
            format!("*3\r\n$1\r\nX\r\n${}\r\n{source}\r\n$40\r\n{sha1}\r\n", source.len())
        );
    }

    #[test]
    fn draws_stay_in_range_and_reach_all_of_it() {
        let shape = Shape { keys: 11, ..SHAPE };
        let template = Template::compile("X {key} {7..9}", &shape).unwrap();
        let mut rng = Rng::with_seed(7);
        let (mut keys, mut numbers) = ([0u32; 11], [0u32; 10]);
        let mut request = Vec::new();
        template.append(&mut request);
        for _ in 0..2000 {
            template.draw(&mut request, &mut rng);
            let text = std::str::from_utf8(&request).unwrap();
            let arguments: Vec<&str> = text.split("\r\n").collect();
            keys[arguments[4].strip_prefix("key:").unwrap().parse::<usize>().unwrap()] += 1;
            numbers[arguments[6].parse::<usize>().unwrap()] += 1;
        }
        assert!(keys.iter().all(|&n| n > 100), "{keys:?}");
        assert!(numbers[7..].iter().all(|&n| n > 400), "{numbers:?}");
    }

    #[test]
    fn what_is_no_template_is_refused() {
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
        let narrow = Shape { keys: 1001, key_bytes: 7, value_bytes: 1 };
        assert!(Template::compile("GET {key}", &narrow).is_err());
        assert!(Template::compile("PING", &Shape { keys: 0, ..SHAPE }).is_err());
    }
}
