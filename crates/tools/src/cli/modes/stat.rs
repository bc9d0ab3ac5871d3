//! `--stat`: a line of figures from INFO for each interval.

use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use super::ask_again;
use crate::cli::options::Options;
use crate::cli::output::{CliEnd, print};
use crate::cli::session::CliSession;
use crate::client::reply::ServerReply;

/// The lines between two headings.
const HEADING_LINES: u64 = 20;

const HEADING: &str = "\
------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          \n";

/// Prints lines forever.
pub fn follow(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let is_terminal = std::io::stdout().is_terminal();
    let pause = options.interval.filter(|time| !time.is_zero()).unwrap_or(Duration::from_secs(1));
    let (mut lines, mut before) = (0_u64, None);
    loop {
        let reply = ask_again(session, &["INFO"], is_terminal)?;
        let text = String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned();
        if let ServerReply::Error(_) = reply {
            return Err(CliEnd::failed(format!("ERROR: {text}")));
        }
        if lines.is_multiple_of(HEADING_LINES) {
            print(HEADING.as_bytes())?;
        }
        lines += 1;
        print(line(&text, &mut before).as_bytes())?;
        thread::sleep(pause);
    }
}

fn line(info: &str, before: &mut Option<i64>) -> String {
    let field = |name: &str| {
        let mut lines = info.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse::<i64>().ok()).unwrap_or(0)
    };
    let keys: i64 = info.lines().filter_map(keys_of_database).sum();
    let requests = field("total_commands_processed");
    let more = before.replace(requests).map_or(0, |before| requests - before);
    let child = match (field("bgsave_in_progress"), field("aof_rewrite_in_progress")) {
        _ if field("loading") != 0 => "LOAD",
        (0, 0) => "",
        (_, 0) => "SAVE",
        (0, _) => "AOF",
        _ => "SAVE+AOF",
    };
    format!(
        "{keys:<11}{:<8} {:<8}{:<8}{:<19} {:<12}{child}\n",
        size(field("used_memory")),
        field("connected_clients"),
        field("blocked_clients"),
        format!("{requests} (+{more})"),
        field("total_connections_received"),
    )
}

/// The keys of a line such as `db0:keys=5,expires=0`.
fn keys_of_database(line: &str) -> Option<i64> {
    let (number, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
    number.parse::<u32>().ok()?;
    rest.split(',').next()?.trim().parse().ok()
}

/// A number of bytes for people: 1003B, 4.03K, 2.32G.
fn size(bytes: i64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G", "T"] {
        if value.abs() < 1024.0 || unit == "T" {
            return if unit == "B" { format!("{bytes}B") } else { format!("{value:.2}{unit}") };
        }
        value /= 1024.0;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_becomes_a_line() {
        let info = "used_memory:1536\r\nconnected_clients:2\r\nblocked_clients:1\r\n\
            total_commands_processed:90\r\ntotal_connections_received:7\r\n\
            bgsave_in_progress:1\r\ndb0:keys=3,expires=0\r\ndb11:keys=4,expires=1\r\n";
        let expected = "7          1.50K    2       1       90 (+5)             7           SAVE\n";
        assert_eq!(line(info, &mut Some(85)), expected);
    }

    #[test]
    fn sizes_are_short() {
        let cases = [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (5 << 30, "5.00G"), (-5, "-5B")];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }
}
