//! `proc-title-template`: the process title that `ps` shows, with `{variables}`.

use super::Config;
use super::parameter::{Kind, Reason, Slot};

/// The kind of `proc-title-template`.
pub(super) const fn title_template(slot: Slot<String>) -> Kind {
    Kind::CheckedText { slot, check: check_template, form: "text" }
}

fn check_template(template: &str, config: &Config) -> Result<(), Reason> {
    match expand(template, config, "", "") {
        Some(title) if !title.is_empty() => Ok(()),
        _ => Err("template format is invalid or contains unknown variables".into()),
    }
}

/// The process title. `program` is the name with which the server was started; `config_file` is the
/// path of its file, or empty without one.
pub fn process_title(config: &Config, program: &str, config_file: &str) -> String {
    expand(&config.proc_title_template, config, program, config_file).unwrap_or_default()
}

/// Fills in the variables and trims blanks; `{{` stands for a brace. Returns `None` for an unknown
/// or incomplete variable.
fn expand(template: &str, config: &Config, program: &str, config_file: &str) -> Option<String> {
    let mut title = String::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        title.push_str(text);
        if let Some(after) = after.strip_prefix('{') {
            title.push('{');
            rest = after;
            continue;
        }
        let (name, after) = after.split_once('}')?;
        title.push_str(&variable(name, config, program, config_file)?);
        rest = after;
    }
    title.push_str(rest);
    Some(title.trim_matches(' ').to_owned())
}

fn variable(name: &str, config: &Config, program: &str, config_file: &str) -> Option<String> {
    let value = match name {
        "title" => program.to_owned(),
        "listen-addr" if config.port == 0 && config.tls_port == 0 => {
            format!("unixsocket:{}", config.unixsocket)
        }
        "listen-addr" => {
            let address = config.bind.first().map_or("*", String::as_str);
            let port = if config.port == 0 { config.tls_port } else { config.port };
            format!("{address}:{port}")
        }
        // A standalone server has an empty mode.
        "server-mode" => String::new(),
        "port" => config.port.to_string(),
        "tls-port" => config.tls_port.to_string(),
        "unixsocket" => config.unixsocket.clone(),
        "config-file" if config_file.is_empty() => "-".to_owned(),
        "config-file" => config_file.to_owned(),
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let mut config = Config { port: 7000, tls_port: 7001, ..Config::default() };
        let title = |template: &str, config: &Config| expand(template, config, "weft", "/a.conf");
        let check = |template: &str, config: &Config, expected: &str| {
            assert_eq!(title(template, config).as_deref(), Some(expected), "{template}");
        };
        check("{title} {listen-addr} {server-mode}", &config, "weft *:7000");
        check(" a{{b}} {port}{tls-port} {config-file} ", &config, "a{b}} 70007001 /a.conf");
        config.port = 0;
        config.bind = vec!["::1".to_owned()];
        check("{listen-addr}", &config, "::1:7001");
        config.bind.clear();
        check("{listen-addr}", &config, "*:7001");
        config.tls_port = 0;
        config.unixsocket = "/s".to_owned();
        check("{listen-addr} {unixsocket}", &config, "unixsocket:/s /s");
        assert_eq!(expand("{config-file}", &config, "", "").as_deref(), Some("-"));
        for wrong in ["{", "a {title", "{nosuch}", "{}", "{Title}"] {
            assert_eq!(title(wrong, &config), None, "{wrong}");
        }
    }
}
