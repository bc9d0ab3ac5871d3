//! TLS: trusted servers, certificates of clients, and error messages.

use std::fs;
use std::path::Path;

use test_support::{Certificates, Launch, Ports};

use super::{ask, cli, run, texts};
use crate::Server;

/// A server on a TLS and a plain port. Its folder has the files of its authority, of a client with
/// a certificate of that authority, and of another authority.
fn start(auth_clients: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (files, others) = (Certificates::new(), Certificates::new());
    for name in ["ca.pem", "server.pem", "server.key", "client.pem", "client.key"] {
        fs::copy(files.file(name), path(name)).unwrap();
    }
    fs::copy(others.file("server.pem"), path("other.pem")).unwrap();
    fs::create_dir(path("authorities")).unwrap();
    fs::write(path("authorities/readme"), "no certificate").unwrap();
    fs::copy(path("ca.pem"), path("authorities/ca.pem")).unwrap();
    fs::create_dir(path("empty")).unwrap();
    let launch = Launch::weft().in_folder(folder).ports(Ports::Both);
    launch.certified(&files, auth_clients).options(&["--io-threads", "1"]).start()
}

/// The reply to PING with these options.
fn ping(server: &Server, options: &str) -> (String, String, Option<i32>) {
    let port = server.tls_port.to_string();
    let mut command = cli(server.folder());
    command.args(["-h", "localhost", "-p", &port]).args(options.split(' ')).arg("ping");
    texts(&run(&mut command, b""))
}

#[track_caller]
fn is_refused(server: &Server, options: &str, expected: &str) {
    let (out, errors, code) = ping(server, options);
    assert_eq!((out.as_str(), code), ("", Some(1)), "{options}: {errors}");
    assert!(errors.contains(expected), "{options}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{options}: {errors}");
}

#[test]
fn a_trusted_server_answers() {
    let server = start("no");
    for options in [
        "--tls --cacert ca.pem",
        "--tls --cacertdir authorities",
        "--tls --insecure",
        "-h 127.0.0.1 --sni localhost --tls --cacert ca.pem",
        "--tls --cacert ca.pem --tls-ciphersuites TLS_AES_128_GCM_SHA256",
        "--tls --cacert ca.pem --tls-ciphers ECDHE-ECDSA-AES256-GCM-SHA384",
    ] {
        let expected = ("PONG\n".to_owned(), String::new(), Some(0));
        assert_eq!(ping(&server, options), expected, "{options}");
    }
    let port = server.tls_port.to_string();
    let uri = format!("rediss://localhost:{port}");
    let mut command = cli(server.folder());
    let output = run(command.args(["-u", &uri, "--cacert", "ca.pem", "--scan"]), b"");
    assert_eq!(texts(&output), (String::new(), String::new(), Some(0)));
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused() {
    let server = start("no");
    let begin = "Could not negotiate a TLS connection: ";
    is_refused(&server, "--tls --cacert other.pem", begin);
    is_refused(&server, "--tls --cacert other.pem", "UnknownIssuer");
    is_refused(&server, "--tls --cacert ca.pem --sni elsewhere", "not valid for name");
    is_refused(&server, "--tls --cacert none.pem", "none.pem");
    is_refused(&server, "--tls --cacert server.key", "no certificate");
    is_refused(&server, "--tls --cacertdir empty", "no certificate");
    is_refused(&server, "--tls --cacertdir none", "No such file");
    is_refused(&server, "--tls --cacert ca.pem --sni a..b", "no name of a server");
    is_refused(&server, "--tls --cacert ca.pem --tls-ciphers RC4", "none of the ciphers");
    let words = ["-h", "localhost", "--tls", "--insecure", "ping"];
    let (_, errors, code) = ask(&server, &words, "");
    assert!(errors.starts_with(begin), "{errors}");
    assert_eq!(code, Some(1), "no TLS there: {errors}");
}

#[test]
fn a_client_shows_its_certificate() {
    let server = start("yes");
    let own = "--tls --cacert ca.pem --cert client.pem --key client.key";
    assert_eq!(ping(&server, own), ("PONG\n".into(), String::new(), Some(0)));
    let (out, errors, code) = ping(&server, "--tls --cacert ca.pem");
    assert_eq!((out.as_str(), code), ("", Some(1)));
    assert!(errors.starts_with("Error: "), "{errors}");
    is_refused(&server, "--tls --cacert ca.pem --cert ca.pem --key client.key", "certificate");
}

#[test]
fn a_certificate_of_version_1_is_shown_and_accepted() {
    let (files, strangers) = (Certificates::new(), Certificates::new());
    files.write_pem("own.pem", &files.version_1(&files, None));
    files.write_pem("foreign.pem", &files.version_1(&strangers, None));
    let launch = Launch::weft().ports(Ports::Both).certified(&files, "yes");
    let server = launch.options(&["--io-threads", "1"]).start();
    let options = |cert: &str| {
        let [ca, cert, key] = ["ca.pem", cert, "client.key"].map(|name| files.file(name));
        format!("--tls --cacert {ca} --cert {cert} --key {key}")
    };
    assert_eq!(ping(&server, &options("own.pem")), ("PONG\n".into(), String::new(), Some(0)));
    let (out, _, code) = ping(&server, &options("foreign.pem"));
    assert_eq!((out.as_str(), code), ("", Some(1)));
    server.wait_for_log("Error accepting a client connection: invalid peer certificate: Unknown");
}

#[test]
fn a_long_transfer_passes_through_tls() {
    let server = start("no");
    let value = "x".repeat(100_000);
    let mut input = Vec::new();
    for number in 0..50 {
        input.extend(format!("SET k{number} {value}\r\nGET k{number}\r\n").into_bytes());
    }
    let port = server.tls_port.to_string();
    let folder: &Path = server.folder();
    let options = ["-h", "localhost", "--tls", "--cacert", "ca.pem", "-p", &port, "--pipe"];
    // These are too long for inline requests.
    let input = encode(&input);
    let (out, errors, code) = texts(&run(cli(folder).args(options), &input));
    assert!(out.ends_with("errors: 0, replies: 100\n"), "{out}{errors}");
    assert_eq!(code, Some(0));
}

/// Lines of words as requests.
fn encode(lines: &[u8]) -> Vec<u8> {
    let lines = std::str::from_utf8(lines).unwrap().lines();
    lines.flat_map(test_support::request).collect()
}
