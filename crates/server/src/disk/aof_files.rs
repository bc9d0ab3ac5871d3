//! Where the append-only file lies, and where the log of a new one begins.

use std::path::Path;

use node::config::Config;
use persist::aof::AofNames;

/// Where the log of a new append-only file begins: at a random position, so that positions of two
/// files are not confused.
pub fn random_position() -> u64 {
    base::random::entropy_seed() >> 24
}

/// Where a configuration has the append-only file.
pub fn names(config: &Config) -> AofNames {
    let config = &config.append_only;
    AofNames {
        directory: Path::new(&config.appenddirname).to_owned(),
        file: config.appendfilename.clone().into_bytes(),
    }
}
