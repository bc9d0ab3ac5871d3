//! Rewrites expectations in the sources where they are not met.
//!
//! A transcript is a raw string literal; its lines are lines of the source. The text of a run leads
//! to its literal, which may be only a part of the transcript, after others. An expectation that is
//! not found, as in `format!` with holes, or that is a pattern, which states what may vary, must be
//! edited by hand.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::record::{Case, RecordedRun, Unmet};
use xtask::Failure;

/// Lines of a source and their replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SourceEdit {
    /// From 0.
    lines: Range<usize>,
    new: Vec<String>,
}

/// Rewrites the sources, and prints each edit.
///
/// # Errors
/// When an expectation must be edited by hand.
pub fn run(root: &Path, cases: &[Case]) -> Result<(), Failure> {
    let mut by_file: BTreeMap<&str, Vec<(&Case, &RecordedRun)>> = BTreeMap::new();
    for case in cases {
        for run in case.runs.iter().filter(|run| !run.unmet.is_empty()) {
            by_file.entry(&run.file).or_default().push((case, run));
        }
    }
    let (mut changed, mut left) = (0, Vec::new());
    for (file, runs) in by_file {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        let source = Source::parse(&text).map_err(|e| format!("{file}: {e}"))?;
        let mut edits = Vec::new();
        for (case, run) in runs {
            for unmet in &run.unmet {
                match source.edit(run, unmet) {
                    Ok(edit) if edits.contains(&edit) => {}
                    Ok(edit) => edits.push(edit),
                    Err(why) => left.push(by_hand(case, run, unmet, why)),
                }
            }
        }
        left.extend(
            take_conflicts(&mut edits)
                .map(|line| format!("{file}:{}: runs differ in what they receive here", line + 1)),
        );
        for edit in &edits {
            print!("{}", describe(file, &text, edit));
        }
        changed += edits.len();
        let new = apply(&text, edits);
        std::fs::write(&path, new).map_err(|e| format!("{file}: {e}"))?;
    }
    println!("{changed} expectations rewritten");
    match left.len() {
        0 => Ok(()),
        more => Err(format!("{more} expectations to edit by hand:\n{}", left.join("\n"))),
    }
}

fn by_hand(case: &Case, run: &RecordedRun, unmet: &Unmet, why: &str) -> String {
    let line = run.text.get(unmet.line).map_or("", String::as_str);
    let new = unmet.new.join("\n");
    format!("{}:{}: {}: {why}\n- {line}\n+ {new}", run.file, run.line, case.test)
}

/// A source and its literals.
struct Source<'a> {
    lines: Vec<&'a str>,
    literals: Vec<Literal>,
}

impl<'a> Source<'a> {
    fn parse(text: &'a str) -> Result<Self, Failure> {
        let tokens: TokenStream = text.parse().map_err(|e| format!("not Rust: {e}"))?;
        let mut literals = Vec::new();
        collect(tokens, &mut literals);
        Ok(Self { lines: text.lines().collect(), literals })
    }

    /// The edit for an expectation, or the reason for none.
    fn edit(&self, run: &RecordedRun, unmet: &Unmet) -> Result<SourceEdit, &'static str> {
        if unmet.is_pattern {
            return Err("a pattern");
        }
        let elsewhere = "not in a raw string";
        let (literal, start) = self.find(run, unmet).ok_or(elsewhere)?;
        let lines = (start + unmet.line)..(start + unmet.line + unmet.lines);
        match unmet.new.iter().any(|line| line.contains(&literal.end)) {
            true => Err("it would end the literal"),
            false => Ok(SourceEdit { lines, new: unmet.new.clone() }),
        }
    }

    /// The literal that holds the expectation, and the line where the transcript would begin.
    fn find(&self, run: &RecordedRun, unmet: &Unmet) -> Option<(&Literal, usize)> {
        // The literal in the call comes first, then the other literals of the file.
        let (before, after): (Vec<_>, Vec<_>) =
            self.literals.iter().partition(|literal| literal.lines.end < run.line);
        after.into_iter().chain(before).find_map(|literal| {
            let start = literal.start_of(&self.lines, run)?;
            let line = start + unmet.line;
            let is_inside =
                literal.lines.contains(&line) || literal.lines.end == line && unmet.lines == 0;
            is_inside.then_some((literal, start))
        })
    }
}

/// A raw string literal of several lines.
struct Literal {
    /// The lines of the source between its first and its last, from 0.
    lines: Range<usize>,
    /// The characters that end it.
    end: String,
}

impl Literal {
    /// The line of the source where the run's transcript would begin, if this is part of it.
    fn start_of(&self, source: &[&str], run: &RecordedRun) -> Option<usize> {
        let own = source.get(self.lines.clone())?;
        let matches = |at: usize| run.text.get(at..at + own.len()).is_some_and(|part| part == own);
        let most = run.text.len().checked_sub(own.len())?;
        let at = (0..=most).rev().find(|at| matches(*at))?;
        self.lines.start.checked_sub(at)
    }
}

fn collect(tokens: TokenStream, found: &mut Vec<Literal>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            TokenTree::Literal(literal) => {
                let (first, last) = (literal.span().start().line, literal.span().end().line);
                let text = literal.to_string();
                let marks = text.strip_prefix('r').and_then(|rest| rest.split_once('"'));
                let marks = match (marks, text.starts_with('"')) {
                    (Some((marks, _)), _) => marks,
                    // A plain string without escapes reads the same.
                    (None, true) if !text.contains('\\') => "",
                    _ => continue,
                };
                if last > first {
                    let end = format!("\"{marks}");
                    found.push(Literal { lines: first..last - 1, end });
                }
            }
        }
    }
}

/// Removes edits that overlap others, and returns their lines.
fn take_conflicts(edits: &mut Vec<SourceEdit>) -> impl Iterator<Item = usize> + use<> {
    edits.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    let is_near = |a: &SourceEdit, b: &SourceEdit| {
        a.lines.start == b.lines.start || a.lines.end > b.lines.start
    };
    let mut conflicts = vec![false; edits.len()];
    for at in 1..edits.len() {
        if is_near(&edits[at - 1], &edits[at]) {
            conflicts[at - 1] = true;
            conflicts[at] = true;
        }
    }
    let lines: Vec<usize> =
        edits.iter().zip(&conflicts).filter(|(_, is)| **is).map(|(e, _)| e.lines.start).collect();
    let mut flags = conflicts.into_iter();
    edits.retain(|_| !flags.next().unwrap_or_default());
    lines.into_iter()
}

fn apply(text: &str, mut edits: Vec<SourceEdit>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.lines.start));
    for edit in edits {
        lines.splice(edit.lines, edit.new);
    }
    lines.join("\n") + "\n"
}

fn describe(file: &str, text: &str, edit: &SourceEdit) -> String {
    let old = text.lines().skip(edit.lines.start).take(edit.lines.len());
    let old = old.map(|line| format!("- {line}\n"));
    let new = edit.new.iter().map(|line| format!("+ {line}\n"));
    let lines: String = old.chain(new).collect();
    format!("{file}:{}\n{lines}", edit.lines.start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r##"//! A.
fn t() {
    check(
        r#"
> GET k
"old"
> PING
"#,
    );
    check(&format!(
        r#"
> HELLO {version}
{{a: 1}}
> GET {version}
{reply}
"#
    ));
}
"##;

    fn run_of(line: usize, text: &str) -> RecordedRun {
        let text = text.lines().map(str::to_owned).collect();
        RecordedRun { file: "a.rs".to_owned(), line, text, ..RecordedRun::default() }
    }

    fn unmet(line: usize, lines: usize, new: &[&str]) -> Unmet {
        let new = new.iter().map(|line| (*line).to_owned()).collect();
        Unmet { line, lines, is_pattern: false, new }
    }

    fn blessed(run: &RecordedRun, unmet: &Unmet) -> Result<String, Failure> {
        let edit = Source::parse(SOURCE)?.edit(run, unmet)?;
        Ok(apply(SOURCE, vec![edit]))
    }

    #[test]
    fn an_expectation_becomes_what_came() -> Result<(), Failure> {
        let plain = run_of(3, "\n> GET k\n\"old\"\n> PING\n");
        let new = blessed(&plain, &unmet(2, 1, &["[\"a\"", "  ]"]))?;
        assert_eq!(new, SOURCE.replace("\"old\"", "[\"a\"\n  ]"));
        // A missing expectation, and a superfluous one.
        let new = blessed(&plain, &unmet(4, 0, &["PONG"]))?;
        assert_eq!(new, SOURCE.replace("> PING\n", "> PING\nPONG\n"));
        let new = blessed(&plain, &unmet(2, 1, &[]))?;
        assert_eq!(new, SOURCE.replace("\"old\"\n", ""));
        // A transcript with text before it.
        let longer = run_of(3, "> SET k v\nOK\n\n> GET k\n\"old\"\n> PING\n");
        let new = blessed(&longer, &unmet(4, 1, &["nil"]))?;
        assert_eq!(new, SOURCE.replace("\"old\"", "nil"));
        Ok(())
    }

    #[test]
    fn what_cannot_be_rewritten_is_left() {
        let plain = run_of(3, "\n> GET k\n\"old\"\n> PING\n");
        let left = |run: &RecordedRun, unmet: &Unmet| blessed(run, unmet).err().unwrap_or_default();
        let pattern = Unmet { is_pattern: true, ..unmet(2, 1, &["x"]) };
        assert_eq!(left(&plain, &pattern), "a pattern");
        assert_eq!(left(&plain, &unmet(2, 1, &["\"#\""])), "it would end the literal");
        let filled = run_of(10, "\n> HELLO 3\n{a: 1}\n> GET 3\nnil\n");
        assert_eq!(left(&filled, &unmet(4, 1, &["x"])), "not in a raw string");
        let other = run_of(3, "> GET other\nnil\n");
        assert_eq!(left(&other, &unmet(1, 1, &["x"])), "not in a raw string");
    }

    #[test]
    fn what_runs_disagree_about_is_left() {
        let edit = |lines, new: &str| SourceEdit { lines, new: vec![new.to_owned()] };
        let mut edits = vec![edit(5..6, "x"), edit(1..2, "x"), edit(5..6, "y")];
        assert_eq!(take_conflicts(&mut edits).collect::<Vec<_>>(), [5, 5]);
        assert_eq!(edits, [edit(1..2, "x")]);
    }
}
