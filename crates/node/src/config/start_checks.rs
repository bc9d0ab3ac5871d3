//! Configurations whose lines are all valid, but with which a server must not start.

use super::Config;

impl Config {
    /// Why a server must not start with this configuration.
    ///
    /// # Errors
    /// The parameter, the reason and the remedy, for the operator. A replica or a node of a cluster
    /// that started as a standalone server would be a second primary without keys.
    pub fn check_start(&self) -> Result<(), String> {
        if let Some(primary) = &self.replication.replicaof {
            return Err(format!(
                "Can't start as a replica: 'replicaof {} {}' is set, but replication does not \
                 exist yet, so the server would be a second, empty primary. Remove the line, or \
                 override it with '--replicaof no one'.",
                primary.host, primary.port
            ));
        }
        if self.cluster.enabled {
            return Err(
                "Can't start as a node of a cluster: 'cluster-enabled yes' is set, but cluster \
                 mode does not exist yet, so the server would hold keys of all slots. Remove the \
                 line, or override it with '--cluster-enabled no'."
                    .to_owned(),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Origin;

    #[track_caller]
    fn check(text: &str, refused_for: Option<&str>) {
        let mut config = Config::default();
        let loaded = config.load(text.as_bytes(), Origin::Stdin, &mut |_| Ok(Vec::new()));
        assert!(loaded.is_ok(), "{text}: {loaded:?}");
        let why = config.check_start().err();
        assert_eq!(why.is_some(), refused_for.is_some(), "{text}: {why:?}");
        if let (Some(why), Some(parameter)) = (why, refused_for) {
            assert!(why.contains(parameter), "{text}: {why}");
        }
    }

    #[test]
    fn replicas_and_nodes_of_clusters_do_not_start() {
        check("replicaof 10.0.0.1 6379", Some("'replicaof 10.0.0.1 6379'"));
        check("SlaveOf a 0", Some("'replicaof a 0'"));
        check("replicaof a 1\nreplicaof no one", None);
        check("slaveof \"\"", None);
        check("cluster-enabled yes", Some("'cluster-enabled yes'"));
        check("cluster-enabled yes\ncluster-enabled no", None);
        check("replica-priority 5\ncluster-node-timeout 5000", None);
    }
}
