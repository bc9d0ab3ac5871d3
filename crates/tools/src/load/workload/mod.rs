//! The workloads. [`table`] has all of them, [`names`] finds one, `scripts` are the scripts
//! that some send.

pub mod names;
pub(crate) mod scripts;
pub mod table;

use std::fmt;
use std::str::FromStr;

/// How often a workload that both reads and writes does either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Parts of writing, which are written first.
    pub writes: u32,
    /// Parts of reading.
    pub reads: u32,
}

impl Default for Ratio {
    fn default() -> Self {
        Ratio { writes: 1, reads: 1 }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.writes, self.reads)
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(':').and_then(|(writes, reads)| {
            Some(Ratio { writes: writes.parse().ok()?, reads: reads.parse().ok()? })
        });
        parts
            .filter(|ratio| ratio.writes.checked_add(ratio.reads).is_some_and(|sum| sum > 0))
            .ok_or_else(|| format!("'{text}' is no ratio of writes to reads; write 1:9"))
    }
}

/// A workload's own settings, for those that the command line leaves open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// Connections, all load threads together.
    pub clients: Option<usize>,
    /// Requests sent at once on a connection.
    pub pipeline: Option<usize>,
    /// Writes to reads.
    pub ratio: Option<Ratio>,
}

/// A user that a workload creates and authenticates as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadUser {
    /// Name.
    pub name: &'static str,
    /// Password.
    pub password: &'static str,
}

/// Connections that are subscribed while a workload runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriberPlan {
    /// So many connections, each to this channel.
    Channel(&'static str, usize),
    /// One connection, to so many patterns that match no channel of the workload.
    Patterns(usize),
}

/// One workload. Its texts are templates in the notation of [`table`].
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// The reading request, if it reads.
    pub read: Option<&'static str>,
    /// The writing request, if it writes.
    pub write: Option<&'static str>,
    /// The request that, sent once for every key of the range, makes the data the workload expects.
    pub fill: Option<&'static str>,
    /// Requests sent once to each server before: scripts to load, users to create.
    pub prepare: Option<&'static str>,
    /// The first request of each of its connections.
    pub greeting: Option<&'static str>,
    /// The user of its connections, if not the one of the command line.
    pub user: Option<WorkloadUser>,
    /// The connections that are subscribed meanwhile.
    pub subscribers: Option<SubscriberPlan>,
    /// Clients, pipeline and ratio, where they are part of the question.
    pub settings: WorkloadSettings,
}

impl Workload {
    /// A workload without requests.
    pub const fn new(name: &'static str) -> Workload {
        let settings = WorkloadSettings { clients: None, pipeline: None, ratio: None };
        let (read, write, fill) = (None, None, None);
        let (prepare, greeting, user, subscribers) = (None, None, None, None);
        Workload { name, read, write, fill, prepare, greeting, user, subscribers, settings }
    }

    const fn prepared(self, prepare: &'static str) -> Workload {
        Workload { prepare: Some(prepare), ..self }
    }

    const fn pipelined(self, pipeline: usize) -> Workload {
        let settings = WorkloadSettings { pipeline: Some(pipeline), ..self.settings };
        Workload { settings, ..self }
    }

    /// With one client, which sends the next batch of this size when it has all replies to the
    /// last one.
    const fn on_one_connection(self, pipeline: usize) -> Workload {
        let settings = WorkloadSettings { clients: Some(1), ..self.settings };
        Workload { settings, ..self }.pipelined(pipeline)
    }

    const fn mixed(self, reads: u32, writes: u32) -> Workload {
        let settings = WorkloadSettings { ratio: Some(Ratio { reads, writes }), ..self.settings };
        Workload { settings, ..self }
    }

    /// Whether it both reads and writes, at random by a ratio.
    pub fn is_mixed(&self) -> bool {
        self.read.is_some() && self.write.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_parse() {
        assert_eq!("9:1".parse(), Ok(Ratio { writes: 9, reads: 1 }));
        assert_eq!(Ratio { writes: 9, reads: 1 }.to_string(), "9:1");
        for text in ["0:0", "9", "a:b", "-1:2", "4294967295:1"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}
