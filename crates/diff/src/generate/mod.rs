//! Random requests from the rows of commands.
//!
//! The arguments of a row give the shape: words, alternatives, blocks, optional and repeated
//! arguments. The kind of a value depends on the argument's name ([`hints`]), and the value comes
//! from a small pool ([`values`]), so that requests meet on the same keys, members and ids. Most
//! requests are right; some are then spoiled.
//!
//! A [`Stream`] makes transactions, calls of scripts and requests about users from such requests.
//!
//! Most streams favour the commands of one group, so that states occur that need several of them: a
//! consumer group with pending entries, a hash with fields that expire.
//!
//! The same seed and commands always give the same requests: no clock is read.

pub mod hints;
mod scripts;
mod stream;
mod transactions;
mod users;
pub mod values;

pub use stream::{KINDS, Mix, Stream};
pub use users::USERS;

use std::collections::BTreeSet;

use command::{Access, Argument, Flags, Group, Shape, Spec};
use fastrand::Rng;
use node::{Entry, table};

use crate::{Request, rules};
use hints::Class;
use values::Values;

/// How often an optional argument occurs, a list is long, a request is spoiled, and so on: one in
/// this number.
const OPTIONAL: u32 = 3;
const LONG_LIST: u32 = 40;
const HUGE_LIST: u32 = 1_000;
const SPOILED: u32 = 25;
const SHUFFLED: u32 = 5;
const WRONG_COUNT: u32 = 15;
const ODD_CASE: u32 = 10;
const LEVEL: u32 = 3;
/// Ids from the clock cannot be compared.
const CLOCK_ID: u32 = 100;

/// One stream in `UNFOCUSED` favours no group. In the others, the commands of the favoured group
/// are `FOCUS` times as frequent.
const UNFOCUSED: u32 = 5;
const FOCUS: u32 = 15;

/// Optional arguments without which most requests fail: the centre of GEOSEARCH.
const USUAL: &[&str] = &["from"];

/// Elements of a repeated argument: usually, in a long list, and in a list that makes containers of
/// several parts.
const SHORT_LIST_MAX: usize = 4;
const LONG_LIST_MAX: usize = 300;
const HUGE_LIST_MAX: usize = 4_000;

/// A command for which requests are made.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its full name: `xgroup|create`.
    pub name: &'static str,
    /// Its row.
    pub spec: &'static Spec,
}

/// All commands except containers of subcommands.
pub fn all_commands() -> Vec<Command> {
    let entries = table().entries().iter().filter(|entry| !entry.spec.is_container);
    entries.map(|entry| Command { name: &entry.name, spec: entry.spec }).collect()
}

/// The groups of the commands on data, sorted by name.
pub fn groups() -> Vec<&'static str> {
    let names = table().entries().iter().filter(|entry| is_on_data(entry));
    let names: BTreeSet<_> = names.map(|entry| entry.spec.group.name()).collect();
    names.into_iter().collect()
}

/// The commands on data, except those that [`crate::rules`] excludes.
pub fn data_commands() -> Vec<Command> {
    let entries = table().entries().iter().filter(|entry| {
        is_on_data(entry) && !entry.spec.is_container && rules::excluded(&entry.name).is_none()
    });
    entries.map(|entry| Command { name: &entry.name, spec: entry.spec }).collect()
}

/// Commands of the group `server` depend on the process, even where they touch data. Commands of
/// transactions and scripts carry others ([`Stream`]).
fn is_on_data(entry: &Entry) -> bool {
    use Group::{Connection, Scripting, Server, Transactions};
    !matches!(entry.spec.group, Connection | Server | Transactions | Scripting)
}

/// A version such as 8.0.6.
pub type Version = [u32; 3];

/// The numbers of a version; a missing or malformed number counts as 0.
pub fn version(text: &str) -> Version {
    let mut numbers = text.split('.').map(|part| part.trim().parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// A source of requests.
#[derive(Debug)]
pub struct Generator {
    commands: Vec<Command>,
    /// Sums of the weights of the commands up to each.
    weights: Vec<u32>,
    version: Version,
    rng: Rng,
    values: Values,
}

impl Generator {
    /// Requests for these commands, without arguments of versions later than this one.
    pub fn new(commands: Vec<Command>, version: Version, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let focus = match rng.u32(..UNFOCUSED) {
            0 => None,
            _ => rng.choice(&commands).map(|command| command.spec.group),
        };
        let mut sum = 0;
        let weights = commands.iter().map(|command| {
            let is_focus = focus == Some(command.spec.group);
            sum += weight(command) * if is_focus { FOCUS } else { 1 };
            sum
        });
        let weights = weights.collect();
        Self { weights, commands, version, rng, values: Values::default() }
    }

    /// The random numbers of the same seed for other uses.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The next request; `None` without commands.
    pub fn request(&mut self) -> Option<Request> {
        let total = self.weights.last().copied()?;
        let drawn = self.rng.u32(..total);
        let command = self.commands[self.weights.partition_point(|sum| *sum <= drawn)];
        Some(self.request_for(command))
    }

    /// A request for one command.
    pub fn request_for(&mut self, command: Command) -> Request {
        let mut draft = Draft { command, words: Vec::new(), count_at: None, last_len: None };
        for part in command.name.split('|') {
            let word = self.in_some_case(part);
            draft.words.push(word);
        }
        let named = draft.words.len();
        self.top_level(&mut draft);
        if self.one_in(SPOILED) {
            self.spoil(&mut draft, named);
        } else if self.one_in(LEVEL) {
            match command.name {
                "zadd" => self.level(&mut draft),
                "zrange" => self.range_of_level(&mut draft),
                _ => {}
            }
        }
        draft.words
    }

    /// Makes a ZRANGE one by name, with a key for such ranges.
    fn range_of_level(&mut self, draft: &mut Draft) {
        let mut draw = |class| self.values.draw(class, Group::SortedSet, &mut self.rng);
        let bounds = [draw(Class::LevelKey), draw(Class::NameBound), draw(Class::NameBound)];
        draft.words.splice(1..4.min(draft.words.len()), bounds);
        draft.words.push(b"BYLEX".to_vec());
    }

    /// Makes a ZADD one of score 0, with a key for ranges by name, which no other command writes.
    fn level(&mut self, draft: &mut Draft) {
        let mut words = vec![draft.words[0].clone()];
        words.push(self.values.draw(Class::LevelKey, Group::SortedSet, &mut self.rng));
        let members = self.rng.usize(1..=SHORT_LIST_MAX);
        for _ in 0..members {
            words.push(b"0".to_vec());
            words.push(self.values.draw(Class::Member, Group::SortedSet, &mut self.rng));
        }
        draft.words = words;
    }

    /// The arguments of a row; optional ones may change their order.
    fn top_level(&mut self, draft: &mut Draft) {
        let arguments = draft.command.spec.arguments;
        let fixed = arguments.iter().take_while(|argument| !argument.optional).count();
        let all_optional = arguments[fixed..].iter().all(|argument| argument.optional);
        let mut order: Vec<&Argument> = arguments.iter().collect();
        if all_optional && self.one_in(SHUFFLED) {
            self.rng.shuffle(&mut order[fixed..]);
        }
        for argument in order {
            self.argument(draft, argument);
        }
    }

    fn sequence(&mut self, draft: &mut Draft, arguments: &'static [Argument]) {
        // Parallel lists have the same length: keys and ids, keys and weights.
        draft.last_len = None;
        for argument in arguments {
            self.argument(draft, argument);
        }
    }

    fn argument(&mut self, draft: &mut Draft, argument: &Argument) {
        let is_left_out = argument.optional
            && match USUAL.contains(&argument.name) {
                true => self.one_in(WRONG_COUNT),
                false => !self.one_in(OPTIONAL),
            };
        if is_left_out || !self.is_known(argument) {
            return;
        }
        if let (Some(token), true) = (argument.token, argument.shape != Shape::Token) {
            let word = self.in_some_case(token);
            draft.words.push(word);
        }
        if !argument.multiple {
            return self.once(draft, argument);
        }
        let count = self.list_len(draft, argument);
        self.values.wide = count > SHORT_LIST_MAX;
        for repeated in 0..count {
            if let (Some(token), true) = (argument.token, repeated > 0 && repeats_token(argument)) {
                draft.words.push(token.into());
            }
            self.once(draft, argument);
        }
        self.values.wide = false;
        if let Some(at) = draft.count_at.take() {
            let wrong = self.one_in(WRONG_COUNT);
            let stated = if wrong { self.values.count(&mut self.rng) } else { count.to_string() };
            draft.words[at] = stated.into_bytes();
        }
        draft.last_len = Some(count);
    }

    fn list_len(&mut self, draft: &Draft, argument: &Argument) -> usize {
        let is_key = argument.shape == Shape::Key;
        match draft.last_len {
            Some(len) if !is_key && !self.one_in(WRONG_COUNT) => len,
            _ if !is_key && self.one_in(HUGE_LIST) => self.rng.usize(LONG_LIST_MAX..HUGE_LIST_MAX),
            _ if !is_key && self.one_in(LONG_LIST) => self.rng.usize(20..LONG_LIST_MAX),
            _ if self.rng.bool() => 1,
            _ => self.rng.usize(1..=SHORT_LIST_MAX),
        }
    }

    fn once(&mut self, draft: &mut Draft, argument: &Argument) {
        match argument.shape {
            Shape::Token => {
                let word = self.in_some_case(argument.token.unwrap_or(argument.name));
                draft.words.push(word);
            }
            Shape::OneOf(parts) => {
                let mut known: Vec<&Argument> =
                    parts.iter().filter(|part| self.is_known(part)).collect();
                if !self.one_in(CLOCK_ID) {
                    known.retain(|part| part.token != Some("*"));
                }
                let chosen = self.rng.choice(known);
                if let Some(chosen) = chosen {
                    // A chosen alternative is not optional.
                    self.argument(draft, &Argument { optional: false, ..*chosen });
                }
            }
            Shape::Block(parts) => self.sequence(draft, parts),
            _ => {
                let class = hints::class(draft.command.name, argument);
                if class == Class::ListLength {
                    draft.count_at = Some(draft.words.len());
                }
                let home = draft.command.spec.group;
                let word = self.values.draw(class, home, &mut self.rng);
                draft.words.push(word);
            }
        }
    }

    fn is_known(&self, argument: &Argument) -> bool {
        argument.since.is_none_or(|since| version(since) <= self.version)
    }

    /// Makes a request wrong, or perhaps only unusual. Numbers keep their positions: a time to live
    /// of few seconds would end between two comparisons, and a huge offset would take memory.
    fn spoil(&mut self, draft: &mut Draft, named: usize) {
        let words = &mut draft.words;
        let is_delicate = draft.command.spec.flags.has(Flags::BLOCKING)
            || draft.command.spec.group == Group::Bitmap;
        let kind = if is_delicate { self.rng.u32(..2) } else { self.rng.u32(..5) };
        if words.len() <= named || kind == 0 {
            return words.push(self.values.junk(&mut self.rng));
        }
        let at = self.rng.usize(named..words.len());
        match kind {
            1 => drop(words.pop()),
            2 => drop(words.remove(at)),
            3 => words[at] = self.values.junk(&mut self.rng),
            _ => words.insert(at, words[at].clone()),
        }
    }

    fn in_some_case(&mut self, word: &str) -> Vec<u8> {
        match self.one_in(ODD_CASE) {
            true => word.to_lowercase().into_bytes(),
            false => word.to_uppercase().into_bytes(),
        }
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.rng.u32(..many) == 0
    }
}

/// A request under construction.
struct Draft {
    command: Command,
    words: Request,
    /// The position of the length of the next list.
    count_at: Option<usize>,
    /// The length of the last list.
    last_len: Option<usize>,
}

/// Whether a repeated argument has its word before each value, as the patterns of SORT and the
/// reads of BITFIELD_RO.
fn repeats_token(argument: &Argument) -> bool {
    argument.token == Some("GET")
}

/// Weights: commands that add data are frequent, those that delete are rare, and those that may
/// wait are rarest because they take time.
fn weight(command: &Command) -> u32 {
    let uses =
        |access: Access| command.spec.keys.iter().any(|keys| keys.access.0 & access.0 == access.0);
    let flags = command.spec.flags;
    match () {
        () if flags.has(Flags::BLOCKING) && command.spec.group != Group::Stream => 3,
        () if command.name.ends_with("scan") || command.name == "xgroup|destroy" => 5,
        () if command.spec.group == Group::Generic && flags.has(Flags::WRITE) => 12,
        // No other command fills a stream.
        () if command.name == "xadd" => 150,
        () if uses(Access::INSERT) || uses(Access::UPDATE) && !uses(Access::ACCESS) => 40,
        () if uses(Access::DELETE) => 10,
        () => 20,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    fn stream(seed: u64) -> Vec<Request> {
        let mut generator = Generator::new(data_commands(), version("99"), seed);
        (0..2000).map(|_| generator.request().unwrap()).collect()
    }

    #[test]
    fn a_seed_gives_one_stream() {
        assert_eq!(stream(1), stream(1));
        assert_ne!(stream(1), stream(2));
    }

    #[test]
    fn most_requests_have_the_arity_of_their_row_and_some_have_not() {
        for command in data_commands() {
            let mut generator = Generator::new(vec![command], version("99"), 7);
            let made = 200;
            let name_words = command.name.split('|').count() - 1;
            let right = (0..made)
                .filter(|_| {
                    let request = generator.request().unwrap();
                    command.spec.accepts(request.len()) && request.len() > name_words
                })
                .count();
            assert!(right * 10 >= made * 8, "{}: {right} of {made}", command.name);
        }
    }

    #[test]
    fn arguments_newer_than_the_version_are_left_out() {
        let set = data_commands().into_iter().find(|command| command.name == "set").unwrap();
        let sends_get = |newest: &str| {
            let mut generator = Generator::new(vec![set], version(newest), 3);
            (0..500).any(|_| generator.request().unwrap().iter().any(|word| word == b"GET"))
        };
        assert!(sends_get("6.2.0"));
        assert!(!sends_get("6.0.9"));
    }

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(version("8.0.6"), [8, 0, 6]);
        assert_eq!(version("7.2"), [7, 2, 0]);
        assert!(version("8.0.10") > version("8.0.9"));
    }
}
