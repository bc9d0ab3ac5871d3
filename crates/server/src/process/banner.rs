//! The commands to try next, for a server that was started on a terminal.

use node::config::{ClientCerts, Config};

/// The text. `port` is that of the TCP port, or else of the TLS port.
pub fn banner(config: &Config, port: u16) -> String {
    let server = connection(config, port);
    // Wide enough for the remarks to stand below each other.
    let width = server.len() + 35;
    let mut text = "\n\n  Weft is ready. Try, from another terminal:\n".to_owned();
    for (command, remark) in [
        (format!("redis-cli {server} set greeting hello"), "any Redis client works"),
        (format!("redis-cli {server} info threads"), "what each thread does"),
        (format!("weft bench {server} -t ping"), "how fast it is here"),
    ] {
        text.push_str(&format!("    {command:width$}  {remark}\n"));
    }
    text + "  Stop it with Ctrl-C.\n"
}

/// The options with which clients reach the server.
fn connection(config: &Config, port: u16) -> String {
    let mut options = match (config.port, config.tls_port) {
        (0, 0) => format!("-s {}", config.unixsocket),
        (0, _) => {
            let mut tls = format!("-p {port} --tls");
            let authority = [&config.tls.ca_cert_file, &config.tls.cert_file];
            if let Some(file) = authority.into_iter().find(|file| !file.is_empty()) {
                tls.push_str(&format!(" --cacert {file}"));
            }
            if config.tls.auth_clients == ClientCerts::Yes {
                tls.push_str(" --cert FILE --key FILE");
            }
            tls
        }
        _ => format!("-p {port}"),
    };
    if !config.requirepass.is_empty() {
        options.push_str(" -a PASSWORD");
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_reach_the_server() {
        let mut config = Config::default();
        let text = banner(&config, 7000);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines[3..6],
            [
                "redis-cli -p 7000 set greeting hello        any Redis client works",
                "redis-cli -p 7000 info threads              what each thread does",
                "weft bench -p 7000 -t ping                  how fast it is here",
            ]
        );
        config.port = 0;
        config.tls_port = 7001;
        config.tls.cert_file = "own.crt".to_owned();
        assert_eq!(
            connection(&config, 7001),
            "-p 7001 --tls --cacert own.crt --cert FILE --key FILE"
        );
        config.tls.ca_cert_file = "ca.crt".to_owned();
        config.tls.auth_clients = ClientCerts::No;
        config.requirepass = b"secret".to_vec();
        assert_eq!(connection(&config, 7001), "-p 7001 --tls --cacert ca.crt -a PASSWORD");
        config.tls_port = 0;
        config.unixsocket = "/run/weft".to_owned();
        assert_eq!(connection(&config, 0), "-s /run/weft -a PASSWORD");
    }
}
