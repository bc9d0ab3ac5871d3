//! A configuration file for a server that has a machine for itself: the few parameters that such a
//! server sets, with the descriptions of the table and values for the machine's size.
//!
//! `deploy/weft.conf` is this text for one machine; `weft tune --config` prints it for any other.

use super::{Config, ConfigError, Included, IoThreads, Origin, find};

/// What a server has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Processors, of its affinity and of its control group's quota.
    pub processors: usize,
    /// Bytes of memory, or of its control group's limit.
    pub memory_bytes: u64,
}

/// Of so many parts of the memory one is left beside `maxmemory`.
const PARTS: u64 = 4;
const MB: u64 = 1024 * 1024;
/// From here on `maxmemory` is a whole number of gigabytes.
const GIGABYTES_FROM: u64 = 4 * 1024 * MB;

/// Where files with what is secret or local to one machine are read from.
const INCLUDES: &str = "/etc/weft/conf.d/*.conf";

/// The parameters that are set, with what the table does not say about them.
const SET: &[(&str, &str)] = &[
    ("io-threads", "One for each processor that the server may use, and the main thread."),
    ("maxmemory", "A quarter is left for clients, saves, and the kernel."),
    ("dir", "The unit, the image and the manifests give the server this folder."),
    ("appendonly", "Nothing that was acknowledged is lost when the process is killed."),
    ("supervised", "systemd is told when all keys are loaded."),
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
    /// None for a machine that exists: each line is read as a server reads it.
    pub fn config(self) -> Result<String, ConfigError> {
        let Self { processors, memory_bytes } = self;
        let mut text = format!(
            "# Weft on a machine of its own: {processors} processors, {} of memory. Everything \
             else has its\n# default; weft.conf at the root of the repository describes all \
             parameters.\n",
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
            "\n# What is secret or local to one machine, such as requirepass, bind and maxclients. \
             Lines there\n# override those above.\ninclude {INCLUDES}\n"
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

/// A size in gigabytes, if those are whole.
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
    fn a_file_for_a_machine_is_read_as_what_it_was_made_from() {
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
    fn every_parameter_is_described() {
        assert!(SET.iter().all(|(name, _)| find(name.as_bytes()).is_some()));
    }
}
