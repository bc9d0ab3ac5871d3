//! Reads the configuration: the file, standard input, then the options, with includes.

use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};

use node::config::{Config, Included, Origin, Warning};

/// The configuration, and the parameters in it that have no effect.
///
/// # Errors
/// A text for the operator: the file, the line and the mistake.
pub fn load(
    file: Option<&OsStr>,
    stdin: bool,
    options: &[u8],
) -> Result<(Config, Vec<Warning>), String> {
    let mut config = Config::default();
    let mut warnings = Vec::new();
    let mut add = |text: &[u8], origin| {
        let result = config.load(text, origin, &mut include);
        result.map(|more| warnings.extend(more)).map_err(|error| error.to_string())
    };
    if let Some(file) = file {
        let name = file.to_string_lossy().into_owned();
        let text = fs::read(file)
            .map_err(|error| format!("Fatal error, can't open config file '{name}': {error}"))?;
        add(&text, Origin::File(name))?;
    }
    if stdin {
        let mut text = Vec::new();
        let read = std::io::stdin().read_to_end(&mut text);
        read.map_err(|error| format!("Fatal error, can't read standard input: {error}"))?;
        add(&text, Origin::Stdin)?;
    }
    add(options, Origin::CommandLine)?;
    Ok((config, warnings))
}

/// The files that an include names. Its last part may be a pattern.
fn include(path: &str) -> Result<Vec<Included>, String> {
    let read = |name: String| match fs::read(&name) {
        Ok(text) => Ok(Included { name, text }),
        Err(error) => Err(error.to_string()),
    };
    if !path.contains(['*', '?', '[']) {
        return Ok(vec![read(path.to_owned())?]);
    }
    let (folder, pattern) = path.rsplit_once('/').unwrap_or((".", path));
    // As in a shell, a pattern that nothing matches stands for nothing; even without the folder.
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| base::glob::matches(pattern.as_bytes(), name.as_bytes(), false))
        .collect();
    names.sort();
    names.into_iter().map(|name| read(format!("{folder}/{name}"))).collect()
}
