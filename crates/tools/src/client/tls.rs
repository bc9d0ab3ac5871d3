//! The client's side of TLS: from options on the command line to a rustls configuration.
//!
//! Unlike redis-cli, which only checks that a trusted authority signed the server's certificate,
//! this checks that the certificate names the host, or the name of `--sni`. The load does not trust
//! the authorities of the system, because a measured server nearly always has a self-signed
//! certificate; `weft cli` does.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct,
    InconsistentKeys, RootCertStore, SignatureScheme, SupportedCipherSuite,
};

use crate::Error;

/// The most bytes of a file with certificates or a key: those of all authorities have less.
const PEM_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The options about TLS on a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TlsOptions {
    /// PEM file with certificate authorities to trust
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Folder of such files
    #[arg(long, value_name = "FOLDER")]
    pub cacertdir: Option<PathBuf>,
    /// Trust the authorities of the system where neither of the two is given.
    #[arg(skip)]
    pub trusts_system: bool,
    /// PEM file with the client's certificate
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// PEM file with the private key of the client's certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(long)]
    pub insecure: bool,
    /// Server name to ask for and verify, if it is not the host
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// Ciphers of TLS 1.2 by OpenSSL's names, separated by colons, the preferred first
    #[arg(long = "tls-ciphers", value_name = "LIST")]
    pub ciphers: Option<String>,
    /// Ciphers of TLS 1.3
    #[arg(long = "tls-ciphersuites", value_name = "LIST")]
    pub ciphersuites: Option<String>,
}

/// A checked configuration, ready to open connections.
#[derive(Debug, Clone)]
pub struct TlsConnector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnector {
    /// Reads the files and builds the configuration for a server called `host`.
    ///
    /// # Errors
    /// [`Error::Tls`]: unusable files, names or ciphers, or no authority to trust.
    pub fn new(options: &TlsOptions, host: &str) -> Result<TlsConnector, Error> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: options.cipher_suites().map_err(Error::Tls)?,
            ..aws_lc_rs::default_provider()
        });
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Tls(error.to_string()))?;
        let builder = match options.insecure {
            true => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnything {
                    provider: Arc::clone(&provider),
                }))
            }
            false => builder.with_root_certificates(options.authorities()?),
        };
        let config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => {
                builder.with_client_cert_resolver(identity(cert, key, &provider)?)
            }
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(Error::Tls("--cert and --key belong together".into())),
        };
        let name = options.sni.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name.clone()).map_err(|_| {
            Error::Tls(format!("'{name}' is no name of a server: give one with --sni"))
        })?;
        Ok(TlsConnector { config: Arc::new(config), name })
    }

    /// A connection that has not exchanged a byte yet.
    ///
    /// # Errors
    /// The name and the configuration cannot be used together.
    pub fn connection(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| Error::Tls(error.to_string()))?;
        // A batch is bounded by the pipeline; a smaller limit would cut it into partial writes.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

impl TlsOptions {
    fn authorities(&self) -> Result<RootCertStore, Error> {
        let refused = |text: &str| Err(Error::Tls(text.into()));
        let mut store = RootCertStore::empty();
        let is_named = self.cacert.is_some() || self.cacertdir.is_some();
        if !is_named && self.trusts_system {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if let Some(file) = &self.cacert {
            store.add_parsable_certificates(certificates(file)?);
        }
        if let Some(folder) = &self.cacertdir {
            // A folder may hold other files as well.
            for certificates in files_of(folder)?.iter().filter_map(|file| certificates(file).ok())
            {
                store.add_parsable_certificates(certificates);
            }
        }
        match store.is_empty() {
            false => Ok(store),
            true if is_named => {
                refused("there is no certificate in what --cacert and --cacertdir name")
            }
            true if self.trusts_system => {
                refused("the system names no authority to trust: give --cacert FILE")
            }
            true => refused("give --cacert FILE to trust, or --insecure"),
        }
    }

    /// The ciphers to offer, the preferred first.
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

/// The client's certificate with its key. Whether the certificate is good, the server judges: it
/// may accept more than rustls, such as X.509 version 1.
fn identity(
    cert: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<Arc<SingleCertAndKey>, Error> {
    let failed = |error| Error::Tls(format!("the client's certificate: {error}"));
    let signer = provider.key_provider.load_private_key(private_key(key)?).map_err(failed)?;
    let identity = CertifiedKey::new(certificates(cert)?, signer);
    match identity.keys_match() {
        Err(
            error @ (rustls::Error::NoCertificatesPresented
            | rustls::Error::InvalidCertificate(CertificateError::BadEncoding)
            | rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)),
        ) => Err(failed(error)),
        _ => Ok(Arc::new(SingleCertAndKey::from(identity))),
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::Tls(format!("{}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(failed)?;
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

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(&pem(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Tls(format!("{}: {error}", path.display())))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&pem(path)?)
        .map_err(|error| Error::Tls(format!("{}: {error}", path.display())))
}

/// Reads a file, which may be a pipe or a device without an end.
fn pem(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| Error::Tls(format!("{}: {error}", path.display())))?;
    match read as u64 > PEM_BYTES_MAX {
        true => Err(Error::Tls(format!("{}: it has more than 16 MB", path.display()))),
        false => Ok(bytes),
    }
}

/// Verifies nothing, for `--insecure`.
#[derive(Debug)]
struct AcceptAnything {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_no_certificate() {
        let error = certificates(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("/dev/zero: it has more than 16 MB"), "{error}");
        assert!(private_key(Path::new("/dev/zero")).is_err());
    }

    fn chosen(ciphers: &str, ciphersuites: &str) -> Result<Vec<String>, String> {
        let files = TlsOptions {
            ciphers: Some(ciphers.into()),
            ciphersuites: Some(ciphersuites.into()),
            ..TlsOptions::default()
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
