//! A system clock that is set back while the server runs.

use crate::fake::TestServer;

#[test]
fn waits_and_pauses_end_although_the_system_clock_is_set_back() {
    let words = |text: &str| -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    };
    let mut server = TestServer::new(1);
    server.request("waits", &words("BLPOP k 1.5"));
    server.request("c", &words("CLIENT PAUSE 1000 WRITE"));
    server.set_back(600_000);
    server.advance(999);
    assert_eq!(server.request("c", &words("SET k v")).0, b"", "it is paused");
    server.advance(1);
    assert_eq!(server.request("c", &words("SET k v")).0, b"+OK\r\n");
    assert_eq!(server.received("waits"), b"");
    server.advance(501);
    assert_eq!(server.received("waits"), b"*-1\r\n");
    // Set back while one client waits and before another one does.
    server.request("waits", &words("BLPOP l 1"));
    server.advance(1001);
    assert_eq!(server.received("waits"), b"*-1\r\n");
    let (list, _) = server.request("c", &words("CLIENT LIST"));
    let list = String::from_utf8_lossy(&list).into_owned();
    assert!(list.contains("age=2 idle=0"), "{list}");
}
