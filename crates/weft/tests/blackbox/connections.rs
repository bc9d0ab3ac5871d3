//! How clients connect: addresses, Unix sockets, limits, passwords, idle time.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use test_support::{READY, eventually, free_port, output_of_server, printed};

use crate::{Client, Server, Value};

#[test]
fn both_families_are_served() {
    let server = Server::start(&["--bind", "127.0.0.1 ::1"]);
    assert_eq!(server.client().ask("PING").text(), "PONG");
    let mut client = Client::tcp(SocketAddr::from((Ipv6Addr::LOCALHOST, server.port)));
    let info = client.ask("CLIENT INFO").text();
    assert!(info.contains(&format!(" addr={} ", client.local_address())), "{info}");
    assert!(info.contains(&format!(" laddr=[::1]:{} ", server.port)), "{info}");
}

#[test]
fn clients_beyond_one_turn_are_accepted_in_the_next() {
    let server = Server::start(&["--max-new-connections-per-cycle", "1"]);
    let mut clients: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING").text(), "PONG");
    }
    let got = server.client().ask("CONFIG GET max-new-connections-per-cycle");
    assert_eq!(got.items()[1].text(), "1");
}

#[test]
fn names_and_stars_are_addresses() {
    for bind in ["*", "* -::*", "localhost", "-192.0.2.1 127.0.0.1"] {
        let server = Server::start(&["--bind", bind]);
        assert_eq!(server.client().ask("PING").text(), "PONG", "{bind}");
    }
}

#[test]
fn an_address_that_is_missing_must_be_marked_so() {
    let folder = tempfile::tempdir().unwrap();
    for (bind, words) in [
        ("192.0.2.1", "192.0.2.1:"),
        ("127.0.0.1 192.0.2.1", "192.0.2.1:"),
        ("-192.0.2.1", "none of the addresses"),
        ("no.such.host.invalid", "no.such.host.invalid:"),
    ] {
        let port = free_port().to_string();
        let output = output_of_server(folder.path(), &["--port", &port, "--bind", bind]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(1), "{bind}: {text}");
        assert!(text.contains(words) && text.contains(&port), "{bind}: {text}");
    }
}

#[test]
fn a_unix_socket_has_its_permissions_and_goes_with_the_server() {
    let options = ["--unixsocket", "weft.sock", "--unixsocketperm", "700", "--io-threads", "2"];
    let mut server = Server::start(&options);
    server.wait_for_log(&format!("{READY} unix"));
    let path = server.path("weft.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    let mut client = Client::unix(&path);
    assert_eq!(client.ask("PING").text(), "PONG");
    let info = client.ask("CLIENT INFO").text();
    assert!(info.contains(" addr=weft.sock:0 ") && info.contains(" flags=U "), "{info}");
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!path.exists());
}

#[test]
fn too_many_clients_get_an_error() {
    let server = Server::start(&["--maxclients", "10", "--io-threads", "3"]);
    let mut clients: Vec<Client> = (0..10).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING").text(), "PONG");
    }
    for command in ["GET k", "SELECT 0", "SUBSCRIBE c"] {
        let mut client = server.client();
        client.send(command);
        assert_eq!(client.read_to_end(), b"-ERR max number of clients reached\r\n");
    }
    clients.pop();
    eventually("one has left", || {
        clients[0].ask("CLIENT LIST").text().lines().count() == clients.len()
    });
    assert_eq!(server.client().ask("PING").text(), "PONG");
    let text = clients[0].ask("INFO stats").text();
    assert!(text.contains("rejected_connections:3\r\n"), "{text}");
    clients[0].ok("CONFIG SET maxclients 11");
    let (mut ten, mut eleven) = (server.client(), server.client());
    assert_eq!(ten.ask("PING").text() + &eleven.ask("PING").text(), "PONGPONG");
}

/// A client that connects until the server accepts it: a new client is not closed for another.
fn comes_in(server: &Server) -> Client {
    let mut last = None;
    eventually("the client is accepted", || {
        let reply = last.insert(server.client()).ask("PING").text();
        assert!(["PONG", "ERR max number of clients reached"].contains(&&*reply), "{reply}");
        reply == "PONG"
    });
    last.expect("it has a place")
}

/// Beyond the limit, an administrator may still connect, and silent clients make room.
#[test]
fn an_administrator_connects_beyond_maxclients() {
    for threads in ["1", "3"] {
        let server = Server::start(&["--maxclients", "4", "--io-threads", threads]);
        let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
        clients.iter_mut().for_each(|client| assert_eq!(client.ask("PING").text(), "PONG"));
        // An application that connects and sends nothing yet.
        let silent: Vec<Client> = (0..30).map(|_| server.client()).collect();
        let mut admin = comes_in(&server);
        assert!(admin.ask("INFO clients").text().contains("\r\nmaxclients:4\r\n"));
        assert!(admin.ask("CLIENT LIST").text().lines().count() <= 12);
        // Thirty more connections neither replace it nor are all accepted.
        let more: Vec<Client> = (0..30).map(|_| server.client()).collect();
        let other = comes_in(&server);
        assert_eq!(admin.ask("CLIENT GETNAME"), Value::NULL);
        drop((silent, more, other));
        admin.ok("CONFIG SET maxclients 20");
        // Now it is a client like any other.
        admin.ok("SET k v");
        admin.ok("CONFIG SET maxclients 4");
        eventually("the silent ones are gone", || {
            admin.ask("CLIENT LIST").text().lines().count() == 5
        });
        let mut user = server.client();
        assert_eq!(user.ask("GET k").text(), "ERR max number of clients reached");
        user.is_closed();
        assert_eq!(admin.ask("GET k").text(), "v");
        let (id, _) = (clients[0].ask("CLIENT ID").int(), clients[1].ask("CLIENT ID").int());
        assert_eq!(admin.ask(&format!("CLIENT KILL ID {id}")).int(), 1);
    }
}

#[test]
fn idle_clients_are_closed_and_busy_ones_are_not() {
    let server = Server::start(&["--timeout", "1", "--io-threads", "2"]);
    let mut busy = server.client();
    let mut idle = server.client();
    let start = Instant::now();
    assert_eq!(idle.ask("PING").text(), "PONG");
    let mut paused = server.client();
    busy.ok("CLIENT PAUSE 60000 WRITE");
    paused.send("INCR n");
    eventually("the idle client is closed", || busy.ask("CLIENT LIST").text().lines().count() == 2);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    idle.is_closed();
    // A blocked client is not idle.
    busy.ok("CLIENT UNPAUSE");
    assert!(paused.read().int() > 0);
}

#[test]
fn connections_are_kept_alive_by_the_kernel() {
    // In /proc/net/tcp, the sixth field is `timer:when`; 02 is the keepalive timer. Both ends are
    // compared, since a closed connection of another server may still have the same client port.
    let timer_of = |server: &Server, client: &Client| {
        let address = client.local_address();
        let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
        let ends = [format!(":{:04X}", server.port), format!(":{port:04X}")];
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut lines = lines.filter(|fields| fields.len() > 5);
        let line = lines.find(|line| (1..3).all(|end| line[end].ends_with(&ends[end - 1])));
        line.map(|fields| fields[5][..2].to_owned())
    };
    for (seconds, timer) in [("300", "02"), ("0", "00")] {
        let server = Server::start(&["--tcp-keepalive", seconds]);
        let mut client = server.client();
        client.ask("PING");
        eventually("the timer is set", || timer_of(&server, &client).as_deref() == Some(timer));
    }
}

/// The address of this machine in a network, if it has one.
fn own_address() -> Option<IpAddr> {
    // Nothing is sent: connecting a datagram socket only chooses the route.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[test]
fn protected_mode_keeps_other_machines_out() {
    let Some(ip) = own_address() else {
        eprintln!("skipped: this machine is in no network");
        return;
    };
    let bind = format!("127.0.0.1 {ip}");
    let server = Server::start(&["--bind", &bind]);
    let far = SocketAddr::new(ip, server.port);
    let text = String::from_utf8(Client::tcp(far).read_to_end()).unwrap();
    assert!(text.starts_with("-DENIED ") && text.ends_with("\r\n"), "{text:?}");
    assert_eq!(text.lines().count(), 1);
    let mut near = server.client();
    near.ok("CONFIG SET requirepass secret");
    let mut client = Client::tcp(far);
    assert_eq!(client.ask("PING").text(), "NOAUTH Authentication required.");
    client.ok("AUTH secret");
    near.ok("CONFIG SET requirepass secret2");
    near.ask_args(&[b"CONFIG", b"SET", b"requirepass", b""]);
    assert!(Client::tcp(far).read_to_end().starts_with(b"-DENIED"));
    near.ok("CONFIG SET protected-mode no");
    assert_eq!(Client::tcp(far).ask("PING").text(), "PONG");
}

#[test]
fn a_password_is_asked_for() {
    for execute in ["all", "none"] {
        let options = ["--requirepass", "s3cret", "--io-threads", "2"];
        let server = Server::start(&[&options[..], &["--io-threads-execute", execute]].concat());
        let mut client = server.client();
        assert_eq!(client.ask("GET k").text(), "NOAUTH Authentication required.");
        let wrong = client.ask("AUTH nonsense").text();
        assert_eq!(wrong, "WRONGPASS invalid username-password pair or user is disabled.");
        client.ok("AUTH default s3cret");
        client.ok("SET k v");
        let mut other = server.client();
        let hello = other.ask("HELLO 3 AUTH default s3cret");
        assert_eq!(hello.items()[1].text(), "redis");
        assert_eq!(other.ask("GET k").text(), "v");
    }
}

#[test]
fn a_change_that_fails_leaves_no_part_of_it() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut client = server.client();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let threads = client.ask("INFO threads").text().lines().count();
    for _ in 0..2 {
        let error = client.ask(&format!("CONFIG SET io-threads 4 port {port}")).text();
        assert!(error.starts_with("ERR CONFIG SET failed"), "{error}");
        assert_eq!(client.ask("CONFIG GET io-threads").items()[1].text(), "2");
        assert_eq!(client.ask("INFO threads").text().lines().count(), threads);
    }
    assert_eq!(server.client().ask("PING").text(), "PONG");
}

#[test]
fn ports_change_at_run_time() {
    let server = Server::start(&["--io-threads", "2"]);
    let mut client = server.client();
    let port = free_port();
    client.ok(&format!("CONFIG SET port {port}"));
    let mut other = Client::tcp(SocketAddr::new(server.address().ip(), port));
    assert_eq!(other.ask("PING").text(), "PONG");
    assert!(Client::try_tcp(server.address()).is_err());
    // A taken port is refused, and nothing changes.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    let failed = "ERR CONFIG SET failed (possibly related to argument";
    let refusal = "Unable to listen on this port. Check server logs.";
    let error = client.ask(&format!("CONFIG SET port {taken_port}")).text();
    assert_eq!(error, format!("{failed} 'port') - {refusal}"));
    server.wait_for_log(&format!("127.0.0.1:{taken_port}: bind: Address already in use"));
    // No machine has this address, which is for documentation.
    let error = client.ask("CONFIG SET bind 192.0.2.1").text();
    assert_eq!(error, format!("{failed} 'bind') - Failed to bind to specified addresses."));
    server.wait_for_log(&format!("192.0.2.1:{port}: bind: "));
    assert_eq!(client.ask("CONFIG GET port").items()[1].text(), port.to_string());
    let mut other = Client::tcp(SocketAddr::new(server.address().ip(), port));
    assert_eq!(other.ask("PING").text(), "PONG");
}
