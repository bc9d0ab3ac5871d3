//! `proc-title-template`: what `ps` shows of the server, with `{variables}` that are filled in.

use base::quote::push_quoted;

use super::Config;
use super::parameter::{Reason, Special, WRONG_NUMBER, parse_text};

pub(super) const TITLE_TEMPLATE: Special = Special {
    print: |config| config.proc_title_template.clone(),
    read: read_template,
    lines: |config| {
        let mut line = Vec::new();
        push_quoted(&mut line, config.proc_title_template.as_bytes());
        vec![String::from_utf8(line).unwrap_or_default()]
    },
    form: "text",
};

fn read_template(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let [arg] = args else { return Err(WRONG_NUMBER.into()) };
    let template = parse_text(arg)?;
    let title = expand(&template, config, "", "");
    if title.is_none_or(|title| title.is_empty()) {
        return Err("template format is invalid or contains unknown variables".into());
    }
    config.proc_title_template = template;
    Ok(())
}

/// The title that a configuration asks for. `program` is the name that the server was started by,
/// `config_file` the path of its file, empty if there is none.
pub fn process_title(config: &Config, program: &str, config_file: &str) -> String {
    expand(&config.proc_title_template, config, program, config_file).unwrap_or_default()
}

/// A template without blanks around it and with its variables filled in; `{{` stands for a brace.
/// None: it has an unknown variable or ends within one.
fn expand(template: &str, config: &Config, program: &str, config_file: &str) -> Option<String> {
    let mut title = String::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        title.push_str(text);
        if let Some(behind) = behind.strip_prefix('{') {
            title.push('{');
            rest = behind;
            continue;
        }
        let (name, behind) = behind.split_once('}')?;
        title.push_str(&variable(name, config, program, config_file)?);
        rest = behind;
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
        // A standalone server has no name for its mode.
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
