//! Users: their rules, requests about them, and requests by them.

use super::stream::Stream;
use crate::{ConnectionName, Request, Step, request};

/// All users that rounds make; a round begins without them.
pub const USERS: &[&str] = &["u1", "u2", "u3"];

const PASSWORDS: &[&str] = &["p1", "p2", "", "p 3"];

/// The hashes of two passwords, and a text that is no hash.
const HASHES: &[&str] = &[
    "f64551fcd6f07823cb87971cfb91446425da18286b3ab1ef935e0cbd7a69f68a",
    "3946ca64ff78d93ca61090a437cbb6b3d2ca0d488f5f9ccf3059608368b27693",
    "3946CA64FF78D93CA61090A437CBB6B3D2CA0D488F5F9CCF3059608368B27693",
    "9f86",
    "zz46ca64ff78d93ca61090a437cbb6b3d2ca0d488f5f9ccf3059608368b27693",
];

const CATEGORIES: &[&str] = &[
    "all",
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "nosuch",
    "",
];

const KEY_PATTERNS: &[&str] = &[
    "*", "s*", "l*", "h*", "[a-m]*", "[n-z]*", "?1", "*2", "s1", "x?", "none", "", "\\*", "[^s]*",
    "*1*", "y*", "e[12]", "g*",
];

/// The keys of most users that log in.
const USUAL_KEYS: &[&str] = &["~*", "~*", "%R~*", "%W~*", "~s*", "~[a-m]*", "%R~[n-z]*"];

const SWITCHES: &[&str] = &[
    "on",
    "on",
    "off",
    "nopass",
    "resetpass",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "reset",
    "clearselectors",
    "sanitize-payload",
    "skip-sanitize-payload",
    "ON",
    "AllKeys",
];

/// Texts that are no rules.
const WRONG: &[&str] = &[
    "",
    "nosuch",
    "+",
    "-",
    "~",
    "&",
    ">",
    "<",
    "#",
    "!",
    "%",
    "%R",
    "%X~a",
    "%R~",
    "%RWR~a",
    "+@",
    "+nosuch",
    "-get|a",
    "+config|nosuch",
    "+get|a|b",
    "(",
    ")",
    "()",
    "(+get",
    "(on)",
    "(>p)",
    "(nosuch)",
    "((+get))",
    "+@nosuch",
    "on off",
    "%~a",
    "%RX~a",
    "+acl|",
    "+|get",
    "(reset)",
];

/// Requests that do not touch data, for the permissions of users.
const OTHER_REQUESTS: &[&[&str]] = &[
    &["PING"],
    &["CONFIG", "GET", "hz"],
    &["MULTI"],
    &["ACL", "WHOAMI"],
    &["NOSUCH"],
    &["CONFIG", "NOSUCH"],
    &["GET"],
    &["CLIENT", "GETNAME"],
    &["SELECT", "0"],
    &["EVAL", "return 1", "0"],
    &["EVAL", "return 1", "1", "s1"],
    &["OBJECT", "NOSUCH"],
    &["acl"],
    &["COMMAND", "NOSUCH"],
    &["SCRIPT", "EXISTS", "x"],
    &["FUNCTION", "LIST", "LIBRARYNAME", "x"],
];

/// The most rules in one request, and the most requests of a user that has logged in.
const RULES_MAX: usize = 8;
const SESSION_MAX: usize = 25;

impl Stream {
    /// Requests about or by users.
    pub(super) fn user(&mut self) -> Vec<Step> {
        let user = self.pick(USERS);
        let request = match self.rng().u32(..32) {
            0..14 => self.set_user(user),
            14..17 => request(&["ACL", "GETUSER", self.one_of(user, "default")]),
            17 => request(&["ACL", self.one_of("LIST", "USERS")]),
            18 if self.one_in(8) => request(&["ACL", "CAT"]),
            18 => request(&["ACL", "CAT", self.pick(CATEGORIES)]),
            19..26 => self.dry_run(user),
            26 if self.one_in(2) => request(&["ACL", "DELUSER", user]),
            _ => return self.session(user),
        };
        vec![Step::first(request)]
    }

    fn pick(&mut self, pool: &[&'static str]) -> &'static str {
        self.rng().choice(pool).copied().unwrap_or_default()
    }

    /// Nearly always the first.
    fn one_of(&mut self, usual: &'static str, rare: &'static str) -> &'static str {
        if self.one_in(8) { rare } else { usual }
    }

    fn set_user(&mut self, user: &str) -> Request {
        let mut words = request(&["ACL", "SETUSER", user]);
        for _ in 0..self.rng().usize(..=RULES_MAX) {
            match self.rng().u32(..10) {
                0 => words.extend(self.selector()),
                _ => {
                    let rule = self.rule();
                    words.push(rule.into_bytes());
                }
            }
        }
        words
    }

    /// A selector, as one word or as several.
    fn selector(&mut self) -> Request {
        let rules: Vec<String> = (0..self.rng().usize(..4)).map(|_| self.rule()).collect();
        let text = format!("({})", rules.join(" "));
        match self.one_in(2) {
            true => vec![text.into_bytes()],
            false => text.split(' ').map(|word| word.as_bytes().to_vec()).collect(),
        }
    }

    fn rule(&mut self) -> String {
        match self.rng().u32(..40) {
            0..6 => self.pick(SWITCHES).to_owned(),
            6 => self.pick(WRONG).to_owned(),
            7..9 => format!("{}{}", self.one_of(">", "<"), self.pick(PASSWORDS)),
            9 => format!("{}{}", self.one_of("#", "!"), self.pick(HASHES)),
            10..18 => format!("~{}", self.pick(KEY_PATTERNS)),
            18..22 => {
                let access = self.pick(&["R", "W", "R", "W", "RW", "r", "WR"]);
                // Redis cannot read the `%RW~*` that it writes.
                let mut pattern = self.pick(KEY_PATTERNS);
                if pattern == "*" && access.len() == 2 {
                    pattern = "s*";
                }
                format!("%{access}~{pattern}")
            }
            22..24 => format!("&{}", self.pick(&["*", "c*", "news", "c?", ""])),
            24..30 => format!("{}@{}", self.sign(), self.pick(CATEGORIES)),
            _ => {
                let name = self.named();
                // First arguments, which only commands without subcommands have.
                let first = self.one_in(10) && !name.contains('|');
                let first = if first { self.pick(&["|s1", "|0", "|get", "|LIST"]) } else { "" };
                format!("{}{name}{first}", self.sign())
            }
        }
    }

    fn sign(&mut self) -> &'static str {
        if self.one_in(3) { "-" } else { "+" }
    }

    /// The name of any command.
    fn named(&mut self) -> String {
        let named = &self.named;
        let command = self.generator.rng.choice(named).map_or("get", |command| command.name);
        match self.one_in(10) {
            true => command.to_uppercase(),
            false => command.to_owned(),
        }
    }

    fn dry_run(&mut self, user: &str) -> Request {
        let mut words = request(&["ACL", "DRYRUN", user]);
        let drawn = match self.one_in(6) {
            true => self.rng().choice(OTHER_REQUESTS).map(|words| request(words)),
            false => self.request(),
        };
        words.extend(drawn.unwrap_or_default());
        words
    }

    /// The second connection logs in, sends requests, and perhaps gets new rules and logs in as its
    /// old user again.
    fn session(&mut self, user: &'static str) -> Vec<Step> {
        let password = self.pick(PASSWORDS);
        let second = |request| Step { client: ConnectionName::Second, request };
        let mut steps = Vec::new();
        if !self.one_in(4) {
            let rule = format!(">{password}");
            let usual = self.pick(&["+@all", "+@read", "+@write", "+@fast", "-@dangerous"]);
            let words = ["ACL", "SETUSER", user, "on", &rule, usual, self.pick(USUAL_KEYS)];
            steps.push(Step::first(request(&words)));
        }
        steps.push(second(request(&["AUTH", user, password])));
        for _ in 0..self.rng().usize(..SESSION_MAX) {
            match self.rng().u32(..20) {
                0 => steps.push(Step::first(self.set_user(user))),
                1 if self.mix.transactions > 0 => {
                    steps.extend(self.transaction(ConnectionName::Second))
                }
                2 => {
                    let drawn = self.rng().choice(OTHER_REQUESTS).copied().unwrap_or_default();
                    let is_open = drawn == ["MULTI"];
                    steps.extend((!is_open).then(|| second(request(drawn))));
                }
                _ => steps.extend(self.request().map(second)),
            }
        }
        if !self.one_in(3) {
            steps.push(second(request(&["RESET"])));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use command::Group;

    use super::*;
    use crate::generate::hints::Class;
    use crate::generate::{Generator, Mix, all_commands, data_commands, version};

    #[test]
    fn patterns_meet_keys() {
        let generator = Generator::new(data_commands(), version("99"), 1);
        let mut stream = Stream::new(generator, Mix::ALL, all_commands());
        for pattern in ["s*", "l*", "h*", "?1", "[a-m]*", "y*"] {
            let meets = (0..2_000).any(|_| {
                let generator = &mut stream.generator;
                let class = if pattern == "y*" { Class::LevelKey } else { Class::Key };
                let key = generator.values.draw(class, Group::Generic, &mut generator.rng);
                base::glob::matches(pattern.as_bytes(), &key, false)
            });
            assert!(meets, "{pattern}");
        }
    }
}
