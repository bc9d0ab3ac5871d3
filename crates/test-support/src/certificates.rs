//! Throw-away certificates: an authority, a server certificate for `localhost` and `127.0.0.1`,
//! and a client certificate, as PEM files.
//!
//! Each set is new, so nothing here is a secret and nothing expires in a repository.

use std::fs;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tempfile::TempDir;

/// PEM files in a temporary folder, which is removed on drop.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
    /// Of clients that trust the authority.
    clients: Arc<ClientConfig>,
}

impl Certificates {
    /// Makes an authority that signs one certificate for a server and one for a client.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let authority_key = KeyPair::generate().expect("a key can be made");
        let mut params = parameters("weft test authority", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key).expect("the authority signs itself");
        let own = Self { folder, clients: trusting(authority.der()) };
        own.write("ca.pem", &authority.pem());
        own.write("ca.key", &authority_key.serialize_pem());

        for (name, purpose, hosts) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth, ["localhost", "127.0.0.1"].as_slice()),
            ("client", ExtendedKeyUsagePurpose::ClientAuth, [].as_slice()),
        ] {
            let key = KeyPair::generate().expect("a key can be made");
            let mut params = parameters(&format!("weft test {name}"), hosts);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![purpose];
            // Python's strict mode of OpenSSL requires the identifier of the key that signed.
            params.use_authority_key_identifier_extension = true;
            let signed =
                params.signed_by(&key, &authority, &authority_key).expect("the authority signs");
            own.write(&format!("{name}.pem"), &signed.pem());
            own.write(&format!("{name}.key"), &key.serialize_pem());
        }
        own
    }

    /// The path of `ca.pem`, `ca.key`, `server.pem`, `server.key`, `client.pem` or `client.key`.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Writes another file next to the certificates, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.file(name), text).expect("the temporary folder is writable");
        self.file(name)
    }

    /// The options of a server with its certificate; `auth_clients` is `yes`, `no` or `optional`.
    pub fn server_options(&self, auth_clients: &str) -> Vec<String> {
        let (cert, key) = (self.file("server.pem"), self.file("server.key"));
        let authority = self.file("ca.pem");
        let options = [
            ["--tls-cert-file", &cert],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &authority],
            ["--tls-auth-clients", auth_clients],
        ];
        options.concat().into_iter().map(str::to_owned).collect()
    }

    /// The TLS state of a new client without a certificate, which trusts the authority.
    pub fn client(&self) -> ClientConnection {
        let name = ServerName::try_from("localhost").expect("a name");
        ClientConnection::new(Arc::clone(&self.clients), name).expect("a client")
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

/// Clients that trust this authority.
fn trusting(authority: &CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn parameters(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).expect("the host names are well formed");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
