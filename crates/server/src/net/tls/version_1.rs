//! Clients' certificates of X.509 version 1, such as `openssl x509 -req` writes without an
//! extension file. rustls refuses them; Redis, through OpenSSL, does not.
//!
//! ```text
//! Certificate: SEQUENCE { to be signed, algorithm, BIT STRING }
//! to be signed: SEQUENCE { serial number, algorithm, issuer, SEQUENCE { from, until },
//!                          subject, SEQUENCE { algorithm, BIT STRING } }        RFC 5280, 4.1
//! ```
//!
//! Such a certificate has no extensions, so nothing limits the use of its key and nothing is left
//! to check but its time and its signature. It is accepted if one of the authorities of the
//! configuration has signed it itself; intermediate certificates that the client sends do not
//! count. Every other certificate is left to rustls: no certificate of version 3 has this form,
//! whose first element is the serial number.

use std::sync::Arc;
use std::time::Duration;

use pkcs8::der::asn1::{AnyRef, BitStringRef, GeneralizedTime, UtcTime};
use pkcs8::der::{self, Decode, ErrorKind, Reader, SliceReader, Tag, Tagged};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    RootCertStore, SignatureScheme,
};

/// Verifies certificates of version 1 itself, and leaves others to rustls.
#[derive(Debug)]
pub struct AnyVersionVerifier {
    pub others: Arc<dyn ClientCertVerifier>,
    pub roots: Arc<RootCertStore>,
    pub algorithms: WebPkiSupportedAlgorithms,
}

/// The parts of a certificate that matter here.
struct Version1<'a> {
    to_be_signed: &'a [u8],
    /// The algorithm of its signature, and the signature.
    algorithm: &'a [u8],
    signature: &'a [u8],
    issuer: &'a [u8],
    from: Duration,
    until: Duration,
    /// The client's key, as a whole element.
    key: &'a [u8],
}

/// A public key: its algorithm, and its bits.
struct PublicKey<'a> {
    algorithm: &'a [u8],
    bits: &'a [u8],
}

impl ClientCertVerifier for AnyVersionVerifier {
    fn offer_client_auth(&self) -> bool {
        self.others.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let Ok(certificate) = Version1::parse(end_entity) else {
            return self.others.verify_client_cert(end_entity, intermediates, now);
        };
        certificate.check_time(now)?;
        let mut signers = self.roots.roots.iter().filter(|anchor| {
            // An authority that is limited to some names needs a certificate that rustls verifies.
            *anchor.subject == *certificate.issuer && anchor.name_constraints.is_none()
        });
        match signers.any(|anchor| certificate.is_signed_by(anchor, self.algorithms.all)) {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Ok(version_1) = Version1::parse(certificate) else {
            return self.others.verify_tls12_signature(message, certificate, signed);
        };
        let mut schemes = self.algorithms.mapping.iter();
        let Some((_, algorithms)) = schemes.find(|(scheme, _)| *scheme == signed.scheme) else {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        };
        let key = PublicKey::parse(version_1.key).map_err(|_| CertificateError::BadEncoding)?;
        match key.has_signed(message, signed.signature(), algorithms.iter().copied()) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Ok(version_1) = Version1::parse(certificate) else {
            return self.others.verify_tls13_signature(message, certificate, signed);
        };
        let key = SubjectPublicKeyInfoDer::from(version_1.key);
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

impl<'a> Version1<'a> {
    fn parse(certificate: &'a [u8]) -> der::Result<Self> {
        let mut reader = SliceReader::new(certificate)?;
        let mut parts = sequence(&mut reader)?;
        reader.finish()?;
        let to_be_signed = parts.tlv_bytes()?;
        let algorithm = element(&mut parts, Tag::Sequence)?;
        let signature = bits(&mut parts)?;
        parts.finish()?;
        let mut signed = sequence(&mut SliceReader::new(to_be_signed)?)?;
        // A certificate of another version has its number here.
        element(&mut signed, Tag::Integer)?;
        if element(&mut signed, Tag::Sequence)? != algorithm {
            return Err(ErrorKind::Failed.into());
        }
        let issuer = element(&mut signed, Tag::Sequence)?;
        let mut validity = sequence(&mut signed)?;
        let (from, until) = (time(&mut validity)?, time(&mut validity)?);
        validity.finish()?;
        element(&mut signed, Tag::Sequence)?;
        let key = signed.tlv_bytes()?;
        signed.finish()?;
        Ok(Self { to_be_signed, algorithm, signature, issuer, from, until, key })
    }

    fn check_time(&self, now: UnixTime) -> Result<(), Error> {
        let [from, until] = [self.from, self.until].map(UnixTime::since_unix_epoch);
        if now < from {
            return Err(CertificateError::NotValidYetContext { time: now, not_before: from }.into());
        }
        if now > until {
            return Err(CertificateError::ExpiredContext { time: now, not_after: until }.into());
        }
        Ok(())
    }

    fn is_signed_by(
        &self,
        anchor: &TrustAnchor<'_>,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> bool {
        let named = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            *algorithm.signature_alg_id() == *self.algorithm
        };
        PublicKey::parse_content(&anchor.subject_public_key_info).is_ok_and(|key| {
            let algorithms = algorithms.iter().copied().filter(named);
            key.has_signed(self.to_be_signed, self.signature, algorithms)
        })
    }
}

impl<'a> PublicKey<'a> {
    /// Reads a key that is a whole element.
    fn parse(key: &'a [u8]) -> der::Result<Self> {
        Self::parse_content(element(&mut SliceReader::new(key)?, Tag::Sequence)?)
    }

    /// Reads a key that is without its tag and length, as those of authorities are.
    fn parse_content(content: &'a [u8]) -> der::Result<Self> {
        let mut reader = SliceReader::new(content)?;
        let algorithm = element(&mut reader, Tag::Sequence)?;
        let bits = bits(&mut reader)?;
        reader.finish()?;
        Ok(Self { algorithm, bits })
    }

    /// Whether it has made a signature, by one of these algorithms.
    fn has_signed<'b>(
        &self,
        message: &[u8],
        signature: &[u8],
        algorithms: impl Iterator<Item = &'b dyn SignatureVerificationAlgorithm>,
    ) -> bool {
        let mut usable = algorithms.filter(|own| *own.public_key_alg_id() == *self.algorithm);
        usable.any(|own| own.verify_signature(self.bits, message, signature).is_ok())
    }
}

/// The content of the next element, which has this tag.
fn element<'a>(reader: &mut SliceReader<'a>, tag: Tag) -> der::Result<&'a [u8]> {
    let element = AnyRef::decode(reader)?;
    element.tag().assert_eq(tag)?;
    Ok(element.value())
}

/// A reader of the parts of the next element, which is a SEQUENCE.
fn sequence<'a>(reader: &mut SliceReader<'a>) -> der::Result<SliceReader<'a>> {
    SliceReader::new(element(reader, Tag::Sequence)?)
}

/// A BIT STRING of whole bytes.
fn bits<'a>(reader: &mut SliceReader<'a>) -> der::Result<&'a [u8]> {
    let bits = BitStringRef::decode(reader)?;
    bits.as_bytes().ok_or_else(|| ErrorKind::Failed.into())
}

fn time(reader: &mut SliceReader<'_>) -> der::Result<Duration> {
    let time = AnyRef::decode(reader)?;
    Ok(match time.tag() {
        Tag::UtcTime => time.decode_as::<UtcTime>()?.to_unix_duration(),
        _ => time.decode_as::<GeneralizedTime>()?.to_unix_duration(),
    })
}
