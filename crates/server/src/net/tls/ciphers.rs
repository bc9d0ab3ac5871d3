//! `tls-ciphers` and `tls-ciphersuites`: OpenSSL's names of the ciphers of rustls.
//!
//! Of OpenSSL's grammar for TLS 1.2, the lists that configurations really have are understood:
//! names of suites and of groups of suites, separated by `:`, `,` or spaces, each perhaps with `!`
//! or `-` before it to take it out. Operators that only reorder (`+`, `@STRENGTH`) are refused, and
//! so is every name that selects nothing here: a list that silently differs from its words is worse
//! than none.

use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

/// A suite, its name in OpenSSL and the groups it belongs to there.
type Row = (&'static str, SupportedCipherSuite, &'static [&'static str]);

/// TLS 1.2, in rustls's order of preference.
static TLS12: [Row; 6] = [
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        &["ECDSA", "AES", "AESGCM", "AES256", "SHA384"],
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        &["ECDSA", "AES", "AESGCM", "AES128", "SHA256"],
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        &["ECDSA", "CHACHA20", "SHA256"],
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        &["RSA", "AES", "AESGCM", "AES256", "SHA384"],
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        &["RSA", "AES", "AESGCM", "AES128", "SHA256"],
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        &["RSA", "CHACHA20", "SHA256"],
    ),
];

/// TLS 1.3, in rustls's order of preference. OpenSSL has no groups there.
static TLS13: [Row; 3] = [
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384, &[]),
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256, &[]),
    ("TLS_CHACHA20_POLY1305_SHA256", suite::TLS13_CHACHA20_POLY1305_SHA256, &[]),
];

/// Groups that all suites belong to.
const EVERY: &[&str] =
    &["DEFAULT", "ALL", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "TLSv1.2", "AEAD"];

/// Groups without suites: lists take them out to be safe, which needs no action.
const EMPTY: &[&str] = &[
    "MEDIUM",
    "LOW",
    "EXP",
    "EXPORT",
    "EXPORT40",
    "EXPORT56",
    "NULL",
    "eNULL",
    "aNULL",
    "COMPLEMENTOFALL",
    "COMPLEMENTOFDEFAULT",
    "ADH",
    "AECDH",
    "DH",
    "DHE",
    "EDH",
    "kDHE",
    "kEDH",
    "kRSA",
    "DSS",
    "aDSS",
    "PSK",
    "kPSK",
    "aPSK",
    "kECDHEPSK",
    "kDHEPSK",
    "kRSAPSK",
    "SRP",
    "aSRP",
    "kSRP",
    "RC2",
    "RC4",
    "DES",
    "3DES",
    "IDEA",
    "SEED",
    "CAMELLIA",
    "CAMELLIA128",
    "CAMELLIA256",
    "ARIA",
    "ARIA128",
    "ARIA256",
    "ARIAGCM",
    "AESCCM",
    "AESCCM8",
    "MD5",
    "SHA",
    "SHA1",
    "SSLv3",
    "TLSv1",
    "TLSv1.0",
    "GOST94",
    "GOST89MAC",
];

/// The suites that the two parameters and the protocol versions select, in order.
///
/// # Errors
/// The name that selects nothing, or that nothing is left for a version.
pub fn suites(
    ciphers: &str,
    ciphersuites: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut all = Vec::new();
    for (parameter, text, rows, version) in [
        ("tls-ciphersuites", ciphersuites, &TLS13[..], ProtocolVersion::TLSv1_3),
        ("tls-ciphers", ciphers, &TLS12[..], ProtocolVersion::TLSv1_2),
    ] {
        let chosen = select(parameter, text, rows)?;
        if versions.iter().any(|known| known.version == version) {
            if chosen.is_empty() {
                return Err(format!("{parameter}: '{text}' leaves no cipher"));
            }
            all.extend(chosen);
        }
    }
    Ok(all)
}

fn select(
    parameter: &str,
    text: &str,
    rows: &'static [Row],
) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut chosen: Vec<SupportedCipherSuite> = Vec::new();
    let mut banned: Vec<SupportedCipherSuite> = Vec::new();
    let mut is_empty = true;
    for word in text.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        is_empty = false;
        let (mark, name) = match word.strip_prefix(['!', '-']) {
            Some(name) => (word.as_bytes()[0], name),
            None => (b'+', word),
        };
        let named: Vec<_> =
            rows.iter().filter(|row| is_named(row, name)).map(|row| row.1).collect();
        let takes_out = mark != b'+';
        if named.is_empty() && !(takes_out && is_known_group(rows, name)) {
            return Err(unknown(parameter, name, rows));
        }
        if takes_out {
            chosen.retain(|suite| !named.contains(suite));
            if mark == b'!' {
                banned.extend(named);
            }
        } else {
            let new: Vec<_> = named
                .into_iter()
                .filter(|suite| !chosen.contains(suite) && !banned.contains(suite))
                .collect();
            chosen.extend(new);
        }
    }
    if is_empty {
        chosen.extend(rows.iter().map(|row| row.1));
    }
    Ok(chosen)
}

/// Whether a name means a suite: it is its name, its group, or groups that it is in all of (`A+B`).
fn is_named(row: &Row, name: &str) -> bool {
    let (own, _, groups) = row;
    if own.eq_ignore_ascii_case(name) {
        return true;
    }
    let is_in = |group: &str| {
        let plain = group.strip_prefix('a').unwrap_or(group);
        EVERY.contains(&group)
            || groups.contains(&group)
            || matches!(plain, "RSA" | "ECDSA") && groups.contains(&plain)
    };
    !groups.is_empty() && name.split('+').all(is_in)
}

fn is_known_group(rows: &[Row], name: &str) -> bool {
    rows.iter().any(|row| !row.2.is_empty()) && name.split('+').any(|part| EMPTY.contains(&part))
}

fn unknown(parameter: &str, name: &str, rows: &[Row]) -> String {
    let names: Vec<_> = rows.iter().map(|row| row.0).collect();
    format!("{parameter}: '{name}' is not supported; choose from {}", names.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ciphers: &str, expected: &[&str]) {
        let chosen = select("tls-ciphers", ciphers, &TLS12);
        let names: Vec<_> = chosen
            .as_ref()
            .map(|chosen| chosen.iter().map(|suite| name_of(*suite)).collect())
            .unwrap_or_default();
        assert_eq!(names, expected, "{chosen:?}");
    }

    fn name_of(suite: SupportedCipherSuite) -> &'static str {
        TLS12.iter().chain(&TLS13).find(|row| row.1 == suite).map_or("?", |row| row.0)
    }

    #[test]
    fn names_select_in_their_order() {
        check(
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384,ecdhe-rsa-aes128-gcm-sha256",
            &["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"],
        );
    }

    #[test]
    fn groups_select_and_take_out() {
        let every: Vec<_> = TLS12.iter().map(|row| row.0).collect();
        for text in ["", "DEFAULT:!MEDIUM", "HIGH:!aNULL:!MD5:!RC4", "ECDHE", "-LOW ALL"] {
            check(text, &every);
        }
        check(
            "HIGH:!AES256:!aRSA",
            &["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"],
        );
        check(
            "ECDHE+AESGCM:!ECDSA",
            &["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"],
        );
        check("!CHACHA20:CHACHA20", &[]);
        check("CHACHA20:-RSA", &["ECDHE-ECDSA-CHACHA20-POLY1305"]);
    }

    #[test]
    fn what_selects_nothing_is_named() {
        for (ciphers, suites, name) in [
            ("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA", "", "tls-ciphers: 'AES128-SHA'"),
            ("!NONSENSE", "", "tls-ciphers: 'NONSENSE'"),
            ("MEDIUM", "", "tls-ciphers: 'MEDIUM'"),
            ("HIGH:@STRENGTH", "", "tls-ciphers: '@STRENGTH'"),
            ("", "TLS_AES_128_CCM_SHA256", "tls-ciphersuites: 'TLS_AES_128_CCM_SHA256'"),
            ("", "HIGH", "tls-ciphersuites: 'HIGH'"),
            ("ALL:!ALL", "", "tls-ciphers: 'ALL:!ALL' leaves no cipher"),
        ] {
            let error = suites_of(ciphers, suites);
            assert!(error.starts_with(name), "{error}");
        }
    }

    fn suites_of(ciphers: &str, ciphersuites: &str) -> String {
        let versions = [&rustls::version::TLS12, &rustls::version::TLS13];
        suites(ciphers, ciphersuites, &versions).map_or_else(|text| text, |_| "none".to_owned())
    }

    #[test]
    fn a_version_that_is_off_brings_no_suite() {
        let only13 = suites("", "TLS_AES_128_GCM_SHA256", &[&rustls::version::TLS13]);
        assert_eq!(only13, Ok(vec![suite::TLS13_AES_128_GCM_SHA256]));
        let only12 = suites("ECDSA", "", &[&rustls::version::TLS12]);
        assert_eq!(only12.map(|suites| suites.len()), Ok(3));
    }
}
