//! Options of redis-cli that do not exist here, each with a sentence about the alternative.

use std::ffi::OsString;

/// The sentence for each: what it is for, and the alternative.
const CLUSTER: &str = "--cluster manages a Redis Cluster, and there is no cluster mode yet; -c \
                       follows the redirections of one";
const RDB: &str = "--rdb needs replication, which does not exist yet; the command WEFT BACKUP FILE \
                   makes a Weft write its keys to a file on its host";
const FUNCTIONS_RDB: &str =
    "--functions-rdb needs replication, which does not exist yet; FUNCTION DUMP has the libraries";
const REPLICA: &str =
    "--replica needs replication, which does not exist yet; MONITOR shows the commands of clients";
const LDB: &str = "there is no debugger for scripts; redis.log writes to the server's log";
const LRU_TEST: &str =
    "--lru-test is not there; INFO stats counts keyspace_hits and keyspace_misses";
const KEYSTATS: &str = "--keystats is not there; --bigkeys and --memkeys look for large keys";

/// The options with their values.
#[derive(Debug, clap::Args)]
pub struct MissingOptions {
    /// Commands for clusters.
    #[arg(long = "cluster", hide = true, num_args = 0.., allow_hyphen_values = true)]
    cluster_commands: Option<Vec<OsString>>,
    /// The file for a snapshot.
    #[arg(long, hide = true, num_args = 0..=1)]
    rdb: Option<Option<OsString>>,
    /// The file for libraries of functions.
    #[arg(long, hide = true, num_args = 0..=1)]
    functions_rdb: Option<Option<OsString>>,
    /// Shows what a replica receives.
    #[arg(long, alias = "slave", hide = true)]
    replica: bool,
    /// Runs a script step by step.
    #[arg(long, hide = true)]
    ldb: bool,
    /// The same, while other clients wait.
    #[arg(long, hide = true)]
    ldb_sync_mode: bool,
    /// The number of keys for a test of an eviction policy.
    #[arg(long, hide = true, num_args = 0..=1)]
    lru_test: Option<Option<OsString>>,
    /// Looks for large keys in two ways.
    #[arg(long, hide = true)]
    keystats: bool,
    /// The same with so many elements sampled of each key.
    #[arg(long, hide = true, num_args = 0..=1)]
    keystats_samples: Option<Option<OsString>>,
}

impl MissingOptions {
    /// The sentence for the first of these options on the command line.
    pub fn reason(&self) -> Option<&'static str> {
        let wanted = [
            (self.cluster_commands.is_some(), CLUSTER),
            (self.rdb.is_some(), RDB),
            (self.functions_rdb.is_some(), FUNCTIONS_RDB),
            (self.replica, REPLICA),
            (self.ldb || self.ldb_sync_mode, LDB),
            (self.lru_test.is_some(), LRU_TEST),
            (self.keystats || self.keystats_samples.is_some(), KEYSTATS),
        ];
        wanted.into_iter().find_map(|(is_wanted, reason)| is_wanted.then_some(reason))
    }
}
