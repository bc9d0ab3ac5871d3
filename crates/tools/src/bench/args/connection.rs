//! Options for the server and the protocol.

use std::path::PathBuf;

use clap::Args;

use crate::Error;
use crate::client::address::ServerAddress;
use crate::client::session::{Resp, ServerEndpoint};
use crate::client::tls::{TlsConnector, TlsOptions};
use crate::client::uri::Uri;

/// Options for the server and the protocol.
#[derive(Debug, Clone, Args)]
pub struct ConnectionArgs {
    /// Host name or address [default: 127.0.0.1]
    #[arg(short = 'h', long)]
    pub host: Option<String>,
    /// Port [default: 6379]
    #[arg(short, long)]
    pub port: Option<u16>,
    /// Unix socket, instead of host and port
    #[arg(short, long, value_name = "PATH", visible_alias = "unix-socket")]
    pub socket: Option<PathBuf>,
    /// Password
    #[arg(short = 'a', long, value_name = "PASSWORD")]
    pub auth: Option<String>,
    /// User that the password belongs to
    #[arg(long, requires = "auth")]
    pub user: Option<String>,
    /// Everything at once: redis://user:password@host:port/database, rediss:// for TLS
    #[arg(short = 'u', long, value_name = "URI", conflicts_with = "socket")]
    pub uri: Option<String>,
    /// Database
    #[arg(long, value_name = "NUMBER", visible_alias = "select-db")]
    pub dbnum: Option<u32>,
    /// Protocol version
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub resp: u8,
    /// The same as --resp 3
    #[arg(short = '3')]
    pub resp3: bool,
    /// Use TLS
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub tls_options: TlsOptions,
}

impl ConnectionArgs {
    /// The server that the options name.
    pub fn endpoint(&self) -> Result<ServerEndpoint, Error> {
        let uri = self.uri.as_deref().map(Uri::parse).transpose();
        let uri = uri.map_err(|reason| Error::Usage(format!("--uri: {reason}")))?;
        let uri = uri.unwrap_or_default();
        let host = self.host.clone().or(uri.host).unwrap_or_else(|| "127.0.0.1".into());
        let address = match &self.socket {
            Some(path) => ServerAddress::Unix(path.clone()),
            None => {
                let port = self.port.or(uri.port).unwrap_or(6379);
                ServerAddress::Tcp { host: host.clone(), port }
            }
        };
        let (options, tls) = (&self.tls_options, self.tls || uri.tls);
        if !tls && *options != TlsOptions::default() {
            return Err(Error::Usage("certificates are given, but --tls is not".into()));
        }
        let text = |bytes: Option<Vec<u8>>| {
            bytes
                .map(String::from_utf8)
                .transpose()
                .map_err(|_| Error::Usage("--uri: user and password must be UTF-8".into()))
        };
        let db = uri.db.map(u32::try_from).transpose();
        let db = db.map_err(|_| Error::Usage("--uri: no such database".into()))?;
        Ok(ServerEndpoint {
            address,
            tls: tls.then(|| TlsConnector::new(options, &host)).transpose()?,
            user: self.user.clone().or(text(uri.user)?),
            password: self.auth.clone().or(text(uri.password)?),
            resp: if self.resp == 3 || self.resp3 { Resp::Three } else { Resp::Two },
            db: self.dbnum.or(db).unwrap_or(0),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        args: ConnectionArgs,
    }

    #[test]
    fn options_and_uris_name_a_server() {
        let endpoint = |options: &str| {
            let words = std::iter::once("bench").chain(options.split_whitespace());
            let endpoint = Line::try_parse_from(words).unwrap().args.endpoint().unwrap();
            let ServerEndpoint { address, user, password, resp, db, .. } = endpoint;
            let text = |word: Option<String>| word.unwrap_or_default();
            format!("{address} {}:{} {} {db}", text(user), text(password), resp as u8)
        };
        let cases = [
            ("", "127.0.0.1:6379 : 0 0"),
            ("-h there -p 7 -a secret --user me -3 --dbnum 4", "there:7 me:secret 1 4"),
            ("-u redis://me:se%20cret@there:7/5", "there:7 me:se cret 0 5"),
            ("-u redis://there:7/5 -p 8 --dbnum 0 --resp 3", "there:8 : 1 0"),
            ("-s /tmp/it", "/tmp/it : 0 0"),
        ];
        cases.iter().for_each(|(options, expected)| assert_eq!(endpoint(options), *expected));
    }
}
