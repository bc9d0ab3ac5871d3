//! TLS as the client: whom to trust, who the client is, which ciphers to offer.
//!
//! Unlike redis-cli, which only checks who signed the server's certificate, this checks whose
//! it is: the host's or that of `--sni`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore, SupportedCipherSuite};

use crate::bench::tls::{AcceptAnything, certificates, private_key};

/// What the user says about TLS.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// Certificate authorities to trust.
    pub cacert: Option<PathBuf>,
    /// A folder of them.
    pub cacertdir: Option<PathBuf>,
    /// The client's certificate and its key.
    pub cert: Option<(PathBuf, PathBuf)>,
    /// Trust anybody.
    pub insecure: bool,
    /// The name to ask for and verify.
    pub name: Option<String>,
    /// Of TLS 1.2, by OpenSSL's names.
    pub ciphers: Option<String>,
    /// Of TLS 1.3.
    pub ciphersuites: Option<String>,
}

impl TlsFiles {
    /// A connection to `host` that has not exchanged a byte yet.
    ///
    /// # Errors
    /// A sentence: unusable files, names or ciphers.
    pub fn connection(&self, host: &str) -> Result<ClientConnection, String> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: self.cipher_suites()?,
            ..aws_lc_rs::default_provider()
        });
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = if self.insecure {
            let anything = Arc::new(AcceptAnything { provider });
            builder.dangerous().with_custom_certificate_verifier(anything)
        } else {
            builder.with_root_certificates(self.authorities()?)
        };
        let config = match &self.cert {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let cert = certificates(cert).map_err(|error| error.to_string())?;
                let key = private_key(key).map_err(|error| error.to_string())?;
                builder
                    .with_client_auth_cert(cert, key)
                    .map_err(|error| format!("the client's certificate: {error}"))?
            }
        };
        let name = self.name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name.clone())
            .map_err(|_| format!("'{name}' is no name of a server: give one with --sni"))?;
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
    }

    /// Those that are named, or those of the system.
    fn authorities(&self) -> Result<RootCertStore, String> {
        let mut store = RootCertStore::empty();
        let mut files: Vec<PathBuf> = self.cacert.iter().cloned().collect();
        if let Some(folder) = &self.cacertdir {
            files.extend(files_of(folder)?);
        }
        if self.cacert.is_none() && self.cacertdir.is_none() {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return match store.is_empty() {
                true => Err("the system names no authority to trust: give --cacert FILE".into()),
                false => Ok(store),
            };
        }
        for file in &files {
            // A folder may hold other files, too.
            match certificates(file) {
                Ok(certificates) => drop(store.add_parsable_certificates(certificates)),
                Err(error) if Some(file) == self.cacert.as_ref() => return Err(error.to_string()),
                Err(_) => {}
            }
        }
        match store.is_empty() {
            true => Err("there is no certificate in what --cacert and --cacertdir name".into()),
            false => Ok(store),
        }
    }

    /// What is offered to the server, the preferred first.
    fn cipher_suites(&self) -> Result<Vec<SupportedCipherSuite>, String> {
        let all = aws_lc_rs::DEFAULT_CIPHER_SUITES;
        let mut suites = Vec::new();
        for (list, is_tls13) in [(&self.ciphersuites, true), (&self.ciphers, false)] {
            let version = all.iter().filter(|suite| suite.tls13().is_some() == is_tls13);
            let Some(list) = list else {
                suites.extend(version);
                continue;
            };
            for name in list.split(':') {
                let found = version.clone().find(|suite| openssl_name(suite.suite()) == name);
                let known = || {
                    let names: Vec<String> =
                        version.clone().map(|suite| openssl_name(suite.suite())).collect();
                    format!("'{name}' is none of the ciphers {}", names.join(" "))
                };
                suites.push(*found.ok_or_else(known)?);
            }
        }
        Ok(suites)
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

/// The name that OpenSSL has for a suite: ECDHE-RSA-AES256-GCM-SHA384, TLS_AES_256_GCM_SHA384.
fn openssl_name(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or_default();
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let name = name.trim_start_matches("TLS_").replace("_WITH_", "_");
    let name = name.replace("AES_", "AES").replace("POLY1305_SHA256", "POLY1305");
    name.replace('_', "-")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn chosen(ciphers: &str, ciphersuites: &str) -> Result<Vec<String>, String> {
        let files = TlsFiles {
            ciphers: Some(ciphers.into()),
            ciphersuites: Some(ciphersuites.into()),
            ..TlsFiles::default()
        };
        let suites = files.cipher_suites()?;
        Ok(suites.iter().map(|suite| openssl_name(suite.suite())).collect())
    }

    #[test]
    fn ciphers_have_the_names_of_openssl() {
        let tls12 = "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES128-GCM-SHA256";
        let names = chosen(tls12, "TLS_CHACHA20_POLY1305_SHA256").unwrap();
        let expected = [
            "TLS_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
        ];
        assert_eq!(names, expected);
        assert!(chosen("AES128-SHA", "TLS_AES_128_GCM_SHA256").unwrap_err().contains("ECDHE-RSA"));
    }
}
