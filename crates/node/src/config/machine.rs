//! The configuration file for a server on a machine of its own: a few parameters with values for
//! the size of the machine, and their descriptions from the table.
//!
//! `weft tune --config` prints it for any machine; `deploy/weft.conf` is an example.

use super::{Config, ConfigError, Included, IoThreads, Origin, find};

/// The resources of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Processors, limited by the affinity and the control group's quota.
    pub processors: usize,
    /// Bytes of memory, limited by the control group.
    pub memory_bytes: u64,
}

/// One of this many parts of the memory stays free of `maxmemory`.
const PARTS: u64 = 4;
const MB: u64 = 1024 * 1024;
/// From this size on, `maxmemory` is a whole number of gigabytes.
const GIGABYTES_FROM: u64 = 4 * 1024 * MB;

/// Files with secrets and with parameters local to one machine.
const INCLUDES: &str = "/etc/weft/conf.d/*.conf";

/// The parameters to set, each with a remark that the table does not have.
const SET: &[(&str, &str)] = &[
    ("io-threads", "One for each available processor, and the main thread."),
    ("maxmemory", "A quarter is left for clients, saves and the kernel."),
    ("dir", "The systemd unit, the image and the manifests create this folder."),
    ("appendonly", "No acknowledged write is lost when the process is killed."),
    ("supervised", "The server notifies systemd when all keys are loaded."),
];

impl Machine {
    /// The value of `maxmemory`: three quarters of the memory, in whole units.
    pub fn maxmemory_bytes(self) -> u64 {
        let most = self.memory_bytes / PARTS * (PARTS - 1);
        let unit = if most >= GIGABYTES_FROM { 1024 * MB } else { MB };
        most / unit * unit
    }

    /// The text of the configuration file.
    ///
    /// # Errors
    /// Returns no error for a real machine: each line is loaded as a server loads it.
    pub fn config(self) -> Result<String, ConfigError> {
        let Self { processors, memory_bytes } = self;
        let mut text = format!(
            "# Weft on a machine of its own: {processors} processors, {} of memory. All other \
             parameters\n# have their defaults; weft.conf at the root of the repository describes \
             them.\n",
            readable(memory_bytes)
        );
        for (name, more) in SET {
            let Some(row) = find(name.as_bytes()) else { continue };
            let mut config = Config::default();
            let line = format!("{name} {}", self.value(name));
            config.load(line.as_bytes(), Origin::CommandLine, &mut no_file)?;
            text.push_str(&format!("\n# {}\n# {more}\n", row.about));
            for value in row.file_values(&config) {
                text.push_str(&format!("{name} {}\n", String::from_utf8_lossy(&value)));
            }
        }
        text.push_str(&format!(
            "\n# Secrets and parameters local to one machine, such as requirepass, bind and \
             maxclients. They\n# override the lines above.\ninclude {INCLUDES}\n"
        ));
        Ok(text)
    }

    fn value(self, name: &str) -> String {
        match name {
            "io-threads" => IoThreads::Auto.threads(self.processors).to_string(),
            "maxmemory" => self.maxmemory_bytes().to_string(),
            "dir" => "/var/lib/weft".to_owned(),
            "appendonly" => "yes".to_owned(),
            _ => "auto".to_owned(),
        }
    }
}

fn no_file(_: &str) -> Result<Vec<Included>, String> {
    Ok(Vec::new())
}

/// A size in whole gigabytes, or else in megabytes.
fn readable(bytes: u64) -> String {
    match bytes % (1024 * MB) {
        0 => format!("{} GiB", bytes / MB / 1024),
        _ => format!("{} MiB", bytes / MB),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn loaded(machine: Machine) -> Config {
        let text = machine.config().unwrap();
        let mut config = Config::default();
        let mut includes = Vec::new();
        let mut read = |path: &str| {
            includes.push(path.to_owned());
            Ok(Vec::new())
        };
        let warnings = config.load(text.as_bytes(), Origin::Stdin, &mut read).unwrap();
        assert_eq!(warnings, []);
        assert_eq!(includes, [INCLUDES]);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        config
    }

    #[test]
    fn the_file_for_a_machine_loads_with_its_values() {
        let gigabytes = |count: u64| count * 1024 * MB;
        for (processors, memory_bytes, threads, maxmemory) in [
            (16, gigabytes(32), 17, gigabytes(24)),
            (1, gigabytes(1), 1, 768 * MB),
            (2, gigabytes(8) - 1, 3, gigabytes(5)),
            (500, gigabytes(4000), 128, gigabytes(3000)),
        ] {
            let config = loaded(Machine { processors, memory_bytes });
            assert_eq!(config.io_threads, IoThreads::Count(threads));
            assert_eq!(config.eviction.maxmemory, maxmemory);
            assert_eq!(config.dir, "/var/lib/weft");
            assert!(config.append_only.appendonly);
        }
    }

    #[test]
    fn every_parameter_exists_in_the_table() {
        assert!(SET.iter().all(|(name, _)| find(name.as_bytes()).is_some()));
    }
}
