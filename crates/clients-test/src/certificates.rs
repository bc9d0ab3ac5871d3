//! Throw-away certificates: an authority, a server certificate for `localhost` and `127.0.0.1`,
//! and a client certificate, as the PEM files that servers and clients read. Each set is new, so
//! nothing here is a secret and nothing expires in a repository.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Folder;

/// PEM files in a folder that lives as long as this.
pub struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// Makes an authority and has it sign one certificate for a server and one for a client.
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
            // OpenSSL in Python's strict mode wants to know which authority's key signed.
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
