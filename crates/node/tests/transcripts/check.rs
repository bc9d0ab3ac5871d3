//! The one function of all transcripts, and the form they have.
//!
//! ```text
//! > SET k v          a request, quoted like an inline command
//! OK                 its reply on one line: OK, "bulk", 12, nil, nil-array, [array], {map},
//!                    ~[set], -error, ,1.5 (double), #t, (big number), =txt:verbatim;
//!                    nothing: no line; a long one goes on in lines that begin with two blanks
//! ! set:k => SET k v the effect that the request left: events, then the command to replay; `k@2`
//!                    is a key of database 2 when the effect is another's; ` | ` parts commands
//!                    that are replayed as one
//! @advance 1500      the clock goes on by so many milliseconds
//! @looks a b         these clients, which wait, were seen to since because their time had come
//! @client b          the following requests come from another client, made on first mention
//! @close             the current client is gone
//! @hears b           what client b, which waited, was told since: a reply on the next line
//! # a comment
//! ```
//!
//! A reply may be given as a pattern: `~~ *text*` matches by glob. Effects are compared only where
//! a transcript gives them, but every request is checked for having left exactly one effect when it
//! changed the keyspace and none otherwise (expired keys leave their own). Every transcript runs
//! with 1, 4 and 1024 shards, which must not show.

use base::glob;
use base::quote::{push_quoted, split_args};
use store::Effect;

use crate::fake::World;

/// Runs a transcript and compares every reply.
///
/// # Panics
/// With the line, the expectation and what came instead.
#[track_caller]
pub fn check(transcript: &str) {
    for shards in [1, 4, 1024] {
        run(&mut World::new(shards), transcript);
    }
}

/// Runs a transcript in a world that was prepared in its own way.
#[track_caller]
pub fn run(world: &mut World, transcript: &str) {
    let mut client = "a".to_owned();
    let mut lines = transcript.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let context = |what: &str| format!("line {}: {line}\n{what}", number + 1);
        if let Some(request) = line.strip_prefix("> ") {
            let args =
                split_args(request.as_bytes()).unwrap_or_else(|| panic!("{}", context("quotes")));
            let (reply, effects) = world.request(&client, &args);
            let reply = render(&reply);
            let want = lines.next_if(|(_, next)| is_reply(next)).map_or("", |(_, next)| next);
            let mut want = want.to_owned();
            while let Some((_, more)) = lines.next_if(|(_, next)| next.starts_with("  ")) {
                want.push_str(&more[2..]);
            }
            let matches = match want.strip_prefix("~~ ") {
                Some(pattern) => glob::matches(pattern.as_bytes(), reply.as_bytes(), false),
                None => want == reply,
            };
            assert!(matches, "{}", context(&format!("want: {want}\n got: {reply}")));
            let mut effects = effects.iter().map(describe);
            while let Some((_, want)) = lines.next_if(|(_, next)| next.starts_with("! ")) {
                let got = effects.next().unwrap_or_else(|| "none".to_owned());
                let mut want = want[2..].to_owned();
                while let Some((_, more)) = lines.next_if(|(_, next)| next.starts_with("  ")) {
                    want.push_str(&more[2..]);
                }
                assert_eq!(want, got, "{}", context("effect"));
            }
        } else if let Some(name) = line.strip_prefix("@hears ") {
            let got = render(&world.hear(name));
            let want = lines.next_if(|(_, next)| is_reply(next)).map_or("", |(_, next)| next);
            assert_eq!(want, got, "{}", context("hears"));
        } else if let Some(names) = line.strip_prefix("@looks") {
            let want: Vec<&str> = names.split_whitespace().collect();
            assert_eq!(want, world.take_looks(), "{}", context("looks"));
        } else if let Some(ms) = line.strip_prefix("@advance ") {
            world.advance(ms.parse().unwrap_or_else(|_| panic!("{}", context("milliseconds"))));
        } else if let Some(name) = line.strip_prefix("@client ") {
            client = name.to_owned();
        } else if line == "@close" {
            world.close(&client);
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "{}", context("not understood"));
        }
    }
}

fn is_reply(line: &str) -> bool {
    !line.is_empty() && !["> ", "! ", "@", "#!", "# "].iter().any(|start| line.starts_with(start))
}

fn describe(effect: &Effect) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let events: Vec<String> = effect
        .events
        .iter()
        .map(|(event, key)| {
            let database = event.db.map_or(String::new(), |db| format!("@{db}"));
            format!("{}:{}{database}", event.name, text(key))
        })
        .collect();
    let commands = std::iter::once(&effect.command).chain(&effect.more);
    let commands: Vec<String> = commands
        .map(|command| command.iter().map(|arg| text(arg)).collect::<Vec<_>>().join(" "))
        .collect();
    format!("{} => {}", events.join(" "), commands.join(" | "))
}

/// The replies in `bytes`, one after another, in the one-line form.
pub fn render(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut shown = Vec::new();
    while !rest.is_empty() {
        shown.push(value(&mut rest));
    }
    shown.join(" ")
}

fn line<'a>(rest: &mut &'a [u8]) -> &'a str {
    let end = rest.windows(2).position(|w| w == b"\r\n").expect("a line ends");
    let text = std::str::from_utf8(&rest[..end]).expect("a line is text");
    *rest = &rest[end + 2..];
    text
}

fn value(rest: &mut &[u8]) -> String {
    let head = line(rest);
    let (kind, text) = head.split_at(1);
    let count = || text.parse::<i64>().expect("a length");
    match kind {
        "+" => text.to_owned(),
        "-" => head.to_owned(),
        ":" => text.to_owned(),
        "," | "#" => head.to_owned(),
        "(" => format!("({text})"),
        "_" => "nil".to_owned(),
        "$" | "=" if count() < 0 => "nil".to_owned(),
        "$" | "=" => {
            let len = count() as usize;
            let (bytes, behind) = rest.split_at(len);
            *rest = behind.strip_prefix(b"\r\n").expect("a bulk ends");
            let mut shown = Vec::new();
            push_quoted(&mut shown, bytes);
            let shown = String::from_utf8(shown).expect("quoted text is ASCII");
            if kind == "=" { format!("={}", &shown[1..shown.len() - 1]) } else { shown }
        }
        "*" if count() < 0 => "nil-array".to_owned(),
        "*" | "~" | ">" => {
            let items: Vec<String> = (0..count()).map(|_| value(rest)).collect();
            format!("{}[{}]", if kind == "*" { "" } else { kind }, items.join(", "))
        }
        "%" => {
            let pairs: Vec<String> =
                (0..count()).map(|_| format!("{}: {}", value(rest), value(rest))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => panic!("a reply begins with {other:?}"),
    }
}
