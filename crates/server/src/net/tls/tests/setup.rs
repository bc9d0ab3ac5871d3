//! Setups: errors and their texts, versions, ciphers, certificates of clients, sessions.
#![allow(clippy::unwrap_used)]

use std::fs;

use rustls::{HandshakeKind, ProtocolVersion};

use super::*;

/// Checks that a change of a usable configuration is refused with these words.
#[track_caller]
fn refused(files: &Files, change: impl FnOnce(&mut Tls), words: &[&str]) {
    let mut config = files.config();
    change(&mut config.tls);
    let text = configure(&config).err().unwrap_or_default();
    for word in words {
        assert!(text.contains(word), "'{text}' does not say '{word}'");
    }
}

#[test]
fn without_a_port_nothing_is_looked_at() {
    let mut config = Files::new().config();
    config.tls_port = 0;
    config.tls.cert_file = "missing".to_owned();
    assert!(configure(&config).unwrap().is_none());
}

#[test]
fn what_cannot_be_used_is_named() {
    let files = Files::new();
    let other = Files::new();
    refused(&files, |tls| tls.cert_file.clear(), &["No tls-cert-file is configured"]);
    refused(&files, |tls| tls.key_file.clear(), &["No tls-key-file is configured"]);
    let missing = files.path("missing.pem");
    let words = ["Failed to load certificate", missing.as_str(), "No such file"];
    refused(&files, |tls| tls.cert_file = missing.clone(), &words);
    refused(&files, |tls| tls.key_file = missing.clone(), &["Failed to load private key"]);
    let empty = files.write("empty.pem", "nothing\n");
    refused(&files, |tls| tls.cert_file = empty.clone(), &["there is no certificate in it"]);
    refused(&files, |tls| tls.key_file = empty.clone(), &["there is no private key in it"]);
    let foreign = other.path("server.key");
    refused(&files, |tls| tls.key_file = foreign, &["does not belong to the certificate"]);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let broken = files.write("broken.pem", broken);
    refused(&files, |tls| tls.cert_file = broken.clone(), &["Failed to load certificate", &broken]);
}

#[test]
fn a_key_may_have_a_password() {
    use pkcs8::pkcs5::pbes2::Parameters;
    use pkcs8::{LineEnding, PrivateKeyInfoRef};

    let files = Files::new();
    let plain = PrivateKeyDer::from_pem_file(files.path("server.key")).unwrap();
    let plain = PrivateKeyInfoRef::try_from(plain.secret_der()).unwrap();
    let how = Parameters::generate_pbkdf2_sha256_aes256cbc(1000, &[1; 16], [2; 16]).unwrap();
    let key = plain.encrypt_with_params(how, "secret").unwrap();
    let key = key.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap();
    let path = files.write("encrypted.key", &key);
    let with = |pass: &'static str| {
        let path = path.clone();
        move |tls: &mut Tls| {
            tls.key_file = path;
            tls.key_file_pass = pass.as_bytes().to_vec();
        }
    };
    refused(&files, with(""), &["is encrypted; set tls-key-file-pass"]);
    refused(&files, with("wrong"), &["tls-key-file-pass does not decrypt it"]);
    let mut config = files.config();
    with("secret")(&mut config.tls);
    let server = configure(&config).unwrap().unwrap();
    Pair::new(server, files.client(BOTH, None)).shake_hands().unwrap();
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
    let old = files.write("old.key", old);
    refused(&files, |tls| tls.key_file = old, &["of the old kind", "openssl pkcs8 -topk8"]);
}

#[test]
fn authorities_are_needed_to_check_clients() {
    let files = Files::new();
    for wish in [ClientCerts::Yes, ClientCerts::Optional] {
        let words = ["tls-ca-cert-file", "tls-auth-clients no"];
        refused(&files, |tls| tls.auth_clients = wish, &words);
    }
    let missing = files.path("missing");
    let ask = |change: fn(&mut Tls, String)| {
        let missing = missing.clone();
        move |tls: &mut Tls| {
            tls.auth_clients = ClientCerts::Yes;
            change(tls, missing);
        }
    };
    let words = ["Failed to load CA certificate", "No such file"];
    refused(&files, ask(|tls, path| tls.ca_cert_file = path), &words);
    let words = ["Failed to load CA certificates from", "No such file"];
    refused(&files, ask(|tls, path| tls.ca_cert_dir = path), &words);
    fs::create_dir(&missing).unwrap();
    let words = ["there is no certificate in it"];
    refused(&files, ask(|tls, path| tls.ca_cert_dir = path), &words);
}

#[test]
fn protocols_have_names() {
    let files = Files::new();
    let names = |text: &'static str| move |tls: &mut Tls| tls.protocols = text.to_owned();
    refused(&files, names("TLSv1.1 TLSv1.2"), &["TLSv1.1 is not supported", "not safe"]);
    refused(&files, names("TLSv1.4"), &["'TLSv1.4' is not a protocol", "TLSv1.2 TLSv1.3"]);
    for (text, expected) in [
        ("TLSv1.2", ProtocolVersion::TLSv1_2),
        ("tlsv1.3", ProtocolVersion::TLSv1_3),
        ("TLSv1.2 TLSv1.3", ProtocolVersion::TLSv1_3),
        ("", ProtocolVersion::TLSv1_3),
    ] {
        let mut config = files.config();
        config.tls.protocols = text.to_owned();
        let server = configure(&config).unwrap().unwrap();
        let mut pair = Pair::new(server, files.client(BOTH, None));
        pair.shake_hands().unwrap();
        assert_eq!(pair.client.protocol_version(), Some(expected), "{text}");
    }
}

#[test]
fn ciphers_are_chosen_by_the_side_that_prefers() {
    let files = Files::new();
    let suites = "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384";
    for (prefers, expected) in
        [(true, "TLS13_CHACHA20_POLY1305_SHA256"), (false, "TLS13_AES_256_GCM_SHA384")]
    {
        let mut config = files.config();
        config.tls.ciphersuites = suites.to_owned();
        config.tls.prefer_server_ciphers = prefers;
        let server = configure(&config).unwrap().unwrap();
        let mut pair = Pair::new(server, files.client(BOTH, None));
        pair.shake_hands().unwrap();
        let suite = pair.client.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(format!("{suite:?}"), expected);
    }
}

#[test]
fn clients_show_what_they_are_asked_for() {
    let files = Files::new();
    let strangers = Files::new();
    for (wish, shows, is_let_in) in [
        (ClientCerts::No, None, true),
        (ClientCerts::Optional, None, true),
        (ClientCerts::Optional, Some(&files), true),
        (ClientCerts::Optional, Some(&strangers), false),
        (ClientCerts::Yes, None, false),
        (ClientCerts::Yes, Some(&files), true),
        (ClientCerts::Yes, Some(&strangers), false),
    ] {
        for (ca_cert_file, ca_cert_dir) in
            [(files.path("ca.pem"), String::new()), (String::new(), files.path(""))]
        {
            // The directory holds keys too, which are passed over, and certificates besides the
            // authority's, which sign nothing.
            let mut config = files.config();
            config.tls = Tls { auth_clients: wish, ca_cert_file, ca_cert_dir, ..config.tls };
            let server = configure(&config).unwrap().unwrap();
            let mut pair = Pair::new(server, files.client(BOTH, shows));
            let result = pair.shake_hands();
            assert_eq!(result.is_ok(), is_let_in, "{wish:?}: {result:?}");
        }
    }
}

#[test]
fn sessions_are_resumed_as_long_as_they_are_kept() {
    let files = Files::new();
    for (caching, timeout, expected) in [
        (true, 300, HandshakeKind::Resumed),
        (true, 0, HandshakeKind::Full),
        (false, 300, HandshakeKind::Full),
    ] {
        for versions in [&BOTH[..1], &BOTH[1..]] {
            let mut config = files.config();
            config.tls.session_caching = caching;
            config.tls.session_cache_timeout = timeout;
            let server = configure(&config).unwrap().unwrap();
            let client = files.client(versions, None);
            let mut kinds = Vec::new();
            for _ in 0..3 {
                let mut pair = Pair::new(Arc::clone(&server), Arc::clone(&client));
                pair.shake_hands().unwrap();
                pair.client_receives().unwrap();
                kinds.extend(pair.client.handshake_kind());
            }
            assert_eq!(kinds, [HandshakeKind::Full, expected, expected], "{versions:?}");
        }
    }
}

#[test]
fn a_new_setup_is_for_new_connections() {
    let (old, new) = (Files::new(), Files::new());
    let mut before = Pair::open(&old);
    let mut config = old.config();
    config.tls.cert_file = new.path("server.pem");
    assert!(configure(&config).is_err(), "the key is still the old one");
    config.tls.key_file = new.path("server.key");
    let server = configure(&config).unwrap().unwrap();
    let mut after = Pair::new(Arc::clone(&server), new.client(BOTH, None));
    after.shake_hands().unwrap();
    assert!(Pair::new(server, old.client(BOTH, None)).shake_hands().is_err());
    before.server.write_all(b"still here").unwrap();
    before.client_receives().unwrap();
    assert_eq!(before.client_reads(), b"still here");
}
