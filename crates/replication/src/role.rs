//! How ROLE and INFO show replication (<https://redis.io/docs/latest/commands/role/>).
//!
//! ```text
//! master, offset, [ip, port, acknowledged offset] of each online replica
//! slave, host, port, state of the link, applied offset or -1
//! ```

use resp::Reply;

use crate::replica_link::{ReplicaLink, ReplicaState};

/// How far a replica's link to its primary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrimaryLinkState {
    /// The replica waits for the next attempt to connect.
    Connect,
    /// The replica connects.
    Connecting,
    /// The replica sends and reads the lines before the synchronization.
    Handshake,
    /// The replica receives or loads an RDB file.
    Sync,
    /// The replica receives the stream.
    Connected,
}

impl PrimaryLinkState {
    /// The name in ROLE.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Connecting => "connecting",
            Self::Handshake => "handshake",
            Self::Sync => "sync",
            Self::Connected => "connected",
        }
    }

    /// `master_link_status` in INFO.
    pub fn status(self) -> &'static str {
        match self {
            Self::Connected => "up",
            _ => "down",
        }
    }
}

/// Replies to ROLE at a primary.
pub fn reply_primary<'a>(
    reply: &mut Reply<'_>,
    offset: u64,
    links: impl IntoIterator<Item = &'a ReplicaLink>,
) {
    reply.array(3);
    reply.bulk(b"master");
    reply.unsigned(offset);
    let deferred = reply.array_deferred();
    let online = links.into_iter().filter(|link| link.state() == ReplicaState::Online);
    let mut len = 0;
    for link in online {
        reply.array(3);
        reply.bulk(link.ip());
        reply.bulk_int(link.options().listening_port);
        reply.bulk(link.applied().to_string().as_bytes());
        len += 1;
    }
    reply.finish(deferred, len);
}

/// Replies to ROLE at a replica, which has `applied` everything up to an offset if its link is up.
pub fn reply_replica(
    reply: &mut Reply<'_>,
    host: &[u8],
    port: u16,
    state: PrimaryLinkState,
    applied: u64,
) {
    reply.array(5);
    reply.bulk(b"slave");
    reply.bulk(host);
    reply.int(i64::from(port));
    reply.bulk(state.name().as_bytes());
    match state {
        PrimaryLinkState::Connected => reply.unsigned(applied),
        _ => reply.int(-1),
    }
}

/// The value of `slaveN` in INFO.
pub fn info_value(link: &ReplicaLink, now_ms: u64) -> String {
    format!(
        "ip={},port={},state={},offset={},lag={},type={}",
        String::from_utf8_lossy(link.ip()),
        link.options().listening_port,
        link.state().name(),
        link.applied(),
        link.lag_seconds(now_ms),
        link.type_name()
    )
}

#[cfg(test)]
mod tests {
    use resp::Out;

    use super::*;
    use crate::replconf::ReplicaOptions;

    fn written(write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Out::default();
        write(&mut Reply::new(&mut out, false));
        String::from_utf8_lossy(&out.bytes).replace("\r\n", " ")
    }

    fn links() -> [ReplicaLink; 2] {
        let options = ReplicaOptions { listening_port: 6380, ..ReplicaOptions::default() };
        let mut online = ReplicaLink::partial(options.clone(), b"10.0.0.1".to_vec(), 0);
        online.handle_ack(159, None, 2_000);
        [ReplicaLink::full(options, b"10.0.0.2".to_vec(), false, 0), online]
    }

    #[test]
    fn role_lists_online_replicas() {
        let role = written(|reply| reply_primary(reply, 160, &links()));
        let wanted = "*3 $6 master :160 *1 *3 $8 10.0.0.1 $4 6380 $3 159 ";
        assert_eq!(role, wanted);
        assert_eq!(written(|reply| reply_primary(reply, 0, &[])), "*3 $6 master :0 *0 ");
    }

    #[test]
    fn a_replica_shows_its_offset_while_the_link_is_up() {
        let role = |state| written(|reply| reply_replica(reply, b"host", 6379, state, 7));
        let connected = PrimaryLinkState::Connected;
        assert_eq!(role(connected), "*5 $5 slave $4 host :6379 $9 connected :7 ");
        assert_eq!(connected.status(), "up");
        for (state, name) in [
            (PrimaryLinkState::Connect, "$7 connect"),
            (PrimaryLinkState::Connecting, "$10 connecting"),
            (PrimaryLinkState::Handshake, "$9 handshake"),
            (PrimaryLinkState::Sync, "$4 sync"),
        ] {
            assert_eq!(role(state), format!("*5 $5 slave $4 host :6379 {name} :-1 "));
            assert_eq!(state.status(), "down");
        }
    }

    #[test]
    fn info_shows_a_replica_in_the_form_of_the_peers() {
        let [waiting, online] = links();
        let waiting = info_value(&waiting, 9_000);
        assert_eq!(waiting, "ip=10.0.0.2,port=6380,state=wait_bgsave,offset=0,lag=0,type=replica");
        let online = info_value(&online, 5_500);
        assert_eq!(online, "ip=10.0.0.1,port=6380,state=online,offset=159,lag=3,type=replica");
    }
}
