//! A temporary certificate for servers that are measured over TLS.
//!
//! It is self-signed, so that one file is both the server's certificate and the authority that the
//! load trusts. The files are removed with the value unless they are kept.

use std::path::PathBuf;

use rcgen::CertifiedKey;

use crate::Error;
use crate::temporary::TemporaryFolder;

const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// PEM files in a temporary folder.
#[derive(Debug)]
pub struct SelfSigned {
    folder: TemporaryFolder,
}

impl SelfSigned {
    /// Makes the key and the certificate.
    ///
    /// # Errors
    /// There are no random numbers, or no temporary folder.
    pub fn create() -> Result<SelfSigned, Error> {
        let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let CertifiedKey { cert, key_pair } = rcgen::generate_simple_self_signed(hosts)
            .map_err(|error| Error::Tls(format!("no certificate: {error}")))?;
        let folder = TemporaryFolder::create()?;
        for (name, text) in [(CERTIFICATE, cert.pem()), (KEY, key_pair.serialize_pem())] {
            std::fs::write(folder.path().join(name), text)
                .map_err(Error::io("write a certificate"))?;
        }
        Ok(SelfSigned { folder })
    }

    /// Keeps the files and returns their folder.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// The file that the load trusts.
    pub fn authority(&self) -> String {
        self.file(CERTIFICATE)
    }

    /// The options of a server that speaks only TLS, on its `{port}`.
    pub fn server_options(&self) -> Vec<String> {
        let (cert, key) = (self.file(CERTIFICATE), self.file(KEY));
        let options = [
            ("--port", "0"),
            ("--tls-port", "{port}"),
            ("--tls-cert-file", &cert),
            ("--tls-key-file", &key),
            ("--tls-ca-cert-file", &cert),
            ("--tls-auth-clients", "no"),
        ];
        options.iter().flat_map(|(name, value)| [*name, value].map(str::to_owned)).collect()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_are_removed_with_the_value() {
        let certificates = SelfSigned::create().unwrap();
        let file = certificates.authority();
        assert!(certificates.server_options().contains(&file));
        assert!(std::fs::read_to_string(&file).unwrap().contains("BEGIN CERTIFICATE"));
        drop(certificates);
        assert!(!std::path::Path::new(&file).exists());
    }
}
