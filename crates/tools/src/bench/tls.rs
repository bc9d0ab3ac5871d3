//! The client's side of TLS: from files on the command line to a rustls configuration.
//!
//! A certificate authority or `insecure` must be named: the system's store is not consulted,
//! because a measured server nearly always has a self-signed certificate.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use crate::Error;

/// The most bytes of a file with certificates or a key: those of all authorities have less.
const PEM_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the user says about TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM file with the certificate authorities to trust.
    pub cacert: Option<PathBuf>,
    /// PEM file with the client's certificate chain, for servers that ask for one.
    pub cert: Option<PathBuf>,
    /// PEM file with the private key of `cert`.
    pub key: Option<PathBuf>,
    /// Accept any certificate of the server.
    pub insecure: bool,
    /// The name to ask for and verify, when it is not the host.
    pub sni: Option<String>,
}

/// A checked configuration, ready to open connections.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Reads the files and builds the configuration for a server called `host`.
    ///
    /// # Errors
    /// Unreadable or unusable files, or neither an authority nor `insecure`.
    pub fn new(options: &TlsOptions, host: &str) -> Result<Tls, Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Tls(error.to_string()))?;
        let builder = match &options.cacert {
            _ if options.insecure => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAnything { provider })),
            Some(path) => builder.with_root_certificates(authorities(path)?),
            None => return Err(Error::Tls("give --cacert FILE to trust, or --insecure".into())),
        };
        let config = match (&options.cert, &options.key) {
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(certificates(cert)?, private_key(key)?)
                .map_err(|error| Error::Tls(format!("the client certificate: {error}")))?,
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(Error::Tls("--cert and --key belong together".into())),
        };
        let name = options.sni.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name.clone())
            .map_err(|_| Error::Tls(format!("'{name}' is no server name: give one with --sni")))?;
        Ok(Tls { config: Arc::new(config), name })
    }

    /// A connection that has not exchanged a byte yet.
    ///
    /// # Errors
    /// When the name or configuration cannot be used together.
    pub fn connection(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| Error::Tls(error.to_string()))?;
        // A batch is bounded by the pipeline; a smaller limit would cut it into partial writes.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(&pem(path)?)
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Tls(format!("{}: {error}", path.display())))
}

pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&pem(path)?)
        .map_err(|error| Error::Tls(format!("{}: {error}", path.display())))
}

/// The bytes of a file, which may be a pipe or a device without an end.
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

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates(path)?);
    if added == 0 {
        return Err(Error::Tls(format!("{}: no usable certificate in it", path.display())));
    }
    Ok(store)
}

/// Verifies nothing: `--insecure` says that encryption is all that is wanted.
#[derive(Debug)]
pub(crate) struct AcceptAnything {
    pub(crate) provider: Arc<CryptoProvider>,
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
}
