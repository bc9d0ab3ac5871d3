//! The score by which the kernel chooses a process to end when memory is short, in
//! `/proc/self/oom_score_adj` (proc(5)): from -1000 for never to 1000 for first.
//!
//! Without special rights a process can raise it, and lower it again to the former value.

use std::{fs, io};

use node::config::{Config, OomScoreAdj};

use crate::system::server_log::warning;

const FILE: &str = "/proc/self/oom_score_adj";

/// The process's score, before and after the server changed it.
#[derive(Debug, Default)]
pub struct OomScore {
    /// The score before the server changed it; `None` if it has not.
    before: Option<i32>,
}

impl OomScore {
    /// Sets the score as a configuration asks.
    ///
    /// # Errors
    /// When the kernel does not allow it; the log says more.
    pub fn follow(&mut self, config: &Config) -> Result<(), String> {
        self.set(config).map_err(|error| {
            warning!("Unable to change oom_score_adj: {error}");
            "Failed to set current oom_score_adj. Check server logs.".to_owned()
        })
    }

    fn set(&mut self, config: &Config) -> io::Result<()> {
        let [value, ..] = config.oom_score_adj_values;
        if config.oom_score_adj == OomScoreAdj::No {
            if let Some(before) = self.before {
                fs::write(FILE, before.to_string())?;
                self.before = None;
            }
            return Ok(());
        }
        let before = match self.before {
            Some(before) => before,
            None => read()?,
        };
        fs::write(FILE, score(config.oom_score_adj, value, before).to_string())?;
        self.before = Some(before);
        Ok(())
    }
}

fn read() -> io::Result<i32> {
    fs::read_to_string(FILE)?.trim().parse().map_err(io::Error::other)
}

/// The score that a value stands for.
fn score(adj: OomScoreAdj, value: i32, before: i32) -> i32 {
    let base = if adj == OomScoreAdj::Absolute { 0 } else { before };
    base.saturating_add(value).clamp(-1000, 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_absolute_or_relative_within_the_range() {
        assert_eq!(score(OomScoreAdj::Absolute, 30, 100), 30);
        assert_eq!(score(OomScoreAdj::Yes, 30, 100), 130);
        assert_eq!(score(OomScoreAdj::Yes, 2000, 100), 1000);
        assert_eq!(score(OomScoreAdj::Absolute, -2000, 0), -1000);
    }
}
