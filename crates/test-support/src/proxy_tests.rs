//! The proxy between a client and a server of the test itself.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::{Connects, Flow, FlowRule, Proxy};

/// A server that sends its connections to the test.
fn server() -> (SocketAddr, Receiver<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            if sender.send(stream.unwrap()).is_err() {
                return;
            }
        }
    });
    (address, accepted)
}

fn proxy() -> (Proxy, Receiver<TcpStream>) {
    let (address, accepted) = server();
    (Proxy::to(address), accepted)
}

fn read(mut stream: &TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn bytes_pass_in_both_directions_and_are_recorded() {
    let (proxy, accepted) = proxy();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let mut server = accepted.recv().unwrap();
    client.write_all(b"request").unwrap();
    assert_eq!(read(&server, 7), b"request");
    server.write_all(b"reply").unwrap();
    drop(server);
    assert_eq!(rest(&client), b"reply");
    let link = proxy.link(0);
    link.wait_for_end(Flow::Backward);
    assert_eq!((link.passed(Flow::Forward), link.passed(Flow::Backward)), (7, 5));
    assert_eq!(link.recorded(Flow::Forward), b"request");
    assert_eq!(link.recorded(Flow::Backward), b"reply");
}

#[test]
fn large_amounts_pass_byte_by_byte_unchanged() {
    let (proxy, accepted) = proxy();
    proxy.set_rule(Flow::Forward, FlowRule { piece_bytes_max: 1, ..FlowRule::default() });
    let sent: Vec<u8> = (0..50_000u32).map(|n| (n * n) as u8).collect();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let server = accepted.recv().unwrap();
    let writing = {
        let sent = sent.clone();
        thread::spawn(move || client.write_all(&sent))
    };
    assert!(rest(&server) == sent);
    writing.join().unwrap().unwrap();
    assert_eq!(proxy.link(0).passed(Flow::Forward), 50_000);
}

#[test]
fn a_connection_is_cut_at_each_byte() {
    let (proxy, accepted) = proxy();
    for cut_after in 0..=5 {
        let rule = FlowRule { cut_after: Some(cut_after), cut_both: true, ..FlowRule::default() };
        proxy.set_rule(Flow::Forward, rule);
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        let server = accepted.recv().unwrap();
        client.write_all(b"hello").unwrap();
        assert_eq!(rest(&server), &b"hello"[..cut_after as usize]);
        assert_eq!(rest(&client), b"");
        let link = proxy.link(cut_after as usize);
        assert_eq!(link.passed(Flow::Forward), cut_after);
    }
    assert_eq!(proxy.connections(), 6);
}

#[test]
fn a_cut_of_one_direction_leaves_the_other() {
    let (proxy, accepted) = proxy();
    proxy.set_rule(Flow::Forward, FlowRule { cut_after: Some(2), ..FlowRule::default() });
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let mut server = accepted.recv().unwrap();
    client.write_all(b"abcd").unwrap();
    assert_eq!(rest(&server), b"ab");
    server.write_all(b"still here").unwrap();
    assert_eq!(read(&client, 10), b"still here");
    // Bytes after the cut never fill a buffer.
    client.write_all(&vec![0; 8 << 20]).unwrap();
    proxy.link(0).cut();
    assert_eq!(rest(&client), b"");
}

#[test]
fn bytes_and_the_end_are_held_and_released() {
    let (proxy, accepted) = proxy();
    proxy.set_rule(Flow::Forward, FlowRule { hold_after: Some(3), ..FlowRule::default() });
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let mut server = accepted.recv().unwrap();
    client.write_all(b"abcdef").unwrap();
    drop(client);
    assert_eq!(read(&server, 3), b"abc");
    let link = proxy.link(0);
    server.set_nonblocking(true).unwrap();
    assert!(server.read(&mut [0]).is_err(), "nothing may pass");
    server.set_nonblocking(false).unwrap();
    link.set_rule(Flow::Forward, FlowRule { hold_after: Some(5), ..FlowRule::default() });
    link.wait_for(Flow::Forward, 5);
    assert_eq!(read(&server, 2), b"de");
    link.set_rule(Flow::Forward, FlowRule::default());
    assert_eq!(rest(&server), b"f");
}

#[test]
fn a_held_connection_can_be_cut() {
    let (proxy, accepted) = proxy();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let server = accepted.recv().unwrap();
    let link = proxy.link(0);
    client.write_all(b"a").unwrap();
    link.wait_for(Flow::Forward, 1);
    link.hold(Flow::Forward);
    client.write_all(b"b").unwrap();
    proxy.cut_all();
    assert_eq!((rest(&server), rest(&client)), (b"a".to_vec(), Vec::new()));
}

#[test]
fn connections_are_made_in_the_order_of_the_test() {
    let (proxy, accepted) = proxy();
    proxy.set_connects(Connects::Hold);
    let clients: Vec<TcpStream> = (0..3u8)
        .map(|number| {
            let mut client = TcpStream::connect(proxy.address()).unwrap();
            client.write_all(&[number]).unwrap();
            // The next one arrives later.
            proxy.link(usize::from(number));
            client
        })
        .collect();
    for number in [2, 0, 1] {
        proxy.link(number).connect();
        assert_eq!(read(&accepted.recv().unwrap(), 1), [number as u8]);
    }
    drop(clients);
}

#[test]
fn connections_are_refused_and_go_to_another_server() {
    let (proxy, accepted) = proxy();
    proxy.set_connects(Connects::Refuse);
    assert_eq!(rest(&TcpStream::connect(proxy.address()).unwrap()), b"");
    proxy.set_connects(Connects::Pass);
    let (address, others) = server();
    proxy.set_target(address);
    let client = TcpStream::connect(proxy.address()).unwrap();
    drop(others.recv().unwrap());
    assert_eq!(rest(&client), b"");
    // No server listens here.
    proxy.set_target((Ipv4Addr::LOCALHOST, 1).into());
    assert_eq!(rest(&TcpStream::connect(proxy.address()).unwrap()), b"");
    assert_eq!(proxy.connections(), 3);
    assert!(accepted.try_recv().is_err());
}

#[test]
fn the_end_of_the_proxy_ends_its_connections() {
    let (proxy, accepted) = proxy();
    let client = TcpStream::connect(proxy.address()).unwrap();
    let server = accepted.recv().unwrap();
    drop(proxy);
    assert_eq!((rest(&client), rest(&server)), (Vec::new(), Vec::new()));
}
