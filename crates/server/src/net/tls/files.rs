//! The files that the TLS parameters name: certificates, keys, authorities.

use std::fs;
use std::sync::Arc;

use node::config::Tls;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

/// The server's certificate and key, shown to every client whatever name it asks for.
#[derive(Debug)]
pub struct Identity(Arc<CertifiedKey>);

impl ResolvesServerCert for Identity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Reads `tls-cert-file` and `tls-key-file`.
///
/// # Errors
/// Which of them cannot be used, why, and how to fix it.
pub fn identity(tls: &Tls, provider: &CryptoProvider) -> Result<Arc<Identity>, String> {
    for (name, path) in [("tls-cert-file", &tls.cert_file), ("tls-key-file", &tls.key_file)] {
        if path.is_empty() {
            return Err(format!(
                "No {name} is configured: a TLS port, tls-replication and tls-cluster need a \
                 certificate and its private key, both as PEM; set tls-cert-file and \
                 tls-key-file, or tls-port 0, tls-replication no and tls-cluster no"
            ));
        }
    }
    let chain = certificates("certificate", &tls.cert_file)?;
    let key = private_key(tls)?;
    let signer = provider.key_provider.load_private_key(key).map_err(|error| {
        format!(
            "Failed to load private key {}: {error}; use an RSA, ECDSA or Ed25519 key",
            tls.key_file
        )
    })?;
    let identity = CertifiedKey::new(chain, signer);
    match identity.keys_match() {
        Ok(()) => {}
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            return Err(format!(
                "The private key {} does not belong to the certificate {}: name files that were \
                 made together",
                tls.key_file, tls.cert_file
            ));
        }
        // Other errors of a certificate are for clients to judge.
        Err(Error::InconsistentKeys(_) | Error::InvalidCertificate(CertificateError::Other(_))) => {
        }
        Err(error) => {
            return Err(format!("Failed to load certificate {}: {error}", tls.cert_file));
        }
    }
    Ok(Arc::new(Identity(Arc::new(identity))))
}

fn private_key(tls: &Tls) -> Result<PrivateKeyDer<'static>, String> {
    let path = &tls.key_file;
    let text = read("private key", path)?;
    let failed = |reason: &str| format!("Failed to load private key {path}: {reason}");
    if has(&text, b"BEGIN ENCRYPTED PRIVATE KEY") {
        return decrypted(&text, &tls.key_file_pass).map_err(|reason| failed(&reason));
    }
    if has(&text, b"Proc-Type: 4,ENCRYPTED") {
        return Err(failed(
            "its encryption is of the old kind, which is not supported; convert it with \
             'openssl pkcs8 -topk8 -in KEY -out NEWKEY'",
        ));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => failed("there is no private key in it; a PEM file is needed"),
        error => failed(&error.to_string()),
    })
}

/// A key under a password, as PKCS #8 (RFC 5958, 3) has it.
fn decrypted(text: &[u8], password: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if password.is_empty() {
        return Err("it is encrypted; set tls-key-file-pass".to_owned());
    }
    let text = String::from_utf8_lossy(text);
    let (_, key) = SecretDocument::from_pem(&text).map_err(|error| error.to_string())?;
    let key = EncryptedPrivateKeyInfoRef::try_from(key.as_bytes())
        .map_err(|error| error.to_string())?
        .decrypt(password)
        .map_err(|_| "tls-key-file-pass does not decrypt it")?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

fn has(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn certificates(what: &str, path: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(what, path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(format!(
            "Failed to load {what} {path}: there is no certificate in it; a PEM file is needed"
        )),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("Failed to load {what} {path}: {error}")),
    }
}

fn read(what: &str, path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" (os error").next().unwrap_or(&text);
        format!("Failed to load {what} {path}: {reason}")
    })
}

/// Adds the certificates of a file to those that sign clients' certificates.
///
/// # Errors
/// Why the file cannot be used.
pub fn add_authorities(roots: &mut RootCertStore, path: &str) -> Result<(), String> {
    for certificate in certificates("CA certificate", path)? {
        roots
            .add(certificate)
            .map_err(|error| format!("Failed to load CA certificate {path}: {error}"))?;
    }
    Ok(())
}

/// The same with the files of a directory; files without certificates are skipped.
///
/// # Errors
/// When the directory cannot be read or has no usable file.
pub fn add_directory(roots: &mut RootCertStore, path: &str) -> Result<(), String> {
    let failed = |reason: &str| format!("Failed to load CA certificates from {path}: {reason}");
    let entries = fs::read_dir(path).map_err(|error| failed(&error.to_string()))?;
    let before = roots.len();
    for entry in entries.flatten() {
        if let Ok(found) = CertificateDer::pem_file_iter(entry.path()) {
            roots.add_parsable_certificates(found.flatten());
        }
    }
    if roots.len() == before {
        return Err(failed("there is no certificate in it"));
    }
    Ok(())
}
