//! Turns of phrase that need a second reading, with their replacements.
//!
//! STYLE.md has the rules of language. This check finds the worst breaches in comments and in
//! Markdown; each pattern has hardly another meaning. Strings, which hold the texts that Redis
//! defines, and `inline code` are not read.

use super::Finding;
use super::prose::{self, Block, Word};
use super::tree::Tree;

/// Words that follow each other in one sentence.
struct Pattern {
    place: PhrasePlace,
    /// Of each word its variants, in lower case and divided by `|`.
    words: &'static str,
    instead: &'static str,
}

/// Where the words must stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PhrasePlace {
    Anywhere,
    /// They start a sentence that is no question.
    Start,
    /// They start a sentence, and a colon follows.
    Label,
    /// They end a sentence or a part of one.
    End,
}

const NAME_IT: &str = "name the thread, client or command";

const PATTERNS: &[Pattern] = &[
    starts("who|whom|whose", "start with a noun: \"a client that ..\""),
    starts("what", "start with the noun: \"the keys that ..\""),
    starts("nor", "\"neither .. nor\" in one sentence, or \"not .. either\""),
    Pattern { place: PhrasePlace::Label, words: "none", instead: "\"`None` if ..\"" },
    anywhere("whoever|whomever", NAME_IT),
    anywhere("of|to|for|by|from|with|that|than|as|so|until|if|because|when|while who", NAME_IT),
    anywhere("nobody|somebody|someone", NAME_IT),
    anywhere("is|are|was|were to be", "\"must be\", or say who does it"),
    anywhere("has|have|had come to", "\"reached\""),
    Pattern {
        place: PhrasePlace::End,
        words: "any more",
        instead: "\"no longer\" before the verb",
    },
    anywhere("anew", "\"again\""),
    anywhere("aside", "\"deferred\" or \"overflow\""),
    anywhere("put|puts|putting off", "\"deferred\""),
    anywhere("go|goes|going|went|gone down", "\"shuts down\", \"falls\""),
    anywhere("told", "\"notified\", \"distinguished\", or what it learns"),
    anywhere("news", "\"notification\", \"event\""),
    anywhere("lent", "\"moved to the main thread\""),
    anywhere("carrier|carriers", "\"active I/O thread\""),
    anywhere("patience", "\"wait budget\""),
    anywhere("fate|fates", "\"outcome\""),
    anywhere("debt|debts|owe|owes|owed", "\"pending pre-images\""),
    anywhere("here and now", "\"immediately\""),
];

const fn starts(words: &'static str, instead: &'static str) -> Pattern {
    Pattern { place: PhrasePlace::Start, words, instead }
}

const fn anywhere(words: &'static str, instead: &'static str) -> Pattern {
    Pattern { place: PhrasePlace::Anywhere, words, instead }
}

/// No comment and no page has one of the patterns.
pub fn english(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_generated()) {
        for block in prose::blocks(file) {
            let lower: Vec<String> =
                block.words.iter().map(|word| word.text.to_lowercase()).collect();
            for at in 0..block.words.len() {
                for pattern in PATTERNS.iter().filter(|p| p.is_at(&block, &lower, at)) {
                    let end = at + pattern.words.split(' ').count();
                    let found = lower[at..end].join(" ");
                    let message = format!("\"{found}\": write {}", pattern.instead);
                    findings.push(Finding::new(&file.path, block.words[at].line, message));
                }
            }
        }
    }
    findings
}

impl Pattern {
    /// Whether the words of the block from `at` on are these. `lower` has them in lower case.
    fn is_at(&self, block: &Block, lower: &[String], at: usize) -> bool {
        let mut end = at;
        for variants in self.words.split(' ') {
            let is_one = |word: &String| variants.split('|').any(|variant| variant == word);
            let is_next = end == at || block.words[end - 1].after.is_empty();
            if !is_next || !lower.get(end).is_some_and(is_one) {
                return false;
            }
            end += 1;
        }
        let last = &block.words[end - 1];
        let is_capital = block.words[at].text.starts_with(char::is_uppercase);
        let is_start = block.is_text && block.words[at].is_start && is_capital;
        match self.place {
            PhrasePlace::Anywhere => true,
            PhrasePlace::Start => is_start && !is_question(&block.words[at..]),
            PhrasePlace::Label => is_start && last.after.starts_with(':'),
            PhrasePlace::End => {
                end == block.words.len() || last.after.starts_with(['.', ',', ';', ':'])
            }
        }
    }
}

/// Whether the sentence ends with a question mark.
fn is_question(words: &[Word]) -> bool {
    let end = words.iter().find(|word| word.after.contains(['.', '!', '?']));
    end.is_some_and(|word| word.after.contains('?'))
}
