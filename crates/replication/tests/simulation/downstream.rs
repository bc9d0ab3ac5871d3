//! A server's connections from replicas.

use replication::acks::count_applied;
use replication::psync::{
    FullSyncReason, ReplicationRole, SyncAnswer, SyncConditions, SyncRequest, answer_sync,
    continue_line, full_resync_line,
};
use replication::replconf::{ReplconfAnswer, ReplicaOptions};
use replication::replica_link::{ReplicaLink, ReplicaState};
use replication::replid::ReplicationId;
use replication::transfer::{EofMark, length_header};
use replication::wire::PING;
use resp::{Args, CopiedArgs, Limits, Parsed, Parser};

use super::network::{ConnectionId, Read, Side};
use super::server::{Server, Shared};
use super::world::{Plant, TIMEOUT_MS};

const PING_PERIOD_MS: u64 = 3_000;

#[derive(Default)]
pub struct Downstream {
    buffer: Vec<u8>,
    options: ReplicaOptions,
    pub link: Option<ReplicaLink>,
    /// The next byte to send.
    position: u64,
    /// When its snapshot is cut.
    cut_ms: u64,
}

impl Server {
    /// Answers replicas, and sends them files and the stream.
    pub fn drive_downstreams(&mut self, shared: &mut Shared) {
        self.ping(shared);
        for connection in shared.net.accept(self.index) {
            self.downstreams.insert(connection, Downstream::default());
        }
        for connection in self.downstreams.keys().copied().collect::<Vec<_>>() {
            // A change of the history closes all connections in the map.
            let Some(mut replica) = self.downstreams.remove(&connection) else { continue };
            if self.drive_one(connection, &mut replica, shared) {
                self.downstreams.insert(connection, replica);
                continue;
            }
            shared.net.cut(connection, &mut shared.random);
            if shared.has_plant(Plant::AckCountedTwice) {
                self.ghosts.extend(replica.link);
            }
        }
        let extra = self.data.backlog.len().saturating_sub(self.backlog_bytes_max);
        self.data.backlog.drain(..extra);
        self.check_acks(shared);
    }

    fn ping(&mut self, shared: &mut Shared) {
        let now_ms = shared.net.now_ms;
        let is_due = now_ms - self.pinged_ms > PING_PERIOD_MS && self.has_backlog;
        if is_due && self.primary.is_none() && !self.failover.pauses_writes() {
            self.pinged_ms = now_ms;
            self.append(PING, shared);
        }
    }

    /// Checks what WAIT would return for a random write of the current history.
    fn check_acks(&mut self, shared: &mut Shared) {
        let history = self.data.history;
        let back = shared.random.below(300);
        let offset = history.offset().saturating_sub(back).max(1);
        let count = count_applied(self.links(), offset);
        shared.oracle.acknowledged(self.index, history.id(), offset, count);
    }

    /// Returns whether the connection stays.
    fn drive_one(
        &mut self,
        connection: ConnectionId,
        replica: &mut Downstream,
        shared: &mut Shared,
    ) -> bool {
        loop {
            match shared.net.read(connection, Side::Server, &mut shared.random) {
                Read::Bytes(bytes) => replica.buffer.extend(bytes),
                Read::Nothing => break,
                Read::End => return false,
            }
            while let Some(request) = next_request(&mut replica.buffer) {
                let reply = self.answer(replica, &request.args(), shared);
                shared.net.send(connection, Side::Server, &reply, &mut shared.random);
            }
        }
        let now_ms = shared.net.now_ms;
        let Some(link) = &mut replica.link else { return true };
        if link.timeout(now_ms, TIMEOUT_MS).is_some() {
            shared.oracle.violate("a replica with an open link sends no ACK".to_owned());
            return false;
        }
        if link.poll_keep_alive(now_ms) {
            shared.net.send(connection, Side::Server, b"\n", &mut shared.random);
        }
        if link.state() == ReplicaState::WaitBgsave && now_ms >= replica.cut_ms {
            self.send_file(connection, replica, shared);
        }
        self.feed(connection, replica, shared)
    }

    fn answer(
        &mut self,
        replica: &mut Downstream,
        args: &Args<'_>,
        shared: &mut Shared,
    ) -> Vec<u8> {
        match args.name().to_ascii_uppercase().as_slice() {
            b"PING" => b"+PONG\r\n".to_vec(),
            b"AUTH" => b"+OK\r\n".to_vec(),
            b"PSYNC" => self.answer_psync(replica, SyncRequest::psync(args), shared),
            b"REPLCONF" => {
                let now_ms = shared.net.now_ms;
                let answer = replica.options.replconf(args, replica.link.is_some());
                match (answer, &mut replica.link) {
                    (Ok(ReplconfAnswer::Ok), _) => b"+OK\r\n".to_vec(),
                    (Ok(ReplconfAnswer::Ack { applied, durable }), Some(link)) => {
                        link.handle_ack(applied, durable, now_ms);
                        Vec::new()
                    }
                    (Ok(_), _) => Vec::new(),
                    (Err(error), _) => [b"-", &error.text()[..], b"\r\n"].concat(),
                }
            }
            _ => b"-ERR unknown command\r\n".to_vec(),
        }
    }

    fn answer_psync(
        &mut self,
        replica: &mut Downstream,
        request: SyncRequest<'_>,
        shared: &mut Shared,
    ) -> Vec<u8> {
        let role = match self.primary {
            None => ReplicationRole::Primary,
            Some(_) => ReplicationRole::Replica { link_up: self.link_up() },
        };
        let conditions = SyncConditions {
            role,
            failing_over: self.failover.pauses_writes(),
            is_replica: replica.link.is_some(),
            pending_output: false,
            filtered_without_eof: false,
            backlog: self.backlog_range(),
        };
        let now_ms = shared.net.now_ms;
        let options = replica.options.clone();
        match answer_sync(&self.data.history, request, &conditions) {
            Ok(SyncAnswer::Ignored) => Vec::new(),
            Ok(SyncAnswer::Promote) => {
                self.promote(shared);
                self.answer_psync(replica, request.after_promotion(), shared)
            }
            Ok(SyncAnswer::Partial { from }) => {
                let psync2 = options.psync2;
                replica.link = Some(ReplicaLink::partial(options, Vec::new(), now_ms));
                replica.position = from;
                continue_line(self.data.history.id(), psync2)
            }
            Ok(SyncAnswer::Full(reason)) => {
                shared.count(match reason {
                    FullSyncReason::Asked => "full sync that was asked for",
                    FullSyncReason::UnknownId => "unknown id",
                    FullSyncReason::SecondIdEnded { .. } => "ended second id",
                    FullSyncReason::NoBacklog { .. } => "no backlog",
                });
                self.check_full(request, reason, shared);
                self.create_backlog(shared);
                replica.link = Some(ReplicaLink::full(options, Vec::new(), false, now_ms));
                replica.cut_ms = now_ms + shared.random.below(2_500);
                Vec::new()
            }
            Err(refusal) => {
                shared.count("refused PSYNC");
                format!("-{refusal}\r\n").into_bytes()
            }
        }
    }

    /// Checks that a replica with a part of the history is not sent all data.
    fn check_full(&self, request: SyncRequest<'_>, reason: FullSyncReason, shared: &mut Shared) {
        let SyncRequest::Psync { id, offset, .. } = request else { return };
        let Some(id) = ReplicationId::parse(id) else { return };
        let history = &self.data.history;
        let next: u64 = std::str::from_utf8(offset).unwrap().parse().unwrap();
        let is_second = history.second().is_some_and(|second| second.id == id);
        // A server that continued under another id cannot know how long the old one stayed equal.
        let is_known = id == history.id() || is_second && next <= self.common_to + 1;
        let has_bytes = self.backlog_range().is_some_and(|range| range.continues_at(next));
        let is_common = shared.oracle.is_common([id, history.id()], next - 1);
        if is_known && has_bytes && is_common {
            shared.oracle.violate(format!("a needless full sync from {next}: {reason:?}"));
        }
    }

    /// Cuts a snapshot and sends it.
    fn send_file(
        &mut self,
        connection: ConnectionId,
        replica: &mut Downstream,
        shared: &mut Shared,
    ) {
        let now_ms = shared.net.now_ms;
        let Some(link) = &mut replica.link else { return };
        let history = &self.data.history;
        let file = [&self.data.digest.to_le_bytes()[..], &self.data.values].concat();
        let has_mark = link.options().eof && shared.chance(2);
        let mark = EofMark::from_random(shared.random_bytes());
        let (header, end) = match has_mark {
            true => (mark.header(), mark.as_bytes()),
            false => (length_header(file.len() as u64), &b""[..]),
        };
        let line = full_resync_line(history.id(), history.offset());
        for bytes in [&line[..], &[&header[..], &file].concat(), end] {
            shared.net.send(connection, Side::Server, bytes, &mut shared.random);
        }
        link.begin_bulk(now_ms);
        link.end_bulk(has_mark, now_ms);
        replica.position = history.next_offset();
    }

    /// Sends the rest of the stream. Returns whether the backlog still has it.
    fn feed(
        &mut self,
        connection: ConnectionId,
        replica: &mut Downstream,
        shared: &mut Shared,
    ) -> bool {
        let Some(link) = &replica.link else { return true };
        let is_early =
            link.state() == ReplicaState::Online && shared.has_plant(Plant::StreamBeforeAck);
        if !link.may_send_stream() && !is_early {
            return true;
        }
        let Some(from) = replica.position.checked_sub(self.data.first_offset()) else {
            shared.count("backlog too short");
            return false;
        };
        let bytes = self.data.backlog.get(from as usize..).unwrap_or_default();
        if !bytes.is_empty() {
            shared.net.send(connection, Side::Server, bytes, &mut shared.random);
            replica.position = self.data.history.next_offset();
        }
        true
    }
}

/// Takes a request from the front of a buffer.
fn next_request(buffer: &mut Vec<u8>) -> Option<CopiedArgs> {
    let limits = Limits { bulk_bytes_max: 1 << 20, authenticated: true };
    let (mut spans, mut own) = (Vec::new(), Vec::new());
    let parsed = Parser::new(0).advance(buffer, limits, &mut spans, &mut own);
    let Ok(Parsed::Request(end)) = parsed else { return None };
    let request = Args::copied(&Args::new(buffer, &spans, &own));
    buffer.drain(..end);
    Some(request)
}
