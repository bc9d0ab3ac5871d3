//! The commands that check files, for errors that name them.

use std::path::Path;

use node::config::Config;

/// The command that checks the RDB file of a configuration.
pub fn of_rdb(config: &Config) -> String {
    let path = Path::new(&config.dir).join(&config.saving.dbfilename);
    format!("weft check rdb {}", quoted(&path))
}

/// The command that checks the append-only file of a configuration.
pub fn of_append_only(config: &Config) -> String {
    let config_of = &config.append_only;
    let manifest = format!("{}.manifest", config_of.appendfilename);
    let path = Path::new(&config.dir).join(&config_of.appenddirname).join(manifest);
    format!("weft check aof {}", quoted(&path))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |sign: char| sign.is_alphanumeric() || "/._-+:@%,".contains(sign);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("\"{}\"", path.replace(['"', '$', '`'], "?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_file_by_its_path() {
        let mut config = Config { dir: "/data".to_owned(), ..Config::default() };
        assert_eq!(of_rdb(&config), "weft check rdb /data/dump.rdb");
        let manifest = "/data/appendonlydir/appendonly.aof.manifest";
        assert_eq!(of_append_only(&config), format!("weft check aof {manifest}"));
        config.saving.dbfilename = "my dump.rdb".to_owned();
        assert_eq!(of_rdb(&config), "weft check rdb \"/data/my dump.rdb\"");
    }
}
