//! TLS for the clients of `tls-port`: from the configuration to the setup of a new connection.
//!
//! The setup is one `Arc` that accepting clones: a reload replaces it for new connections, and
//! existing ones continue with the one they began with. Nothing is checked while there is no TLS
//! port, so that files may be named before they exist. rustls is given its cryptography by name and
//! never takes the process's default. DH parameters have no meaning here: rustls exchanges keys
//! over elliptic curves only.

mod ciphers;
mod files;
mod sessions;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod version_1;

use std::sync::Arc;

use node::config::{ClientCerts, Config, Tls};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use sessions::Sessions;
pub use stream::{TlsStream, end_thread};
use version_1::AnyVersionVerifier;

/// How long a client may take for its handshake, in milliseconds from the moment it was accepted.
pub const HANDSHAKE_MS_MAX: i64 = 10_000;
/// Tickets a client gets with its handshake; each is good for one more connection.
const TICKETS: usize = 1;

/// The setup of new connections to the TLS port; `None` if there is no such port. The setup is
/// checked without such a port too, if links between servers are meant to use TLS.
///
/// # Errors
/// A sentence that says which parameter or file cannot be used, why, and how to fix it.
pub fn configure(config: &Config) -> Result<Option<Arc<ServerConfig>>, String> {
    let tls = &config.tls;
    if config.tls_port == 0 && !tls.replication && !tls.cluster {
        return Ok(None);
    }
    let setup = Arc::new(build(tls)?);
    Ok(Some(setup).filter(|_| config.tls_port != 0))
}

fn build(tls: &Tls) -> Result<ServerConfig, String> {
    let versions = protocols(&tls.protocols)?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: ciphers::suites(&tls.ciphers, &tls.ciphersuites, &versions)?,
        ..aws_lc_rs::default_provider()
    });
    let identity = files::identity(tls, &provider)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let builder = match verifier(tls, &provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut setup = builder.with_cert_resolver(identity);
    setup.ignore_client_order = tls.prefer_server_ciphers;
    if tls.session_caching {
        setup.session_storage =
            Arc::new(Sessions::new(tls.session_cache_size, tls.session_cache_timeout));
        setup.send_tls13_tickets = TICKETS;
    } else {
        setup.session_storage = Arc::new(NoServerSessionStorage {});
        setup.send_tls13_tickets = 0;
    }
    Ok(setup)
}

/// The versions that `tls-protocols` names; both when it is empty.
fn protocols(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    for name in text.split_ascii_whitespace() {
        let version = match name.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &TLS12,
            "tlsv1.3" => &TLS13,
            "sslv2" | "sslv3" | "tlsv1" | "tlsv1.0" | "tlsv1.1" => {
                return Err(format!(
                    "tls-protocols: {name} is not supported because it is not safe any more; \
                     use \"TLSv1.2 TLSv1.3\""
                ));
            }
            _ => {
                return Err(format!(
                    "tls-protocols: '{name}' is not a protocol; \
                     use \"TLSv1.2 TLSv1.3\" or one of them"
                ));
            }
        };
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    if versions.is_empty() {
        versions.extend([&TLS12, &TLS13]);
    }
    Ok(versions)
}

/// The verifier of clients' certificates; it accepts any client if none are asked for.
fn verifier(
    tls: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    if tls.auth_clients == ClientCerts::No {
        return Ok(None);
    }
    if tls.ca_cert_file.is_empty() && tls.ca_cert_dir.is_empty() {
        return Err(
            "tls-auth-clients asks for certificates of clients: name the authorities that \
                    sign them with tls-ca-cert-file or tls-ca-cert-dir, or set tls-auth-clients no"
                .to_owned(),
        );
    }
    let mut roots = RootCertStore::empty();
    if !tls.ca_cert_file.is_empty() {
        files::add_authorities(&mut roots, &tls.ca_cert_file)?;
    }
    if !tls.ca_cert_dir.is_empty() {
        files::add_directory(&mut roots, &tls.ca_cert_dir)?;
    }
    let roots = Arc::new(roots);
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider));
    let builder = match tls.auth_clients {
        ClientCerts::Optional => builder.allow_unauthenticated(),
        _ => builder,
    };
    let others = builder
        .build()
        .map_err(|error| format!("The authorities of clients cannot be used: {error}"))?;
    let algorithms = provider.signature_verification_algorithms;
    Ok(Some(Arc::new(AnyVersionVerifier { others, roots, algorithms })))
}
