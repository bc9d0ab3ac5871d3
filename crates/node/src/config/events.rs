//! `notify-keyspace-events`: the events that are published, and their channels.

use store::EventClasses;

/// The classes in the order in which they are printed; `A` stands for all but `n` and `m`.
const CLASSES: &str = "g$lshzxetdn";
const CLASSES_OF_ALL: &str = "g$lshzxetd";
const MISSES: char = 'm';

/// The events that are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifiedEvents {
    /// On the channel of the key, `__keyspace@DB__:KEY`.
    pub by_key: bool,
    /// On the channel of the event, `__keyevent@DB__:EVENT`.
    pub by_event: bool,
    classes: EventClasses,
}

impl NotifiedEvents {
    /// The published classes; none if neither channel is on.
    pub fn classes(self) -> EventClasses {
        if self.by_key || self.by_event { self.classes } else { EventClasses::default() }
    }

    pub(super) fn parse(letters: &[u8]) -> Option<Self> {
        let mut events = Self::default();
        for letter in letters {
            match char::from(*letter) {
                'K' => events.by_key = true,
                'E' => events.by_event = true,
                'A' => {
                    events.classes = CLASSES_OF_ALL.chars().fold(events.classes, EventClasses::with)
                }
                class if class == MISSES || CLASSES.contains(class) => {
                    events.classes = events.classes.with(class);
                }
                _ => return None,
            }
        }
        Some(events)
    }

    /// Prints the letters as Redis does, which omits `n` after `A`.
    pub(super) fn print(self) -> String {
        let mut text = String::new();
        if CLASSES_OF_ALL.chars().all(|class| self.classes.contains(class)) {
            text.push('A');
        } else {
            text.extend(CLASSES.chars().filter(|class| self.classes.contains(*class)));
        }
        let more =
            [(self.by_key, 'K'), (self.by_event, 'E'), (self.classes.contains(MISSES), MISSES)];
        text.extend(more.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter)));
        text
    }
}
