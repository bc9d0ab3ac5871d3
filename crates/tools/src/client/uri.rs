//! URIs of servers: `redis://[[user:]password@][host[:port]][/db]`, and `rediss://` for TLS.

use percent_encoding::percent_decode_str;

/// The parts of a URI; the options have defaults for missing ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uri {
    pub tls: bool,
    pub user: Option<Vec<u8>>,
    pub password: Option<Vec<u8>>,
    /// Name or address, without the brackets of IPv6.
    pub host: Option<String>,
    pub port: Option<u16>,
    pub db: Option<i64>,
}

impl Uri {
    pub fn parse(text: &str) -> Result<Uri, String> {
        let (tls, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("redis") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("rediss") => (true, rest),
            _ => return Err("it must begin with redis:// or rediss://".into()),
        };
        let mut uri = Uri { tls, ..Uri::default() };
        let rest = match rest.rsplit_once('@') {
            None => rest,
            Some((login, rest)) => {
                let (user, password) = match login.split_once(':') {
                    Some((user, password)) => (Some(user), password),
                    None => (None, login),
                };
                uri.user = user.filter(|user| !user.is_empty()).map(decode).transpose()?;
                uri.password = Some(decode(password)?);
                rest
            }
        };
        let (place, db) = rest.split_once('/').unwrap_or((rest, ""));
        if !db.is_empty() {
            let number = db.parse().map_err(|_| format!("'{db}' is no database"))?;
            uri.db = Some(number);
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(inner) => {
                let (host, rest) = inner.split_once(']').ok_or("a ']' is missing")?;
                (host, rest.strip_prefix(':'))
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        uri.host = (!host.is_empty()).then(|| host.to_owned());
        if let Some(port) = port {
            uri.port = Some(port.parse().map_err(|_| format!("'{port}' is no port"))?);
        }
        Ok(uri)
    }
}

/// Undoes the percent encoding, and refuses one that is incomplete.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut pieces = text.split('%');
    pieces.next();
    let whole = |piece: &str| {
        piece.as_bytes().iter().take(2).filter(|b| b.is_ascii_hexdigit()).count() == 2
    };
    if !pieces.all(whole) {
        return Err("a % is followed by two hexadecimal digits; %25 is a %".into());
    }
    Ok(percent_decode_str(text).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_parts() {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        let host = |host: &str| Some(host.to_owned());
        let cases = [
            ("redis://", Uri::default()),
            ("rediss://", Uri { tls: true, ..Uri::default() }),
            ("REDIS://h", Uri { host: host("h"), ..Uri::default() }),
            (
                "redis://h:7000/3",
                Uri { host: host("h"), port: Some(7000), db: Some(3), ..Uri::default() },
            ),
            ("redis:///5", Uri { db: Some(5), ..Uri::default() }),
            (
                "redis://p%40%3a@h/",
                Uri { password: bytes("p@:"), host: host("h"), ..Uri::default() },
            ),
            (
                "redis://u:p:q@[::1]:7",
                Uri {
                    user: bytes("u"),
                    password: bytes("p:q"),
                    host: host("::1"),
                    port: Some(7),
                    ..Uri::default()
                },
            ),
            ("redis://:p@h", Uri { password: bytes("p"), host: host("h"), ..Uri::default() }),
        ];
        for (text, expected) in cases {
            assert_eq!(Uri::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let cases = [
            "",
            "h:1",
            "http://h",
            "redis://h:x",
            "redis://h/x",
            "redis://[::1",
            "redis://h:70000",
            "redis://%4@h",
            "redis://%zz@h",
        ];
        for text in cases {
            assert!(Uri::parse(text).is_err(), "{text}");
        }
    }
}
