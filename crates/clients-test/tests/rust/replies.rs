//! The requests that all clients send alike: `cases/replies.txt` says their form.

use std::fs;

use clients_test::REPLIES;
use redis::{Connection, Value};

use crate::check::{equal, holds, try_ask};

/// The database is empty before and after.
pub fn run(r: &mut Connection) {
    let text = fs::read_to_string(REPLIES).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [name, reply, request] = parts[..] else { panic!("{line}: not three parts") };
        equal(name, answer(r, request).as_str(), reply);
        count += 1;
    }
    holds("replies that all clients read alike", count > 30, count);
}

/// The reply in the notation of the file.
fn answer(r: &mut Connection, request: &str) -> String {
    match try_ask::<Value>(r, request) {
        Ok(Value::Nil) => "_".to_owned(),
        Ok(Value::Int(number)) => format!(":{number}"),
        Ok(value) => format!("+{}", redis::from_redis_value::<String>(value).unwrap()),
        Err(error) => {
            let code = error.code().unwrap_or("no code");
            format!("-{code} {}", error.detail().unwrap_or_default())
        }
    }
}
