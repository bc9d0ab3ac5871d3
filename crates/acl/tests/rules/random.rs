//! Random rules and files: nothing panics, the shown words reproduce the user, and the check agrees
//! with a model that applies the rules to a single request. `ACL_FUZZ_ROUNDS` in the environment
//! sets the number of rounds.

use acl::{RuleContext, User, Users, file};
use base::glob;
use command::Category;
use proptest::prelude::*;

use crate::table::{ROWS, commands, may_run};

/// Rounds of each test, unless the environment sets another number.
const ROUNDS: u32 = 512;

fn rounds() -> ProptestConfig {
    let more = std::env::var("ACL_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    ProptestConfig::with_cases(more.unwrap_or(ROUNDS))
}

/// Valid words and some invalid ones.
fn word() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        prop::sample::select(vec![
            "get",
            "set",
            "mget",
            "strlen",
            "copy",
            "config",
            "config|get",
            "config|set",
            "select",
            "publish",
            "sort",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(Category::EVERY.names().collect::<Vec<_>>()).prop_map(str::to_owned),
        Just("@all".to_owned()),
        (prop::sample::select(vec!["select", "get"]), "[a-c]")
            .prop_map(|(command, arg)| format!("{command}|{arg}")),
    ];
    prop_oneof![
        6 => ("[+-]", name).prop_map(|(sign, name)| format!("{sign}{name}")),
        3 => ("~|%R~|%W~|%RW~", "[abc*?]{0,3}").prop_map(|(sign, text)| format!("{sign}{text}")),
        1 => "&[abc*]{0,3}",
        1 => prop::sample::select(vec![
            "on", "off", "nopass", "resetpass", "reset", "resetkeys", "resetchannels",
            "clearselectors", "allkeys", "allchannels", "allcommands", "nocommands", ">a", "<a",
        ])
        .prop_map(str::to_owned),
        1 => "[+~&(%#<a)@|* -]{0,6}",
    ]
}

/// A list of words, some of them within selectors.
fn words() -> impl Strategy<Value = Vec<String>> {
    let selector = prop::collection::vec(word(), 0..4);
    let selector = selector.prop_map(|words| format!("({})", words.join(" ")));
    prop::collection::vec(prop_oneof![5 => word(), 1 => selector], 0..12)
}

/// Applies the valid words.
fn user_of(words: &[String]) -> User {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let new = User::new(b"u", context);
    words.iter().fold(new, |user, word| user.edited(&[word], context).unwrap_or(user))
}

const REQUESTS: &[&str] = &[
    "get a",
    "get abc",
    "get b",
    "set a x",
    "set b x get",
    "mget a b",
    "strlen c",
    "copy a b",
    "config get x",
    "config set x",
    "config",
    "select a",
    "select b",
    "auth x",
    "publish a m",
    "sort a",
    "sort a by c*",
];

/// Whether the root selector of the rules in one line allows a GET of a key.
fn model_allows_get(text: &str, key: &str) -> bool {
    let (mut command, mut keys) = (false, false);
    for word in text.split(' ').take_while(|word| !word.starts_with('(')) {
        let (sign, name) = word.split_at(word.len().min(1));
        let categories = ROWS[0].0.categories();
        let of_category = |name: &str| name == "@all" || categories.names().any(|own| own == name);
        match sign {
            "+" | "-" if name == "get" || of_category(name) => command = sign == "+",
            "+" if name == format!("get|{key}") => command = true,
            "~" => keys |= name == "*" || glob::matches(name.as_bytes(), key.as_bytes(), false),
            "%" if word.starts_with("%R") => {
                let (_, pattern) = word.split_once('~').unwrap();
                keys |= glob::matches(pattern.as_bytes(), key.as_bytes(), false);
            }
            _ => {}
        }
    }
    command && keys
}

proptest! {
    #![proptest_config(rounds())]

    #[test]
    fn shown_words_reproduce_the_user(words in words()) {
        let user = user_of(&words);
        let text = String::from_utf8(user.words().join(&b' ')).unwrap();
        let shown = user_of(&[]);
        let commands = commands();
        let context = RuleContext { commands: &commands, all_channels: false };
        let again: Vec<&str> = text.split(' ').collect();
        let again = shown.edited(&again, context);
        prop_assert!(again.is_ok(), "{}: {:?}", text, again);
        let again = again.unwrap();
        prop_assert_eq!(String::from_utf8(again.words().join(&b' ')).unwrap(), text);
        for request in REQUESTS {
            prop_assert_eq!(may_run(&again, request), may_run(&user, request), "{}", request);
        }
    }

    #[test]
    fn the_check_agrees_with_the_words(
        words in prop::collection::vec(word(), 0..12), key in "[abc]{1,3}",
    ) {
        let user = user_of(&words).edited(&["clearselectors"], RuleContext {
            commands: &commands(),
            all_channels: false,
        }).unwrap();
        let text = String::from_utf8(user.words().join(&b' ')).unwrap();
        let allowed = may_run(&user, &format!("get {key}")).is_ok();
        prop_assert_eq!(allowed, model_allows_get(&text, &key), "{} for {}", text, key);
    }

    #[test]
    fn any_words_are_handled(words: Vec<Vec<u8>>) {
        let commands = commands();
        let context = RuleContext { commands: &commands, all_channels: false };
        let user = User::new(b"u", context);
        for word in &words {
            let _ = user.edited(&[word], context);
        }
        let _ = user.edited(&words, context);
    }

    #[test]
    fn any_file_is_handled(lines in prop::collection::vec(
        prop_oneof![
            Just(b"user ".to_vec()),
            Just(b"\n".to_vec()),
            Just(b" default ".to_vec()),
            Just(b" (".to_vec()),
            Just(b") ".to_vec()),
            word().prop_map(String::into_bytes),
            any::<Vec<u8>>(),
        ],
        0..24,
    )) {
        let commands = commands();
        let context = RuleContext { commands: &commands, all_channels: false };
        if let Ok(users) = file::read(&lines.concat(), "users.acl", context) {
            same_when_written(&users, context)?;
        }
    }

    #[test]
    fn written_users_are_read_back(all in prop::collection::vec(("[a-d]", words()), 0..6)) {
        let commands = commands();
        let context = RuleContext { commands: &commands, all_channels: false };
        let mut users = Users::new(context);
        for (name, words) in all {
            let _ = users.set(name.as_bytes(), &words, context);
        }
        same_when_written(&users, context)?;
    }
}

fn same_when_written(users: &Users, context: RuleContext<'_>) -> Result<(), TestCaseError> {
    let text = file::write(users);
    let again = file::read(&text, "users.acl", context);
    prop_assert!(again.is_ok(), "{:?}: {:?}", String::from_utf8_lossy(&text), again);
    prop_assert_eq!(file::write(&again.unwrap()), text);
    Ok(())
}
