//! Certificates of X.509 version 1, as `openssl x509 -req` writes them without an extension file.

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Certificates;

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;

impl Certificates {
    /// The DER of the client's certificate as version 1, signed by the authority of `signer`.
    /// `validity` replaces its times, such as `260131000000Z`.
    pub fn version_1(&self, signer: &Certificates, validity: Option<[&str; 2]>) -> Vec<u8> {
        let version_3 = CertificateDer::from_pem_file(self.file("client.pem"));
        let version_3 = version_3.expect("a certificate");
        let [signed, algorithm, _] = &elements(content(&version_3))[..] else {
            panic!("a certificate has three parts");
        };
        let mut parts = elements(content(signed));
        let times = validity.map(|times| times.map(|time| element(UTC_TIME, time.as_bytes())));
        let times = times.map(|times| element(SEQUENCE, &times.concat()));
        if let Some(times) = &times {
            parts[4] = times;
        }
        // Without the version at the beginning and the extensions at the end.
        let signed = element(SEQUENCE, &parts[1..7].concat());
        let key = PrivateKeyDer::from_pem_file(signer.file("ca.key")).expect("a key");
        let key = any_supported_type(&key).expect("a key for signatures");
        let key = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).expect("P-256");
        let signature = [vec![0], key.sign(&signed).expect("a signature")].concat();
        let signature = element(BIT_STRING, &signature);
        element(SEQUENCE, &[&signed, *algorithm, &signature].concat())
    }

    /// Writes a certificate as PEM, and returns the path of the file.
    pub fn write_pem(&self, name: &str, der: &[u8]) -> String {
        let text = base64(der);
        self.write(
            name,
            &format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"),
        )
    }
}

/// The length of the header and of the whole of the first element.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    let (header, content) = match bytes[1] {
        0x81 => (3, usize::from(bytes[2])),
        0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
        short => (2, usize::from(short)),
    };
    (header, header + content)
}

fn content(element: &[u8]) -> &[u8] {
    let (header, whole) = lengths(element);
    &element[header..whole]
}

fn elements(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = bytes.split_at(lengths(bytes).1);
        all.push(element);
        bytes = rest;
    }
    all
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("a short element").to_be_bytes();
    let header = match content.len() {
        0..128 => vec![tag, low],
        128..256 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [&header, content].concat()
}

/// One line of RFC 4648, 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let bits = group >> (18 - 6 * digit) & 63;
            let is_padding = digit > chunk.len();
            text.push(if is_padding { '=' } else { char::from(DIGITS[bits as usize]) });
        }
    }
    text
}
