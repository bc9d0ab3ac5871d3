//! Which hosts a request may be for: addresses, `localhost`, and the names of
//! `metrics-allowed-hosts`.
//!
//! A browser trusts a page with everything that it loads from the page's own name. The owner of
//! that name can let it point to an address of this network (DNS rebinding), so the browser would
//! fetch the metrics for the page. Such a request has the page's name in `Host` (RFC 9110, 7.2). An
//! address cannot be redirected.

use std::net::{Ipv4Addr, Ipv6Addr};

use httparse::Request;
use node::config::Metrics;

/// Whether all hosts that a request names are this server's.
pub(super) fn is_allowed(request: &Request<'_, '_>, config: &Metrics) -> bool {
    let is_host = |name: &str| name.eq_ignore_ascii_case("host");
    let headers = request.headers.iter().filter(|header| is_host(header.name));
    let mut headers = headers.map(|header| std::str::from_utf8(header.value).ok());
    let (target, _) = split_target(request.path.unwrap_or_default());
    let is_own = |authority: &str| is_own(authority.trim(), config);
    headers.all(|authority| authority.is_some_and(is_own)) && target.is_none_or(is_own)
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
/// root.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
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
        assert_eq!(is_allowed(&request, &config), expected, "{head}");
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
}
