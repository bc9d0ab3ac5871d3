//! Which hosts a request may be for: addresses, `localhost`, and the names of
//! `metrics-allowed-hosts`.
//!
//! A browser trusts a page with everything that it loads from the page's own name. The owner of
//! that name can let it point to an address of this network (DNS rebinding), so the browser would
//! fetch the metrics for the page. Such a request has the page's name in `Host` (RFC 9110, 7.2). An
//! address cannot be redirected.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use httparse::Request;
use node::config::Metrics;

/// The first host that a request names and that is not this server's.
pub(super) fn foreign_host<'a>(
    request: &Request<'_, 'a>,
    config: &Metrics,
) -> Option<Cow<'a, str>> {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let headers = request.headers.iter().filter(|header| is_host(header.name));
    let (target, _) = split_target(request.path.unwrap_or_default());
    let hosts = headers.map(|header| String::from_utf8_lossy(header.value));
    let mut hosts = hosts.chain(target.map(Cow::Borrowed));
    hosts.find(|authority| !is_own(authority.trim(), config))
}

/// Decides which refused requests are logged: one a minute, because any client can send them.
#[derive(Default)]
pub(super) struct RefusalNotice {
    last: Option<Instant>,
}

impl RefusalNotice {
    const PERIOD: Duration = Duration::from_secs(60);
    const SHOWN_CHARS_MAX: usize = 128;

    /// The line about a request for this host, if it is time for one.
    pub(super) fn line(&mut self, host: &str, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now.duration_since(last) < Self::PERIOD) {
            return None;
        }
        self.last = Some(now);
        let host: String = host.trim().chars().take(Self::SHOWN_CHARS_MAX).collect();
        Some(format!(
            "Refused an HTTP request for the host {host:?}; if this is a name of the server, add \
             it to 'metrics-allowed-hosts'"
        ))
    }
}

/// The authority of a target, and the rest. A target is in the form that origin servers receive
/// (`/metrics`) or in the absolute form that clients send to a proxy (`http://host:9121/metrics`).
pub(super) fn split_target(target: &str) -> (Option<&str>, &str) {
    let behind_scheme = ["http://", "https://"].iter().find_map(|scheme| {
        let (start, rest) = target.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    let Some(rest) = behind_scheme else { return (None, target) };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    (Some(authority), rest)
}

/// The host of an authority, without user, port, the brackets of an address, and the dot of the
/// root. Empty if something other than a port follows the host.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let in_brackets = host.strip_prefix('[').and_then(|address| address.split_once(']'));
    let (host, rest) =
        in_brackets.unwrap_or_else(|| host.split_at(host.find(':').unwrap_or(host.len())));
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if !rest.strip_prefix(':').map_or(rest.is_empty(), is_port) {
        return "";
    }
    host.strip_suffix('.').unwrap_or(host)
}

fn is_own(authority: &str, config: &Metrics) -> bool {
    let host = host_of(authority);
    // An address of the link may name its interface: `fe80::1%eth0`.
    let address = host.split('%').next().unwrap_or_default();
    let names = config.allowed_hosts.iter().chain(&config.bind);
    let mut names = names.map(|name| name.trim_start_matches('-').trim_end_matches('.'));
    authority.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok()
        || address.parse::<Ipv6Addr>().is_ok()
        || config.allowed_hosts.iter().any(|name| name == "*")
        || names.any(|name| host.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use httparse::EMPTY_HEADER;

    use super::*;

    fn check(head: &str, expected: bool) {
        let allowed_hosts = ["metrics.example.org", "Weft."].map(str::to_owned).into();
        let config = Metrics { allowed_hosts, ..Metrics::default() };
        let mut headers = [EMPTY_HEADER; 4];
        let mut request = Request::new(&mut headers);
        let head = format!("GET {head}\r\n\r\n");
        assert!(request.parse(head.as_bytes()).is_ok_and(|status| status.is_complete()), "{head}");
        assert_eq!(foreign_host(&request, &config).is_none(), expected, "{head}");
    }

    #[test]
    fn only_addresses_and_configured_names_are_allowed() {
        for (host, expected) in [
            ("127.0.0.1:9121", true),
            ("10.1.2.3", true),
            ("[::1]:9121", true),
            ("[fe80::1%25eth0]:9121", true),
            ("localhost", true),
            ("LocalHost.:9121", true),
            ("METRICS.example.org:9121", true),
            ("weft", true),
            ("", true),
            ("[::1]", true),
            ("[::1].evil.example.org", false),
            ("[::1]evil.example.org:9121", false),
            ("[::1]:9121.evil.example.org", false),
            ("[::1", false),
            ("127.0.0.1:evil.example.org", false),
            (":9121", false),
            ("::evil.example.org", false),
            ("evil.example.org", false),
            ("evil.example.org:9121", false),
            ("example.org", false),
            ("127.0.0.1.evil.example.org", false),
            ("localhost.evil.example.org", false),
            ("127.0.0.1@evil.example.org", false),
            ("evil.example.org@127.0.0.1", true),
            ("0x7f.1", false),
            ("2130706433", false),
            ("*", false),
        ] {
            check(&format!("/metrics HTTP/1.1\r\nHost: {host}"), expected);
            check(&format!("/metrics HTTP/1.1\r\nA: b\r\nhOST:{host} "), expected);
        }
    }

    #[test]
    fn every_place_of_a_host_counts() {
        check("/metrics HTTP/1.0", true);
        check("http://localhost:9121/metrics HTTP/1.1\r\nHost: 127.0.0.1", true);
        check("http://evil.example.org/metrics HTTP/1.1\r\nHost: 127.0.0.1", false);
        check("HTTP://127.0.0.1?http://x/ HTTP/1.1\r\nHost: evil.example.org", false);
        check("/ HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example.org", false);
        let any = Metrics { allowed_hosts: vec!["*".into()], ..Metrics::default() };
        assert!(is_own("evil.example.org", &any) && !is_own("evil", &Metrics::default()));
    }

    #[test]
    fn one_refused_request_a_minute_is_logged() {
        let (mut notice, began) = (RefusalNotice::default(), Instant::now());
        let mut line = |host: &str, seconds| {
            notice.line(host, began + Duration::from_secs(seconds)).unwrap_or_default()
        };
        let expected = "Refused an HTTP request for the host \"a:1\"; if this is a name of the \
                        server, add it to 'metrics-allowed-hosts'";
        assert_eq!(line(" a:1 ", 0), expected);
        assert_eq!(line("b", 59), "");
        assert!(line(&format!("c\n{}", "d".repeat(10_000)), 60).contains("\"c\\nddd"));
        assert_eq!(line("e", 119), "");
        assert!(line(&"f".repeat(10_000), 120).len() < 300);
    }
}
