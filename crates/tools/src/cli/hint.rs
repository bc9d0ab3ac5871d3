//! Hints: the arguments that a command line lacks while it is typed.
//!
//! Words are matched from left to right. A run of optional arguments may be in any order. Words
//! that do not match have no hint.

use super::docs::{Arg, ArgKind, Docs};

/// The hint for a command line, without a blank before it; empty if nothing is missing.
pub fn hint(docs: &Docs, line: &str) -> Option<String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (entry, used) = docs.find(&words)?;
    let words: Vec<&str> = words[used..].iter().map(String::as_str).collect();
    let progress = follow(&entry.args, &words)?;
    progress.words.is_empty().then(|| progress.missing.join(" "))
}

/// The arguments in the notation of the documentation.
pub fn syntax(args: &[Arg]) -> String {
    let all: Vec<String> = args.iter().map(whole).collect();
    all.join(" ")
}

/// The result of matching words.
struct HintProgress<'a> {
    /// The remaining words.
    words: &'a [&'a str],
    /// The missing arguments.
    missing: Vec<String>,
    /// Whether a missing argument is required.
    partly: bool,
}

/// An argument with its token, its repetition and its brackets.
fn whole(arg: &Arg) -> String {
    let mut text = with_token(arg, body(arg));
    if let Some(again) = repetition(arg) {
        text.push(' ');
        text.push_str(&again);
    }
    if arg.optional { format!("[{text}]") } else { text }
}

fn body(arg: &Arg) -> String {
    let parts = || arg.parts.iter().map(whole).collect::<Vec<String>>();
    match arg.kind {
        ArgKind::Word => arg.name.clone(),
        ArgKind::Token => String::new(),
        ArgKind::OneOf => parts().join("|"),
        ArgKind::Block => parts().join(" "),
    }
}

fn with_token(arg: &Arg, body: String) -> String {
    match &arg.token {
        None => body,
        Some(token) if arg.kind == ArgKind::Token => token.clone(),
        Some(token) => format!("{token} {body}"),
    }
}

/// The repetition of an argument, if it may be repeated.
fn repetition(arg: &Arg) -> Option<String> {
    let again = || if arg.multiple_token { with_token(arg, body(arg)) } else { body(arg) };
    arg.multiple.then(|| format!("[{} ...]", again()))
}

/// Matches words with a list of arguments; `None` if they do not match.
fn follow<'a>(args: &[Arg], mut words: &'a [&'a str]) -> Option<HintProgress<'a>> {
    let mut missing = Vec::new();
    let (mut partly, mut at) = (false, 0);
    while let Some(arg) = args.get(at) {
        if arg.optional {
            let run = args[at..].iter().take_while(|arg| arg.optional).count();
            let group = &args[at..at + run];
            let stops = tokens(&args[at..]);
            let mut progress = follow_options(group, words, &stops);
            words = progress.words;
            partly |= progress.partly;
            // Once a word belongs to a later argument, no option may follow.
            if words.is_empty() {
                missing.append(&mut progress.missing);
            }
            at += run;
            continue;
        }
        at += 1;
        if words.is_empty() {
            missing.push(whole(arg));
            partly = true;
            continue;
        }
        let mut progress = take(arg, words, &tokens(&args[at..]))?;
        words = progress.words;
        partly |= progress.partly;
        missing.append(&mut progress.missing);
        if !words.is_empty() {
            missing.clear();
        }
    }
    Some(HintProgress { words, missing, partly })
}

/// Matches words with options in any order. The missing part of a begun option comes first.
fn follow_options<'a>(group: &[Arg], mut words: &'a [&'a str], stops: &[&str]) -> HintProgress<'a> {
    let mut left: Vec<&Arg> = group.iter().collect();
    let (mut missing, mut partly) = (Vec::new(), false);
    while !words.is_empty() {
        let mut found = left.iter().enumerate();
        let taken = found.find_map(|(at, arg)| Some((at, take(arg, words, stops)?)));
        let Some((at, mut progress)) = taken else { break };
        left.remove(at);
        words = progress.words;
        partly = progress.partly;
        if words.is_empty() {
            missing.append(&mut progress.missing);
        }
    }
    missing.extend(left.into_iter().map(whole));
    HintProgress { words, missing, partly }
}

/// Matches words with one argument, repeated if it may be. `None` if they do not begin with it.
fn take<'a>(arg: &Arg, words: &'a [&'a str], stops: &[&str]) -> Option<HintProgress<'a>> {
    let mut progress = take_once(arg, words, true)?;
    if !arg.multiple {
        return Some(progress);
    }
    while !progress.words.is_empty() && !progress.partly {
        let next = progress.words[0];
        if stops.iter().any(|stop| stop.eq_ignore_ascii_case(next)) {
            break;
        }
        match take_once(arg, progress.words, arg.multiple_token) {
            Some(more) => progress = more,
            None => break,
        }
    }
    if progress.words.is_empty() {
        progress.missing.extend(repetition(arg));
    }
    Some(progress)
}

fn take_once<'a>(arg: &Arg, words: &'a [&'a str], with_token: bool) -> Option<HintProgress<'a>> {
    let mut rest = words;
    if let Some(token) = arg.token.as_deref().filter(|_| with_token) {
        let (first, after) = rest.split_first()?;
        if !first.eq_ignore_ascii_case(token) {
            return None;
        }
        rest = after;
        if rest.is_empty() && arg.kind != ArgKind::Token {
            return Some(HintProgress { words: rest, missing: vec![body(arg)], partly: true });
        }
    }
    match arg.kind {
        ArgKind::Token => Some(HintProgress { words: rest, missing: Vec::new(), partly: false }),
        ArgKind::Word => {
            let (_, after) = rest.split_first()?;
            Some(HintProgress { words: after, missing: Vec::new(), partly: false })
        }
        ArgKind::OneOf => arg.parts.iter().find_map(|part| take(part, rest, &[])),
        ArgKind::Block => {
            let progress = follow(&arg.parts, rest)?;
            // A block that takes no word does not begin here.
            (progress.words.len() < words.len()).then_some(progress)
        }
    }
}

/// The words that begin these arguments, before which a repetition ends.
fn tokens(args: &[Arg]) -> Vec<&str> {
    let mut tokens = Vec::new();
    for arg in args {
        match &arg.token {
            Some(token) => tokens.push(token.as_str()),
            None => tokens.extend(self::tokens(&arg.parts)),
        }
    }
    tokens
}
