//! The effect of rule words on a user, as ACL LIST shows it, and words that are refused.

use acl::{EditError, RuleContext, User};
use base::quote::split_args;

use crate::table::{commands, may_run, user, user_with};

/// Applies words to a new user and compares its rules, without the flags that every user has.
#[track_caller]
fn check(words: &str, expected: &str) {
    let text = String::from_utf8(user(words).words().join(&b' ')).unwrap();
    let expected = match expected.strip_prefix("off") {
        Some(rest) if !rest.contains("sanitize") => format!("off sanitize-payload{rest}"),
        _ => expected.to_owned(),
    };
    assert_eq!(text, expected, "{words}");
    // The shown words reproduce the user.
    let words: Vec<&str> = text.split(' ').collect();
    let again = String::from_utf8(user_with(&words).words().join(&b' ')).unwrap();
    assert_eq!(again, text, "{words:?}, again");
}

#[track_caller]
fn refused(words: &str, word: &str, reason: &str) {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let args = split_args(words.as_bytes()).unwrap();
    match User::new(b"u", context).edited(&args, context) {
        Err(EditError::Word(wrong, error)) => {
            assert_eq!(String::from_utf8(wrong).unwrap(), word, "{words}");
            let error = error.to_string();
            assert!(error.contains(reason), "{words}: {error}");
        }
        other => panic!("{words}: {other:?}"),
    }
}

const SHA_OF_A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
const SHA_OF_B: &str = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";

#[test]
fn flags_and_passwords() {
    check("", "off resetchannels -@all");
    check("on", "on sanitize-payload resetchannels -@all");
    check("ON oFF", "off resetchannels -@all");
    check("nopass skip-sanitize-payload", "off nopass skip-sanitize-payload resetchannels -@all");
    check("skip-sanitize-payload sanitize-payload", "off resetchannels -@all");
    check(">a", &format!("off #{SHA_OF_A} resetchannels -@all"));
    check(">a >b >a", &format!("off #{SHA_OF_A} #{SHA_OF_B} resetchannels -@all"));
    check(&format!("nopass #{SHA_OF_A}"), &format!("off #{SHA_OF_A} resetchannels -@all"));
    check(">a >b <a", &format!("off #{SHA_OF_B} resetchannels -@all"));
    check(&format!(">a >b !{SHA_OF_B}"), &format!("off #{SHA_OF_A} resetchannels -@all"));
    check(">a resetpass", "off resetchannels -@all");
    check(">a nopass", "off nopass sanitize-payload resetchannels -@all");
    check("nopass resetpass", "off resetchannels -@all");
    refused("<a", "<a", "does not exist");
    refused(&format!("!{SHA_OF_A}"), &format!("!{SHA_OF_A}"), "does not exist");
    for wrong in ["#", "#00", "!00", &format!("#{SHA_OF_A}0"), &format!("#{}A", &SHA_OF_A[1..])] {
        refused(wrong, wrong, "must be exactly 64 characters");
    }
}

#[test]
fn keys() {
    check("~a* ~b", "off ~a* ~b resetchannels -@all");
    check("~a ~b ~a", "off ~a ~b resetchannels -@all");
    check("%R~a %W~b %RW~c %wr~d", "off %R~a %W~b ~c ~d resetchannels -@all");
    check("%R~a %W~a ~b", "off ~a ~b resetchannels -@all");
    check("%R~* ~*", "off ~* resetchannels -@all");
    check("%R~*", "off %R~* resetchannels -@all");
    check("%R~* %W~*", "off ~* resetchannels -@all");
    check("~a %RW~* ~b", "off ~a %RW~* ~b resetchannels -@all");
    check("~a allkeys", "off ~* resetchannels -@all");
    check("AllKeys resetkeys ~b", "off ~b resetchannels -@all");
    check("%RW", "off ~ resetchannels -@all");
    check("~", "off ~ resetchannels -@all");
    for wrong in ["%", "%~", "%~a", "%X~a", "%RR~a", "%RWR~a"] {
        refused(wrong, wrong, "Syntax error");
    }
    refused("\"~a b\"", "~a b", "Syntax error");
    refused("\"%R~a\\x00b\"", "%R~a\0b", "Syntax error");
    refused("allkeys ~a", "~a", "Try 'resetkeys'");
    refused("~* %R~a", "%R~a", "Try 'resetkeys'");
    refused("~* %", "%", "Try 'resetkeys'");
}

#[test]
fn channels() {
    check("&a &b* &a", "off resetchannels &a &b* -@all");
    check("&a allchannels", "off &* -@all");
    check("&* resetchannels &c", "off resetchannels &c -@all");
    refused("allchannels &a", "&a", "Try 'resetchannels'");
    refused("\"&a\\tb\"", "&a\tb", "Syntax error");
}

#[test]
fn rules_about_commands_keep_their_order() {
    check("+get -set", "off resetchannels -@all +get -set");
    check("+get +set +GET", "off resetchannels -@all +set +get");
    check("+get -get", "off resetchannels -@all -get");
    check("+@all -@string +@STRING", "off resetchannels +@all +@string");
    check("+@hash +@slow +@hash", "off resetchannels -@all +@slow +@hash");
    check("+get allcommands", "off resetchannels +@all");
    check("+@all -get nocommands", "off resetchannels -@all");
    check("-@dangerous", "off resetchannels -@all -@dangerous");
    check("+config|get +config", "off resetchannels -@all +config");
    check("+config +config|get -config|set +config", "off resetchannels -@all +config");
    check("+config|get -config|GET", "off resetchannels -@all -config|get");
    check("+select|0 +select|0 +SELECT|A", "off resetchannels -@all +select|0 +select|a");
    check("+select|0 +select", "off resetchannels -@all +select");
}

#[test]
fn commands_that_do_not_exist_here_are_kept() {
    check("+get -migrate +VADD", "off resetchannels -@all +get -migrate +vadd");
    check("+@all -psync", "off resetchannels +@all -psync");
    check(
        "+sentinel|masters -sentinel|set",
        "off resetchannels -@all +sentinel|masters -sentinel|set",
    );
    check("+sentinel|masters +sentinel", "off resetchannels -@all +sentinel");
    check("+Json.Get|x", "off resetchannels -@all +json.get|x");
    check("+@all -@JSON +@bloom", "off resetchannels +@all -@json +@bloom");
    check("(+ft.search ~i)", "off resetchannels -@all (~i resetchannels -@all +ft.search)");
    refused("+sentinel|nosuch", "+sentinel|nosuch", "Unknown command or category name");
    refused("-vadd|x", "-vadd|x", "Unknown command or category name");
    refused("+sentinel|set|x", "+sentinel|set|x", "first-arg of a subcommand");
    let user = user("+@all -migrate -@search ~* &*");
    assert_eq!(may_run(&user, "get k"), Ok(()));
}

#[test]
fn words_that_are_not_rules() {
    for wrong in ["+nosuch", "-nosuch", "+", "-", "+@nosuch", "-@", "+get|a|b", "-get|a", "+|a"] {
        refused(wrong, wrong, "Unknown command or category name");
    }
    refused("+config|nosuch", "+config|nosuch", "Unknown command or category name");
    refused("-config|nosuch", "-config|nosuch", "Unknown command or category name");
    refused("+select -select|0", "-select|0", "Unknown command or category name");
    refused("+config|get|x", "+config|get|x", "first-arg of a subcommand");
    refused("\"+select|a b\"", "+select|a b", "Syntax error");
    for wrong in ["nonsense", "get", "+config|", "+select|", ")", "on\\x00", "@all", "*"] {
        refused(wrong, wrong, "Syntax error");
    }
    check("\"\" on", "on sanitize-payload resetchannels -@all");
    check("\"on\\x00junk\" \"+get\\x00junk\"", "on sanitize-payload resetchannels -@all +get");
}

#[test]
fn selectors() {
    check("(+get ~a)", "off resetchannels -@all (~a resetchannels -@all +get)");
    check(
        "( +get  ~a ) ()",
        "off resetchannels -@all (~a resetchannels -@all +get) \
                              (resetchannels -@all)",
    );
    check(
        r#"~) "~a'b" "(\"~c)\" '~d\"' ~e\\f)""#,
        r#"off ~) ~a'b resetchannels -@all ("~c)" "~d\"" ~e\f resetchannels -@all)"#,
    );
    check("(allchannels +@all) ~x", "off ~x resetchannels -@all (&* +@all)");
    check("(+get) clearselectors", "off resetchannels -@all");
    check("+get (+set) on nopass >a reset", "off resetchannels -@all");
    refused("(+nosuch)", "(+nosuch)", "Unknown command");
    refused("(on)", "(on)", "Syntax error");
    refused("(+get (+set (+mget )", "(+get (+set (+mget )", "Syntax error");
    refused("(&* &a)", "(&* &a)", "Try 'resetchannels'");
    refused("\" ()\"", " ()", "Syntax error");
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: true };
    let unmatched = User::new(b"u", context).edited(&["on", "(+get", "~a"], context);
    assert_eq!(unmatched.err(), Some(EditError::Unmatched(b"(+get".to_vec())));
    // The channels of new selectors and reset users depend on the configuration.
    let user = User::new(b"u", context).edited(&["&*", "()", "reset", "()"], context).unwrap();
    assert_eq!(user.words().join(&b' '), b"off sanitize-payload &* -@all (&* -@all)");
}

#[test]
fn a_change_is_complete_or_has_no_effect() {
    let commands = commands();
    let context = RuleContext { commands: &commands, all_channels: false };
    let before = user("on +get ~a");
    assert!(before.edited(&["off", "+set", "nonsense"], context).is_err());
    assert_eq!(before.words(), user("on +get ~a").words());
    assert!(before.edited(&[] as &[&str], context).unwrap().is_enabled());
}

#[test]
fn many_words_take_linear_time() {
    let patterns: String = (0..100_000).map(|n| format!("~key:{n} &channel:{n} ")).collect();
    let arguments: String = (0..50_000).map(|n| format!("+select|{n} ")).collect();
    let user = user(&format!("{patterns}{arguments}"));
    assert_eq!(user.selectors()[0].keys_text().split(|byte| *byte == b' ').count(), 100_000);
}
