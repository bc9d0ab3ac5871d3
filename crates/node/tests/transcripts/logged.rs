//! The log of a test server, which must agree with the effects of each request, and have only
//! commands that the oldest peers know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use store::{Effect, LogPosition, LogUnit, Replay, WriteLog};

use crate::oldest_peers;

/// The logged bytes in order, and their number.
#[derive(Clone, Debug, Default)]
pub struct Logged(Arc<Mutex<Vec<LoggedUnit>>>, Arc<AtomicU64>);

#[derive(Debug)]
struct LoggedUnit {
    db: usize,
    selects_others: bool,
    bytes: Vec<u8>,
}

impl WriteLog for Logged {
    fn append(&mut self, unit: LogUnit<'_>) {
        let bytes: Vec<u8> = unit.parts().flat_map(|part| part.as_slice().to_vec()).collect();
        assert_eq!(bytes.len(), unit.len());
        let LogUnit { db, selects_others, .. } = unit;
        self.0.lock().unwrap().push(LoggedUnit { db, selects_others, bytes });
        self.1.fetch_add(1, Ordering::Relaxed);
    }

    fn has_room(&self) -> bool {
        true
    }

    fn position(&self) -> Option<LogPosition> {
        let position = self.1.load(Ordering::Relaxed);
        (position > 0).then_some(LogPosition { log: 1, position })
    }

    fn end(&self) -> Option<LogPosition> {
        self.position()
    }
}

impl Logged {
    /// Asserts that the units logged since the last call agree with these effects.
    pub fn check(&self, effects: &[Effect]) {
        let units = std::mem::take(&mut *self.0.lock().unwrap());
        let replayed = effects.iter().filter(|effect| !effect.commands.is_empty());
        let replayed: Vec<&Effect> = replayed.collect();
        assert_eq!(units.len(), replayed.len(), "a unit for each effect: {units:?}, {effects:?}");
        for (unit, effect) in units.iter().zip(replayed) {
            assert_eq!(commands(unit), effect.commands, "{}", unit.bytes.escape_ascii());
            effect.commands.iter().for_each(|command| oldest_peers::check(&command.args));
        }
    }
}

/// The commands of a unit, without MULTI, EXEC and SELECT.
fn commands(unit: &LoggedUnit) -> Vec<Replay> {
    let mut bytes = unit.bytes.as_slice();
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let args = (0..number(&mut bytes, b'*')).map(|_| {
            let len = number(&mut bytes, b'$');
            let (arg, rest) = bytes.split_at(len);
            bytes = rest.strip_prefix(b"\r\n").expect("an argument ends with a line");
            arg.to_vec()
        });
        all.push(args.collect::<Vec<_>>());
    }
    let is = |args: &Vec<Vec<u8>>, name: &[u8]| args.len() == 1 && args[0] == name;
    if all.len() > 1 {
        assert!(is(&all.remove(0), b"MULTI"), "several commands are a transaction");
        assert!(all.pop().is_some_and(|last| is(&last, b"EXEC")));
        assert!(all.len() > 1, "one command needs no transaction");
    }
    let (mut db, mut selects) = (unit.db, false);
    let mut replays = Vec::new();
    for args in all {
        if args[0] == b"SELECT" {
            let text = String::from_utf8_lossy(&args[1]);
            (db, selects) = (text.parse().expect("a number"), true);
        } else {
            replays.push(Replay { db, args });
        }
    }
    assert_eq!(selects, unit.selects_others);
    replays
}

/// The number in a line that starts with a mark.
fn number(bytes: &mut &[u8], mark: u8) -> usize {
    let line = bytes.strip_prefix(&[mark]).expect("a mark");
    let end = line.windows(2).position(|two| two == b"\r\n").expect("a line");
    *bytes = &line[end + 2..];
    String::from_utf8_lossy(&line[..end]).parse().expect("a number")
}
