//! The text of HELP subcommands, derived from the rows: a synopsis and a summary for each.

use command::{Argument, Shape, Spec};

/// The first line of `COMMAND HELP`, as in Redis.
pub fn header(command: &str) -> String {
    format!("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", command.to_uppercase())
}

/// The lines of `COMMAND HELP`, in the order of the subcommands given; HELP itself comes last, as
/// in Redis.
pub fn lines<'a>(command: &str, subcommands: impl Iterator<Item = &'a Spec>) -> Vec<String> {
    let mut lines = vec![header(command)];
    for spec in subcommands.filter(|spec| spec.name != "help") {
        let synopsis = synopsis(spec.arguments);
        let gap = if synopsis.is_empty() { "" } else { " " };
        lines.push(format!("{}{gap}{synopsis}", spec.name.to_uppercase()));
        lines.push(format!("    {}", spec.summary));
    }
    lines.extend(["HELP", "    Print this help."].map(str::to_owned));
    lines
}

/// Arguments in the notation of manuals: `<value>`, `WORD`, `[optional]`, `(one|of)`, `many ...`.
pub fn synopsis(arguments: &[Argument]) -> String {
    arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn one(argument: &Argument) -> String {
    let (bare, is_choice) = bare(argument);
    let more = if argument.multiple { " ..." } else { "" };
    match (argument.optional, is_choice) {
        (true, _) if argument.multiple && is_choice => format!("[({bare}){more}]"),
        (true, _) => format!("[{bare}{more}]"),
        (false, true) => format!("({bare}){more}"),
        (false, false) => format!("{bare}{more}"),
    }
}

/// An argument without the marks of optional and repeated ones, and whether it is a bare choice,
/// which needs brackets.
fn bare(argument: &Argument) -> (String, bool) {
    let (value, is_choice) = match argument.shape {
        Shape::Token => return (argument.token.unwrap_or_default().to_owned(), false),
        Shape::OneOf(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|part| one(&Argument { optional: false, ..*part })).collect();
            (parts.join("|"), parts.len() > 1)
        }
        Shape::Block(parts) => (synopsis(parts), false),
        _ => (format!("<{}>", argument.display.unwrap_or(argument.name)), false),
    };
    match (argument.token, is_choice) {
        (None, _) => (value, is_choice),
        (Some(token), true) => (format!("{token} ({value})"), false),
        (Some(token), false) => (format!("{token} {value}"), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synopses_read_like_a_manual() {
        const YES_NO: Shape =
            Shape::OneOf(&[Argument::word("yes", "YES"), Argument::word("no", "NO")]);
        const PAIR: Shape = Shape::Block(&[Argument::key(), Argument::new("value", Shape::String)]);
        let cases = [
            (Argument::key(), "<key>"),
            (Argument::key().multiple(), "<key> ..."),
            (Argument::key().multiple().optional(), "[<key> ...]"),
            (Argument::new("a", Shape::String).display("ip:port").after("ADDR"), "ADDR <ip:port>"),
            (Argument::new("a", YES_NO), "(YES|NO)"),
            (Argument::new("a", YES_NO).optional(), "[YES|NO]"),
            (Argument::new("a", YES_NO).optional().multiple(), "[(YES|NO) ...]"),
            (Argument::new("a", YES_NO).optional().after("SKIP"), "[SKIP (YES|NO)]"),
            (Argument::new("a", PAIR).multiple(), "<key> <value> ..."),
        ];
        for (argument, want) in cases {
            assert_eq!(synopsis(&[argument]), want);
        }
    }

    #[test]
    fn each_subcommand_has_a_synopsis_and_a_summary() {
        const GET: Spec = Spec::new("get", 3, command::Group::Server, "1.0.0")
            .summary("Returns it.")
            .arguments(&[Argument::key()]);
        const HELP: Spec = Spec::new("help", 2, command::Group::Server, "1.0.0");
        let want = [
            "OBJ <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "GET <key>",
            "    Returns it.",
            "HELP",
            "    Print this help.",
        ];
        assert_eq!(lines("obj", [&HELP, &GET].into_iter()), want);
    }
}
