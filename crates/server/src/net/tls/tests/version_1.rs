//! Clients' certificates of X.509 version 1: what is accepted, and that nothing else is.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::UnixTime;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use super::*;
use crate::net::tls::verifier;

/// Shows a certificate that rustls's own clients would not show.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// The private key of a file.
fn key(files: &Files, name: &str) -> Arc<dyn rustls::sign::SigningKey> {
    let key = PrivateKeyDer::from_pem_file(files.path(name)).unwrap();
    aws_lc_rs::sign::any_supported_type(&key).unwrap()
}

/// The setup of a server that asks for certificates of its authority.
fn asking(files: &Files) -> Config {
    let mut config = files.config();
    config.tls.auth_clients = ClientCerts::Yes;
    config.tls.ca_cert_file = files.path("ca.pem");
    config
}

/// The handshake of a client that shows a certificate and proves to have a key.
fn shake_hands(
    files: &Files,
    version: &'static SupportedProtocolVersion,
    certificate: &[u8],
    key: Arc<dyn rustls::sign::SigningKey>,
) -> Result<(), String> {
    let chain = vec![CertificateDer::from(certificate.to_vec())];
    let mut client = ClientConfig::clone(&files.client(&[version], None));
    client.client_auth_cert_resolver = Arc::new(Shown(Arc::new(CertifiedKey::new(chain, key))));
    let server = configure(&asking(files)).unwrap().unwrap();
    Pair::new(server, Arc::new(client)).shake_hands()
}

#[test]
fn a_certificate_that_an_authority_has_signed_is_accepted() {
    let (files, strangers) = (Files::new(), Files::new());
    let certificate = |signer: &Files, validity| files.0.version_1(&signer.0, validity);
    let past = Some(["200101000000Z", "210101000000Z"]);
    let future = Some(["480101000000Z", "490101000000Z"]);
    let cases = [
        (certificate(&files, None), &files, ""),
        (certificate(&files, Some(["200101000000Z", "490101000000Z"])), &files, ""),
        (certificate(&strangers, None), &files, "UnknownIssuer"),
        (certificate(&files, past), &files, "certificate expired"),
        (certificate(&files, future), &files, "certificate not valid yet"),
        // The certificate of another client.
        (certificate(&files, None), &strangers, "BadSignature"),
        ([certificate(&files, None), vec![0]].concat(), &files, "invalid peer certificate"),
    ];
    for (index, (certificate, owner, refusal)) in cases.iter().enumerate() {
        for version in BOTH {
            let result = shake_hands(&files, version, certificate, key(owner, "client.key"));
            match refusal {
                &"" => assert_eq!(result, Ok(()), "{index} {version:?}"),
                refusal => {
                    let text = result.unwrap_err();
                    assert!(text.contains(refusal), "{index} {version:?}: {text}");
                }
            }
        }
    }
}

#[test]
fn no_changed_bit_and_no_cut_is_accepted() {
    let files = Files::new();
    let config = asking(&files);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = verifier(&config.tls, &provider).unwrap().unwrap();
    let whole = files.0.version_1(&files.0, None);
    let is_accepted = |bytes: &[u8]| {
        let certificate = CertificateDer::from(bytes);
        verifier.verify_client_cert(&certificate, &[], UnixTime::now()).is_ok()
    };
    assert!(is_accepted(&whole));
    for at in 0..whole.len() {
        assert!(!is_accepted(&whole[..at]), "cut at {at}");
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            assert!(!is_accepted(&changed), "bit {bit} of byte {at}");
        }
    }
}
