//! The metadata of a command.
//!
//! Dispatch, locking, COMMAND INFO, DOCS and GETKEYS, statistics, the generated documentation and
//! the random requests of the tests derive from a [`Spec`]. Chained `const` functions build it, so
//! that a row contains only values that differ from the default.

use resp::Args;

pub use crate::key_spec::{Access, Begin, Find, KeySpec};

/// The groups of commands in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Group {
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    HyperLogLog,
    List,
    PubSub,
    Server,
    Set,
    SortedSet,
    Scripting,
    Stream,
    String,
    Transactions,
}

impl Group {
    /// The name in COMMAND DOCS.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Cluster => "cluster",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::HyperLogLog => "hyperloglog",
            Self::List => "list",
            Self::PubSub => "pubsub",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Scripting => "scripting",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

/// Properties of a command, as bits. COMMAND INFO prints those that have a name in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u32);

#[allow(missing_docs)]
impl Flags {
    pub const NONE: Self = Self(0);
    pub const WRITE: Self = Self(1);
    pub const READONLY: Self = Self(1 << 1);
    /// May allocate memory: rejected if the memory limit is reached.
    pub const DENYOOM: Self = Self(1 << 2);
    pub const ADMIN: Self = Self(1 << 3);
    pub const PUBSUB: Self = Self(1 << 4);
    pub const NOSCRIPT: Self = Self(1 << 5);
    pub const BLOCKING: Self = Self(1 << 6);
    /// Allowed while the server loads data.
    pub const LOADING: Self = Self(1 << 7);
    pub const STALE: Self = Self(1 << 8);
    pub const SKIP_MONITOR: Self = Self(1 << 9);
    pub const SKIP_SLOWLOG: Self = Self(1 << 10);
    pub const ASKING: Self = Self(1 << 11);
    /// Constant or logarithmic time.
    pub const FAST: Self = Self(1 << 12);
    /// Allowed before authentication.
    pub const NO_AUTH: Self = Self(1 << 13);
    pub const NO_MULTI: Self = Self(1 << 14);
    pub const NO_ASYNC_LOADING: Self = Self(1 << 15);
    pub const ALLOW_BUSY: Self = Self(1 << 16);
    pub const MOVABLE_KEYS: Self = Self(1 << 17);
    pub const PROTECTED: Self = Self(1 << 18);
    /// Runs on the main thread: the client moves there and back.
    pub const MAIN: Self = Self(1 << 19);
    /// For developers and operators of the server, not for applications; `syscmd` in COMMAND DOCS.
    pub const SYSTEM: Self = Self(1 << 20);
    /// Runs immediately between MULTI and EXEC, without being queued.
    pub const NOT_QUEUED: Self = Self(1 << 21);
    /// May change the keyspace by other commands, as a script does.
    pub const MAY_REPLICATE: Self = Self(1 << 22);
    /// May have no keys at its key positions.
    pub const NO_MANDATORY_KEYS: Self = Self(1 << 23);
    /// A subscribed client in RESP2 may send it.
    pub const SUBSCRIBED: Self = Self(1 << 24);
    /// Changes subscriptions: runs on the client's owner thread.
    pub const HOME: Self = Self(1 << 25);
    /// Its replies are push messages, which CLIENT REPLY does not turn off.
    pub const PUSHES: Self = Self(1 << 26);
    /// Changes its client's user, protocol or messages other than replies.
    pub const SESSION: Self = Self(1 << 27);
    /// Changes state that commands of all clients use: the configuration, users, scripts. Other
    /// clients see all changes of a transaction or none.
    pub const GLOBAL: Self = Self(1 << 28);
    /// A save to the RDB file follows, if `save` is configured.
    pub const SAVES: Self = Self(1 << 29);
    /// Returns values of its keys and changes at most their expiry: clients that track keys are
    /// notified of later changes, as after a read-only command.
    pub const TRACKED: Self = Self(1 << 30);

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a command with these flags may change the keyspace.
    #[inline]
    pub const fn may_write(self) -> bool {
        self.0 & (Self::WRITE.0 | Self::MAY_REPLICATE.0) != 0
    }

    /// The names of the set flags in COMMAND INFO, in the order of Redis.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 20] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags(0), "module"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NOSCRIPT, "noscript"),
            (Flags::BLOCKING, "blocking"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::ASKING, "asking"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::MOVABLE_KEYS, "movablekeys"),
            (Flags::NO_ASYNC_LOADING, "no_async_loading"),
            (Flags::ALLOW_BUSY, "allow_busy"),
        ];
        NAMES.into_iter().filter(move |(flag, _)| flag.0 != 0 && self.has(*flag)).map(|(_, n)| n)
    }
}

/// ACL categories, as bits. `Spec::categories` adds those that follow from flags and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category(pub u32);

#[allow(missing_docs)]
impl Category {
    pub const NONE: Self = Self(0);
    pub const KEYSPACE: Self = Self(1);
    pub const READ: Self = Self(1 << 1);
    pub const WRITE: Self = Self(1 << 2);
    pub const SET: Self = Self(1 << 3);
    pub const SORTED_SET: Self = Self(1 << 4);
    pub const LIST: Self = Self(1 << 5);
    pub const HASH: Self = Self(1 << 6);
    pub const STRING: Self = Self(1 << 7);
    pub const BITMAP: Self = Self(1 << 8);
    pub const HYPER_LOG_LOG: Self = Self(1 << 9);
    pub const GEO: Self = Self(1 << 10);
    pub const STREAM: Self = Self(1 << 11);
    pub const PUBSUB: Self = Self(1 << 12);
    pub const ADMIN: Self = Self(1 << 13);
    pub const FAST: Self = Self(1 << 14);
    pub const SLOW: Self = Self(1 << 15);
    pub const BLOCKING: Self = Self(1 << 16);
    pub const DANGEROUS: Self = Self(1 << 17);
    pub const CONNECTION: Self = Self(1 << 18);
    pub const TRANSACTION: Self = Self(1 << 19);
    pub const SCRIPTING: Self = Self(1 << 20);
    /// Every category.
    pub const EVERY: Self = Self((1 << 21) - 1);

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it contains all bits of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The category with a name, in any case and without the `@`.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let bits = (0..u32::BITS).map(|bit| Self(1 << bit));
        let is_named = |category: &Self| {
            category.names().any(|own| own.as_bytes()[1..].eq_ignore_ascii_case(name))
        };
        bits.into_iter().find(is_named)
    }

    /// The names with the `@`, in the order of Redis.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(u32, &str); 21] = [
            (1, "@keyspace"),
            (1 << 1, "@read"),
            (1 << 2, "@write"),
            (1 << 3, "@set"),
            (1 << 4, "@sortedset"),
            (1 << 5, "@list"),
            (1 << 6, "@hash"),
            (1 << 7, "@string"),
            (1 << 8, "@bitmap"),
            (1 << 9, "@hyperloglog"),
            (1 << 10, "@geo"),
            (1 << 11, "@stream"),
            (1 << 12, "@pubsub"),
            (1 << 13, "@admin"),
            (1 << 14, "@fast"),
            (1 << 15, "@slow"),
            (1 << 16, "@blocking"),
            (1 << 17, "@dangerous"),
            (1 << 18, "@connection"),
            (1 << 19, "@transaction"),
            (1 << 20, "@scripting"),
        ];
        NAMES.into_iter().filter(move |(bit, _)| bit & self.0 != 0).map(|(_, name)| name)
    }
}

/// The shards that a command, a transaction or a script uses, from the narrowest scope to the
/// widest. A transaction has the widest scope of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardScope {
    /// The shards of its keys, locked together; no shard without keys.
    #[default]
    Keys,
    /// The same, and further shards while it runs: free ones, for a report that may omit the
    /// others; those of undeclared keys, for a script. A report outside a transaction locks one
    /// shard after another.
    KeysAndFree,
    /// Each shard, one after another, so the result does not belong to one moment. In a transaction
    /// all shards, locked together with those of the other commands.
    EachShard,
    /// All shards, while no other thread executes commands. A transaction that contains such a
    /// command runs so as a whole.
    Exclusive,
    /// Like `Exclusive` if a pattern, which can name any key, follows one of these keywords;
    /// otherwise like `Keys`.
    KeysOrExclusive(&'static [&'static str]),
}

impl ShardScope {
    /// The scope of a request with these arguments: never `KeysOrExclusive`.
    #[inline]
    pub fn with(self, args: &Args<'_>) -> Self {
        let Self::KeysOrExclusive(words) = self else { return self };
        let is_pattern = |at: usize| args.at(at + 1).is_some_and(|arg| arg.contains(&b'*'));
        let is_word =
            |arg: &[u8]| words.iter().any(|word| arg.eq_ignore_ascii_case(word.as_bytes()));
        let mut args = args.iter().enumerate();
        if args.any(|(at, arg)| is_word(arg) && is_pattern(at)) {
            Self::Exclusive
        } else {
            Self::Keys
        }
    }
}

/// The forms of an argument in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shape {
    Key,
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    /// A keyword without a value.
    Token,
    /// One of the parts.
    OneOf(&'static [Argument]),
    /// All of the parts, in order.
    Block(&'static [Argument]),
}

/// An argument in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The name.
    pub name: &'static str,
    /// The form.
    pub shape: Shape,
    /// The keyword before its value, or the keyword itself.
    pub token: Option<&'static str>,
    /// Whether it is optional.
    pub optional: bool,
    /// Whether it can be repeated.
    pub multiple: bool,
    /// The index of its key specification, if that does not follow from the order of arguments.
    pub key_spec: Option<usize>,
    /// Whether its keyword is repeated with it.
    pub multiple_token: bool,
    /// The version that added it, if later than the command.
    pub since: Option<&'static str>,
    /// The version that deprecated it.
    pub deprecated: Option<&'static str>,
    /// The text for its value in a synopsis, if not the name.
    pub display: Option<&'static str>,
}

impl Argument {
    /// An argument that occurs exactly once.
    pub const fn new(name: &'static str, shape: Shape) -> Self {
        Self {
            name,
            shape,
            token: None,
            optional: false,
            multiple: false,
            key_spec: None,
            multiple_token: false,
            since: None,
            deprecated: None,
            display: None,
        }
    }

    /// The key at a command's only key position.
    pub const fn key() -> Self {
        Self::new("key", Shape::Key)
    }

    /// A keyword without a value.
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self { token: Some(token), ..Self::new(name, Shape::Token) }
    }

    /// Follows a keyword.
    pub const fn after(self, token: &'static str) -> Self {
        Self { token: Some(token), ..self }
    }

    /// It is optional.
    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// It can be repeated.
    pub const fn multiple(self) -> Self {
        Self { multiple: true, ..self }
    }

    /// Can be repeated, each time with its keyword.
    pub const fn multiple_token(self) -> Self {
        Self { multiple: true, multiple_token: true, ..self }
    }

    /// Belongs to the key specification of this index.
    pub const fn key_spec(self, index: usize) -> Self {
        Self { key_spec: Some(index), ..self }
    }

    /// Was added in a later version than the command.
    pub const fn since(self, version: &'static str) -> Self {
        Self { since: Some(version), ..self }
    }

    /// Deprecated since a version.
    pub const fn deprecated(self, version: &'static str) -> Self {
        Self { deprecated: Some(version), ..self }
    }

    /// The text for its value in a synopsis, if not the name.
    pub const fn display(self, text: &'static str) -> Self {
        Self { display: Some(text), ..self }
    }
}

/// Which arguments are channels or patterns of channels, for which the user needs permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// No arguments.
    None,
    /// The first argument after the name.
    First,
    /// All arguments after the name.
    All,
    /// All arguments after the name, which are patterns.
    Patterns,
}

/// The metadata of a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name in lower case; of a subcommand only its own part.
    pub name: &'static str,
    /// A summary in one line: a sentence that starts with a verb.
    pub summary: &'static str,
    /// The version of Redis that added it.
    pub since: &'static str,
    /// Its group.
    pub group: Group,
    /// Its time complexity.
    pub complexity: &'static str,
    /// The number of arguments, including the name; negative if it is a minimum.
    pub arity: i32,
    /// Its properties.
    pub flags: Flags,
    /// Categories beyond those that follow from flags and group.
    pub extra_categories: Category,
    /// The positions of its keys.
    pub keys: &'static [KeySpec],
    /// Which of its arguments are channels.
    pub channels: Channels,
    /// Which shards it uses.
    pub scope: ShardScope,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// Later changes: the version, and what changed.
    pub history: &'static [(&'static str, &'static str)],
    /// Hints for clients and proxies (command tips of the Redis documentation).
    pub tips: &'static [&'static str],
    /// The version that deprecated it, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Whether it only has subcommands; then no category follows from its group.
    pub is_container: bool,
    /// The part of a large value of its only key that it accesses.
    pub prefetch: PrefetchHint,
}

/// The part of a large value that a command accesses, to prefetch it while other requests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchHint {
    /// Only the record is known in advance.
    Record,
    /// The member in this argument.
    Member(usize),
    /// The stream itself and its end, where entries are added.
    Stream,
    /// The first elements of the list.
    Front,
    /// The last elements of the list.
    Back,
}

impl Spec {
    /// A command without keys and arguments.
    pub const fn new(name: &'static str, arity: i32, group: Group, since: &'static str) -> Self {
        Self {
            name,
            summary: "",
            since,
            group,
            complexity: "O(1)",
            arity,
            flags: Flags::NONE,
            extra_categories: Category::NONE,
            keys: &[],
            channels: Channels::None,
            scope: ShardScope::Keys,
            arguments: &[],
            history: &[],
            tips: &[],
            deprecated: None,
            is_container: false,
            prefetch: PrefetchHint::Record,
        }
    }

    /// Sets which argument is a member of the collection of its only key.
    pub const fn member(self, at: usize) -> Self {
        Self { prefetch: PrefetchHint::Member(at), ..self }
    }

    /// It accesses the front of a list.
    pub const fn at_front(self) -> Self {
        Self { prefetch: PrefetchHint::Front, ..self }
    }

    /// It accesses the end of a list.
    pub const fn at_back(self) -> Self {
        Self { prefetch: PrefetchHint::Back, ..self }
    }

    /// It only has subcommands.
    pub const fn container(self) -> Self {
        Self { is_container: true, ..self }
    }

    /// The one-line summary.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Its time complexity, if not O(1). With an empty text COMMAND DOCS omits it.
    pub const fn complexity(self, complexity: &'static str) -> Self {
        Self { complexity, ..self }
    }

    /// Adds flags.
    pub const fn flags(self, flags: Flags) -> Self {
        Self { flags: self.flags.with(flags), ..self }
    }

    /// Adds categories that do not follow from flags and group.
    pub const fn category(self, category: Category) -> Self {
        Self { extra_categories: self.extra_categories.with(category), ..self }
    }

    /// The positions of its keys.
    pub const fn keys(self, keys: &'static [KeySpec]) -> Self {
        Self { keys, ..self }
    }

    /// Which of its arguments are channels.
    pub const fn channels(self, channels: Channels) -> Self {
        Self { channels, ..self }
    }

    /// Which shards it uses.
    pub const fn scope(self, scope: ShardScope) -> Self {
        Self { scope, ..self }
    }

    /// Its arguments.
    pub const fn arguments(self, arguments: &'static [Argument]) -> Self {
        Self { arguments, ..self }
    }

    /// Later changes.
    pub const fn history(self, history: &'static [(&'static str, &'static str)]) -> Self {
        Self { history, ..self }
    }

    /// Hints for clients.
    pub const fn tips(self, tips: &'static [&'static str]) -> Self {
        Self { tips, ..self }
    }

    /// Deprecated since a version, and replaced by something else.
    pub const fn deprecated(self, since: &'static str, instead: &'static str) -> Self {
        Self { deprecated: Some((since, instead)), ..self }
    }

    /// Whether `len`, including the name, is a right number of arguments.
    #[inline]
    pub fn accepts(&self, len: usize) -> bool {
        let wanted = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { len >= wanted } else { len == wanted }
    }

    /// All categories, including those that follow from flags and group.
    pub fn categories(&self) -> Category {
        let mut all = self.extra_categories;
        let flags = self.flags;
        let is_of = |group| self.group == group && !self.is_container;
        let follow = [
            (flags.has(Flags::WRITE), Category::WRITE),
            // The effect of a script is unknown, even if its flags say that it only reads.
            (flags.has(Flags::READONLY) && !is_of(Group::Scripting), Category::READ),
            (flags.has(Flags::ADMIN), Category::ADMIN.with(Category::DANGEROUS)),
            (flags.has(Flags::PUBSUB), Category::PUBSUB),
            (flags.has(Flags::BLOCKING), Category::BLOCKING),
            (is_of(Group::Bitmap), Category::BITMAP),
            (is_of(Group::Geo), Category::GEO),
            (is_of(Group::Hash), Category::HASH),
            (is_of(Group::HyperLogLog), Category::HYPER_LOG_LOG),
            (is_of(Group::List), Category::LIST),
            (is_of(Group::Set), Category::SET),
            (is_of(Group::SortedSet), Category::SORTED_SET),
            (is_of(Group::Stream), Category::STREAM),
            (is_of(Group::String), Category::STRING),
            (is_of(Group::Connection), Category::CONNECTION),
            (is_of(Group::Transactions), Category::TRANSACTION),
            (is_of(Group::Scripting), Category::SCRIPTING),
            (flags.has(Flags::FAST), Category::FAST),
            (!flags.has(Flags::FAST), Category::SLOW),
        ];
        for (holds, category) in follow {
            if holds {
                all = all.with(category);
            }
        }
        all
    }
}
