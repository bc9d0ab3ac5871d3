//! Certificates for one test, as PEM files: an authority, a server certificate for `localhost` and
//! `127.0.0.1`, and a client certificate. Each set is generated, so the repository has no secrets
//! and no certificates that expire.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Folder;

/// PEM files in a temporary folder.
pub struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// Makes an authority, and a certificate for a server and one for a client that it signs.
    pub fn new() -> Certificates {
        let folder = Folder::new();
        let authority_key = KeyPair::generate().expect("a key can be made");
        let mut params = parameters("weft test authority", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key).expect("the authority signs itself");
        write(&folder, "ca.pem", &authority.pem());

        for (name, purpose, hosts) in [
            ("server", ExtendedKeyUsagePurpose::ServerAuth, ["localhost", "127.0.0.1"].as_slice()),
            ("client", ExtendedKeyUsagePurpose::ClientAuth, [].as_slice()),
        ] {
            let key = KeyPair::generate().expect("a key can be made");
            let mut params = parameters(&format!("weft test {name}"), hosts);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![purpose];
            // Python's strict mode of OpenSSL requires the key identifier of the authority.
            params.use_authority_key_identifier_extension = true;
            let signed =
                params.signed_by(&key, &authority, &authority_key).expect("the authority signs");
            write(&folder, &format!("{name}.pem"), &signed.pem());
            write(&folder, &format!("{name}.key"), &key.serialize_pem());
        }
        Certificates { folder }
    }

    /// The path of `ca.pem`, `server.pem`, `server.key`, `client.pem` or `client.key`.
    pub fn file(&self, name: &str) -> String {
        self.folder.file(name)
    }
}

impl Default for Certificates {
    fn default() -> Certificates {
        Certificates::new()
    }
}

fn parameters(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| host.to_string()).collect();
    let mut params = CertificateParams::new(hosts).expect("the host names are well formed");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).expect("the temporary folder takes a file");
}
