//! TLS against a rustls client over a socket pair: setups and their errors, handshakes in pieces,
//! big values, both ways to end.
#![allow(clippy::unwrap_used, clippy::panic)]

mod setup;
mod traffic;
mod version_1;

use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use node::config::{ClientCerts, Config, Tls};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion,
};
use test_support::Certificates;

use super::{TlsStream, configure};

const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12, &rustls::version::TLS13];

/// An authority and certificates that it signs.
pub(crate) struct Files(Certificates);

impl Files {
    pub(crate) fn new() -> Self {
        Self(Certificates::new())
    }

    fn path(&self, name: &str) -> String {
        self.0.file(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        self.0.write(name, text)
    }

    /// A usable configuration that asks clients for nothing.
    fn config(&self) -> Config {
        let tls = Tls {
            cert_file: self.path("server.pem"),
            key_file: self.path("server.key"),
            auth_clients: ClientCerts::No,
            ..Tls::default()
        };
        Config { tls_port: 1, tls, ..Config::default() }
    }

    fn server(&self) -> Arc<ServerConfig> {
        configure(&self.config()).unwrap().unwrap()
    }

    /// A client that trusts the authority, and shows a certificate of `shows` if it has one.
    fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        shows: Option<&Files>,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match shows {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let chain = vec![CertificateDer::from_pem_file(files.path("client.pem")).unwrap()];
                let key = PrivateKeyDer::from_pem_file(files.path("client.key")).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        })
    }
}

/// Both ends of a connection, driven by hand: nothing happens except on a test's call.
pub(crate) struct Pair {
    pub(crate) server: TlsStream,
    client: ClientConnection,
    wire: UnixStream,
}

impl Pair {
    fn new(server: Arc<ServerConfig>, client: Arc<ClientConfig>) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(client, name).unwrap();
        client.set_buffer_limit(None);
        Self { server: TlsStream::new(ours.into(), server).unwrap(), client, wire: theirs }
    }

    /// A pair whose handshake is done.
    pub(crate) fn open(files: &Files) -> Self {
        let mut pair = Self::new(files.server(), files.client(BOTH, None));
        pair.shake_hands().unwrap();
        pair
    }

    /// The client sends its output, as far as the wire takes it.
    fn client_sends(&mut self) {
        while self.client.wants_write() {
            match self.client.write_tls(&mut self.wire) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The client reads the bytes on the wire; `Ok(false)` at its end.
    fn client_receives(&mut self) -> Result<bool, rustls::Error> {
        while let Ok(count) = self.client.read_tls(&mut self.wire) {
            self.client.process_new_packets()?;
            if count == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn server_reads(&mut self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; 64 * 1024];
        let count = self.server.read(&mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }

    /// The handshake until both sides are done or one refuses; the text is the client's or the
    /// server's.
    fn shake_hands(&mut self) -> Result<(), String> {
        for _ in 0..10 {
            self.client_sends();
            match self.server_reads() {
                Ok(bytes) => assert_eq!(bytes, b"", "nothing was sent"),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    let refusal = self.server.refusal().map(str::to_owned);
                    return Err(refusal.unwrap_or_else(|| error.to_string()));
                }
            }
            self.client_receives().map_err(|error| error.to_string())?;
            if !self.client.is_handshaking() && !self.server.is_handshaking() {
                return Ok(());
            }
        }
        Err("the handshake does not end".to_owned())
    }

    /// The bytes that the client has decrypted.
    fn client_reads(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.client.reader().read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        bytes
    }
}

/// Bytes that differ from place to place.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 256) as u8).collect()
}
