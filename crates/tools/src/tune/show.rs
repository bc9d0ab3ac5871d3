//! The two outputs: text with explanations, and JSON with the same facts.

use serde_json::{Value, json};

use super::CheckedSetting;
use super::apply::AppliedSettings;
use super::finding::{FindingState, HostFinding, KernelSetting};

/// The widest line of the text.
const COLUMNS: usize = 96;
/// The blanks before explanations.
const INDENT: &str = "                       ";

/// The findings as text.
pub fn text(all: &[CheckedSetting], applied: Option<&AppliedSettings>) -> String {
    let mut text = String::new();
    for CheckedSetting { name, finding } in all {
        let HostFinding { state, found, wanted, why, settings } = finding;
        text.push_str(&format!("{:<8} {name:<13}", state.name()));
        text.push_str(&wrapped(found));
        if !wanted.is_empty() {
            text.push_str(&format!("{:<22}", " "));
            text.push_str(&wrapped(&format!("-> {wanted}")));
        }
        text.push_str(&format!("{:<22}", " "));
        text.push_str(&wrapped(why));
        for KernelSetting { path, value } in settings {
            text.push_str(&format!("{INDENT}  {path} = {value}\n"));
        }
    }
    if let Some(AppliedSettings { set, kept }) = applied {
        text.push('\n');
        for (KernelSetting { path, value }, reason) in set {
            text.push_str(&match reason {
                None => format!("set      {path} = {value}\n"),
                Some(reason) => format!("failed   {path} = {value}: {reason}\n"),
            });
        }
        for (file, reason) in kept {
            text.push_str(&match reason {
                None => format!("kept     in {file}\n"),
                Some(reason) => format!("failed   {file}: {reason}\n"),
            });
        }
    }
    text + "\n" + &summary(all)
}

/// The last line.
fn summary(all: &[CheckedSetting]) -> String {
    let count = |state| all.iter().filter(|checked| checked.finding.state == state).count();
    match (count(FindingState::Change), count(FindingState::ByHand)) {
        (0, 0) => "Nothing to change.\n".to_owned(),
        (0, by_hand) => format!("To change by hand: {by_hand}.\n"),
        (change, 0) => format!("To change: {change}; `weft tune --apply` as root does it.\n"),
        (change, by_hand) => format!(
            "To change: {change}, which `weft tune --apply` does as root, and {by_hand} by hand.\n"
        ),
    }
}

/// Wraps a text into lines with the same indent, except the first, which follows other text.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = INDENT.len();
    for word in text.split_whitespace() {
        let is_first = column == INDENT.len();
        if !is_first && column + 1 + word.chars().count() > COLUMNS {
            out.push_str(&format!("\n{INDENT}"));
            column = INDENT.len();
        } else if !is_first || out.is_empty() {
            out.push(' ');
        }
        if column != INDENT.len() {
            column += 1;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out + "\n"
}

/// The findings as JSON.
pub fn json(all: &[CheckedSetting], applied: Option<&AppliedSettings>) -> Value {
    let setting =
        |KernelSetting { path, value }: &KernelSetting| json!({ "path": path, "value": value });
    let check = |CheckedSetting { name, finding }: &CheckedSetting| {
        let HostFinding { state, found, wanted, why, settings } = finding;
        json!({
            "name": name,
            "state": state.name(),
            "found": found,
            "wanted": wanted,
            "why": why,
            "settings": settings.iter().map(setting).collect::<Vec<_>>(),
        })
    };
    let mut all = json!({ "checks": all.iter().map(check).collect::<Vec<_>>() });
    if let Some(AppliedSettings { set, kept }) = applied {
        let set = set.iter().map(|(KernelSetting { path, value }, reason)| {
            json!({ "path": path, "value": value, "error": reason })
        });
        let kept = kept.iter().map(|(file, reason)| json!({ "file": file, "error": reason }));
        all["applied"] = json!({
            "settings": set.collect::<Vec<_>>(),
            "kept": kept.collect::<Vec<_>>(),
        });
    }
    all
}
