//! A small table of commands, and requests of it.

use acl::{AccessRequest, CommandIndex, Denied, RuleContext, User};
use base::quote::split_args;
use command::{Access, Category, Flags, Group, KeySpec, Spec};
use resp::{Args, Span};

const READ: Access = Access::RO.with(Access::ACCESS);
const WRITE: Access = Access::OW.with(Access::UPDATE);
const UPDATE: Access = Access::RW.with(Access::ACCESS).with(Access::UPDATE);

const fn data(name: &'static str, arity: i32, flags: Flags, keys: &'static [KeySpec]) -> Spec {
    Spec::new(name, arity, Group::String, "1.0.0").flags(flags).keys(keys)
}

const fn server(name: &'static str, flags: Flags) -> Spec {
    Spec::new(name, -1, Group::Server, "1.0.0").flags(flags)
}

fn set_access(args: &Args<'_>) -> Access {
    if args.len() > 3 { UPDATE } else { WRITE }
}

/// The rows, each with the index of its parent.
pub static ROWS: &[(Spec, Option<u16>)] = &[
    (data("get", 2, Flags::READONLY.with(Flags::FAST), &[KeySpec::one(1, READ)]), None),
    (data("set", -3, Flags::WRITE, &[KeySpec::one(1, UPDATE).varying(set_access)]), None),
    (data("mget", -2, Flags::READONLY, &[KeySpec::to_end(1, 1, READ)]), None),
    (data("strlen", 2, Flags::READONLY, &[KeySpec::one(1, Access::RO)]), None),
    (
        data(
            "copy",
            3,
            Flags::WRITE,
            &[KeySpec::one(1, READ), KeySpec::one(2, Access::OW.with(Access::INSERT))],
        ),
        None,
    ),
    (
        data(
            "sort",
            -2,
            Flags::WRITE,
            &[
                KeySpec::one(1, READ),
                KeySpec::patterns(2, &[("BY", true)], &[("ASC", 0, false)], READ),
            ],
        ),
        None,
    ),
    (server("config", Flags::NONE).container(), None),
    (server("get", Flags::ADMIN), Some(6)),
    (server("set", Flags::ADMIN), Some(6)),
    (server("select", Flags::FAST).category(Category::CONNECTION), None),
    (server("auth", Flags::NO_AUTH.with(Flags::FAST)), None),
    (server("publish", Flags::PUBSUB), None),
];

/// The view of the rows.
pub fn commands() -> CommandIndex {
    let mut commands = CommandIndex::default();
    for (spec, parent) in ROWS {
        let name = match parent {
            Some(parent) => format!("{}|{}", ROWS[usize::from(*parent)].0.name, spec.name),
            None => spec.name.to_owned(),
        };
        commands.push(&name, *parent, spec.categories());
    }
    commands
}

/// A new user with words of ACL SETUSER.
pub fn user_with(words: &[impl AsRef<[u8]>]) -> User {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    User::new(b"u", context).edited(words, context).expect("rules without errors")
}

/// The same, with the words quoted like an inline command.
pub fn user(words: &str) -> User {
    user_with(&split_args(words.as_bytes()).expect("quotes are closed"))
}

/// Whether a user may run a request; `publish` has one channel.
pub fn may_run(user: &User, request: &str) -> Result<(), Denied> {
    let mut buffer = Vec::new();
    let spans: Vec<Span> = split_args(request.as_bytes())
        .expect("quotes are closed")
        .iter()
        .map(|arg| {
            buffer.extend_from_slice(arg);
            Span::new(buffer.len() - arg.len(), arg.len())
        })
        .collect();
    let args = Args::new(&buffer, &spans, &[]);
    let commands = commands();
    let sub = [args.name(), b"|", args.text(1)].concat();
    let (index, _) = commands.find(&sub).or_else(|| commands.find(args.name())).expect("a command");
    let spec = &ROWS[usize::from(index)].0;
    let channel = [acl::CheckedChannel { at: 1, is_pattern: false }];
    let channels = if spec.name == "publish" { &channel[..] } else { &[] };
    user.check(&AccessRequest { index, spec, args: &args, channels })
}
