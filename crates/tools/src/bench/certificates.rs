//! A throw-away certificate for servers that are measured over TLS.
//!
//! It signs itself, so that one file is both what the server shows and what the load trusts. The
//! files vanish with the value.

use rcgen::CertifiedKey;
use tempfile::TempDir;

use xtask::Failure;

/// PEM files in a temporary folder.
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Makes the key and the certificate.
    ///
    /// # Errors
    /// Fails without random numbers or a temporary folder.
    pub fn create() -> Result<Self, Failure> {
        let failed = |e: &dyn std::fmt::Display| format!("no certificate for TLS: {e}");
        let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let CertifiedKey { cert, key_pair } =
            rcgen::generate_simple_self_signed(hosts).map_err(|e| failed(&e))?;
        let folder = tempfile::tempdir().map_err(|e| failed(&e))?;
        for (name, text) in [("cert.pem", cert.pem()), ("key.pem", key_pair.serialize_pem())] {
            std::fs::write(folder.path().join(name), text).map_err(|e| failed(&e))?;
        }
        Ok(Self { folder })
    }

    /// The file that the load trusts.
    pub fn authority(&self) -> String {
        self.file("cert.pem")
    }

    /// The options of a server that speaks TLS alone.
    pub fn server_options(&self) -> Vec<String> {
        let (cert, key) = (self.file("cert.pem"), self.file("key.pem"));
        [
            ("--port", "0"),
            ("--tls-port", "{port}"),
            ("--tls-cert-file", &cert),
            ("--tls-key-file", &key),
            ("--tls-ca-cert-file", &cert),
            ("--tls-auth-clients", "no"),
        ]
        .iter()
        .flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()])
        .collect()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}
