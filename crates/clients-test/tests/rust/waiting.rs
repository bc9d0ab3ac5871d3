//! Commands that wait, over any kind of connection.

use std::thread;

use redis::{Commands, Connection, Direction};

use crate::check::{ask, equal, eventually};

/// Longer than anything takes that goes well.
const PATIENCE_SECONDS: f64 = 30.0;

/// `waiting` waits for what `r` pushes.
pub fn run(r: &mut Connection, mut waiting: Connection) {
    thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            let first: (String, String) = waiting.blpop(&["q", "other"], PATIENCE_SECONDS).unwrap();
            equal("BLPOP gets what comes", first, ("q".to_owned(), "1".to_owned()));
            let none: Option<(String, String)> = waiting.brpop("q", 0.01).unwrap();
            equal("BRPOP runs out of time", none, None);
            let (left, right) = (Direction::Left, Direction::Right);
            let moved: String = waiting.blmove("q", "q2", left, right, PATIENCE_SECONDS).unwrap();
            equal("BLMOVE gets what comes", moved.as_str(), "2");
            // Requests behind one that waits are answered after it.
            let mut pipe = redis::pipe();
            pipe.cmd("ECHO")
                .arg("before")
                .cmd("BLPOP")
                .arg("q3")
                .arg(PATIENCE_SECONDS)
                .cmd("ECHO")
                .arg("behind");
            let all: (String, (String, String), String) = pipe.query(&mut waiting).unwrap();
            let value = ("q3".to_owned(), "3".to_owned());
            equal("a pipeline waits", all, ("before".to_owned(), value, "behind".to_owned()));
        });
        for (command, key, value) in [("blpop", "q", 1), ("blmove", "q", 2), ("blpop", "q3", 3)] {
            let command = format!(" cmd={command} ");
            let waits = |line: &str| line.contains(" flags=b") && line.contains(&command);
            eventually("it waits", || ask::<String>(r, "CLIENT LIST").lines().any(waits));
            r.rpush::<_, _, ()>(key, value).unwrap();
        }
        waiter.join().unwrap();
    });
    equal("DEL of what was moved", r.del("q2").unwrap(), 1);
}
