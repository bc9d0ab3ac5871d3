//! A stream of steps: plain requests, and between them transactions, scripts and users, each made
//! of generated requests.

use fastrand::Rng;

use super::{Command, Generator};
use crate::{ConnectionName, Request, Step};

/// The proportion of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Plain requests.
    pub requests: u32,
    /// Transactions, each of several requests.
    pub transactions: u32,
    /// Requests through scripts.
    pub scripts: u32,
    /// Rules of users, requests about them, and requests by them.
    pub users: u32,
}

/// The kinds that can be chosen besides the groups of commands on data, named like the fields of
/// `Mix`.
pub const KINDS: &[&str] = &["transactions", "scripting", "acl"];

impl Mix {
    /// Everything.
    pub const ALL: Self = Self { requests: 100, transactions: 4, scripts: 20, users: 8 };

    /// Only plain requests.
    pub const REQUESTS: Self = Self { transactions: 0, scripts: 0, users: 0, ..Self::ALL };

    /// Only the named ones of [`KINDS`].
    pub fn of_kinds(named: &[&str]) -> Self {
        let weight = |at: usize, weight| if named.contains(&KINDS[at]) { weight } else { 0 };
        Self {
            requests: 0,
            transactions: weight(0, Self::ALL.transactions),
            scripts: weight(1, Self::ALL.scripts),
            users: weight(2, Self::ALL.users),
        }
    }
}

/// A source of steps.
#[derive(Debug)]
pub struct Stream {
    pub(super) generator: Generator,
    pub(super) mix: Mix,
    /// The commands in rules of users.
    pub(super) named: Vec<Command>,
}

impl Stream {
    /// Steps made of a generator's requests.
    pub fn new(generator: Generator, mix: Mix, named: Vec<Command>) -> Self {
        Self { generator, mix, named }
    }

    /// The random numbers of the same seed for other uses.
    pub fn rng(&mut self) -> &mut Rng {
        self.generator.rng()
    }

    /// The next steps that belong together; empty without commands.
    pub fn unit(&mut self) -> Vec<Step> {
        let Mix { requests, transactions, scripts, users } = self.mix;
        let drawn = self.rng().u32(..(requests + transactions + scripts + users).max(1));
        if drawn < transactions {
            return self.transaction(ConnectionName::First);
        }
        if drawn < transactions + users {
            return self.user();
        }
        let request = match drawn < transactions + users + scripts {
            true => self.script(),
            false => self.generator.request(),
        };
        request.map(Step::first).into_iter().collect()
    }

    /// A request on data, plain or through a script.
    pub(super) fn request(&mut self) -> Option<Request> {
        let Mix { requests, scripts, .. } = self.mix;
        let drawn = self.rng().u32(..(requests + scripts).max(1));
        match drawn < scripts && self.one_in(2) {
            true => self.script(),
            false => self.generator.request(),
        }
    }

    pub(super) fn one_in(&mut self, many: u32) -> bool {
        self.rng().u32(..many) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{all_commands, data_commands, version};
    use crate::{follow, rules, scripts};

    fn steps(mix: Mix) -> Vec<Step> {
        let generator = Generator::new(data_commands(), version("99"), 5);
        let mut stream = Stream::new(generator, mix, all_commands());
        (0..2_000).flat_map(|_| stream.unit()).collect()
    }

    #[test]
    fn a_mix_has_what_it_counts_and_nothing_else() {
        let has = |mix, name: &str| {
            steps(mix).iter().any(|step| rules::name(&step.request).starts_with(name))
        };
        for name in ["get", "multi", "exec", "discard", "watch", "eval", "fcall", "acl|setuser"] {
            assert!(has(Mix::ALL, name), "{name}");
        }
        for name in ["multi", "eval", "fcall", "acl"] {
            assert!(!has(Mix::REQUESTS, name), "{name}");
        }
        assert!(!has(Mix::of_kinds(&["transactions"]), "eval"));
        assert!(!has(Mix::of_kinds(&["scripting"]), "multi"));
        assert!(has(Mix::of_kinds(&["acl"]), "auth"));
    }

    #[test]
    fn nothing_comes_between_a_random_write_and_the_end_of_its_transaction_or_script() {
        for step in steps(Mix::ALL) {
            assert!(!scripts::is_broken(&step.request), "{step:?}");
            let Some(carried) = scripts::carried(&step.request) else { continue };
            let inner = carried.calls.split_last().map_or(&[][..], |(_, inner)| inner);
            assert!(!inner.iter().any(follow::leaves_differences), "{step:?}");
        }
        let planned = follow::plan(&steps(Mix::ALL));
        let made =
            steps(Mix::ALL).iter().filter(|step| rules::name(&step.request) == "exec").count();
        let played =
            planned.iter().filter(|planned| rules::name(&planned.step.request) == "exec").count();
        assert_eq!(made, played, "no transaction had to be ended early");
    }
}
