//! A replica's link to its primary.

use replication::failover::FailoverState;
use replication::handshake::{Handshake, HandshakeOptions, PrimaryCredentials};
use replication::handshake_outcome::{HandshakeFailure, HandshakeOutcome};
use replication::replid::ReplicationId;
use replication::retry::LinkFailure;
use replication::stream::{StreamParser, StreamStep, UnitKind};
use replication::transfer::BulkReceiver;
use replication::wire::push_ack;

use super::network::{ConnectionId, Read, Side};
use super::receiver::{FileReceiver, SpoolingReceiver};
use super::server::{Server, Shared};
use super::world::{Plant, TIMEOUT_MS};

pub struct Upstream {
    pub connection: ConnectionId,
    stage: Stage,
    heard_ms: u64,
    acked_ms: u64,
}

enum Stage {
    Handshake(Box<Handshake>),
    File { receiver: FileReceiver, id: ReplicationId, offset: u64 },
    Stream { parser: Box<StreamParser>, buffer: Vec<u8>, parts: Vec<u8>, values: Vec<u8> },
}

impl Upstream {
    pub fn is_streaming(&self) -> bool {
        matches!(self.stage, Stage::Stream { .. })
    }
}

/// A stream from an offset; transactions of more than 200 bytes come in parts.
fn stream_from(offset: u64) -> Stage {
    let parser = Box::new(StreamParser::new(offset, 1 << 20, 200));
    Stage::Stream { parser, buffer: Vec::new(), parts: Vec::new(), values: Vec::new() }
}

impl Server {
    /// Reads from the primary, and does what is due.
    pub fn drive_upstream(&mut self, is_down: &[bool], shared: &mut Shared) {
        let Some(primary) = self.primary else { return };
        if self.upstream.is_none() && shared.net.now_ms >= self.retries.due_ms() {
            if is_down[primary] {
                self.lose(None, LinkFailure::Connect("refused".to_owned()), shared);
            } else {
                self.upstream = Some(self.connect(primary, shared));
            }
        }
        while let Some(mut upstream) = self.upstream.take() {
            let read = shared.net.read(upstream.connection, Side::Client, &mut shared.random);
            let result = match read {
                Read::Bytes(bytes) => self.receive(&mut upstream, &bytes, shared),
                Read::End => Err(LinkFailure::Lost),
                Read::Nothing => {
                    let result = self.check_time(&mut upstream, shared);
                    match result {
                        Ok(()) => self.upstream = Some(upstream),
                        Err(failure) => self.lose(Some(upstream), failure, shared),
                    }
                    return;
                }
            };
            match result {
                Ok(()) => self.upstream = Some(upstream),
                Err(failure) => self.lose(Some(upstream), failure, shared),
            }
        }
    }

    fn connect(&mut self, primary: usize, shared: &mut Shared) -> Upstream {
        let history = &self.data.history;
        let resume = (history.id(), history.next_offset());
        let user = Some(b"replica".to_vec());
        let options = HandshakeOptions {
            credentials: Some(PrimaryCredentials { user, password: b"secret".to_vec() }),
            listening_port: self.index as u16,
            announce_ip: Some(format!("server-{}", self.index).into_bytes()),
            version: (self.index == 2).then_some("9.1.2"),
            resume: (!self.must_sync_fully).then_some(resume),
            failover: self.failover.state() == FailoverState::InProgress,
        };
        let now_ms = shared.net.now_ms;
        let mut handshake = Box::new(Handshake::new(options, now_ms));
        let connection = shared.net.connect(self.index, primary);
        let ping = handshake.poll_transmit().unwrap();
        shared.net.send(connection, Side::Client, &ping, &mut shared.random);
        Upstream {
            connection,
            stage: Stage::Handshake(handshake),
            heard_ms: now_ms,
            acked_ms: now_ms,
        }
    }

    /// The link ended. The replica forgets the bytes of an incomplete unit.
    fn lose(&mut self, upstream: Option<Upstream>, failure: LinkFailure, shared: &mut Shared) {
        if let Some(Upstream { connection, stage, .. }) = upstream {
            shared.net.cut(connection, &mut shared.random);
            match stage {
                Stage::Stream { buffer, parts, .. } if !buffer.is_empty() || !parts.is_empty() => {
                    shared.count("unit cut off");
                    if shared.has_plant(Plant::HalfUnit) {
                        self.append(&[parts, buffer].concat(), shared);
                    }
                }
                Stage::File { .. } => shared.count("file cut off"),
                _ => {}
            }
        }
        self.retries.handle_failure(failure, shared.net.now_ms);
    }

    fn check_time(
        &mut self,
        upstream: &mut Upstream,
        shared: &mut Shared,
    ) -> Result<(), LinkFailure> {
        let now_ms = shared.net.now_ms;
        if let Stage::Handshake(handshake) = &mut upstream.stage {
            handshake.handle_timeout(now_ms, TIMEOUT_MS);
            return match handshake.outcome() {
                Some(HandshakeOutcome::Retry(failure)) => {
                    Err(LinkFailure::Handshake(failure.clone()))
                }
                _ => Ok(()),
            };
        }
        // A server sends +FULLRESYNC and the file in one step.
        let has_all = shared.net.is_drained(upstream.connection, Side::Client);
        if matches!(upstream.stage, Stage::File { .. }) && has_all {
            shared.oracle.violate("a file has arrived, and its end was not found".to_owned());
        }
        if now_ms - upstream.heard_ms > TIMEOUT_MS {
            return Err(LinkFailure::Timeout);
        }
        if upstream.is_streaming() && now_ms - upstream.acked_ms >= 1_000 {
            upstream.acked_ms = now_ms;
            self.acknowledge(upstream.connection, self.data.history.offset(), shared);
        }
        Ok(())
    }

    fn acknowledge(&self, connection: ConnectionId, offset: u64, shared: &mut Shared) {
        let mut ack = Vec::new();
        push_ack(&mut ack, offset, None);
        shared.net.send(connection, Side::Client, &ack, &mut shared.random);
    }

    fn receive(
        &mut self,
        upstream: &mut Upstream,
        bytes: &[u8],
        shared: &mut Shared,
    ) -> Result<(), LinkFailure> {
        upstream.heard_ms = shared.net.now_ms;
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match &mut upstream.stage {
                Stage::Handshake(_) => self.handshake(upstream, rest, shared)?,
                Stage::File { receiver, id, offset } => {
                    let received = receiver.handle_bytes(rest);
                    let (id, offset) = (*id, *offset);
                    let (taken, file) = received.map_err(LinkFailure::Transfer)?;
                    if let Some(file) = file {
                        self.load(&file, id, offset, shared);
                        upstream.stage = stream_from(offset);
                        self.acknowledge(upstream.connection, offset, shared);
                    }
                    taken
                }
                Stage::Stream { buffer, .. } => {
                    buffer.extend_from_slice(rest);
                    self.read_stream(upstream, shared)?;
                    rest.len()
                }
            };
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn handshake(
        &mut self,
        upstream: &mut Upstream,
        bytes: &[u8],
        shared: &mut Shared,
    ) -> Result<usize, LinkFailure> {
        let Stage::Handshake(handshake) = &mut upstream.stage else { return Ok(0) };
        let taken = handshake.handle_bytes(bytes, shared.net.now_ms);
        if let Some(bytes) = handshake.poll_transmit() {
            shared.net.send(upstream.connection, Side::Client, &bytes, &mut shared.random);
        }
        let Some(outcome) = handshake.outcome().cloned() else { return Ok(taken) };
        let is_accepted = match &outcome {
            HandshakeOutcome::Full { .. } | HandshakeOutcome::Continue { .. } => Some(true),
            HandshakeOutcome::Retry(
                HandshakeFailure::NotNow(_) | HandshakeFailure::FailoverRefused(_),
            ) => Some(false),
            _ => None,
        };
        if let Some(is_accepted) = is_accepted {
            let step = self.failover.handle_psync_answer(is_accepted);
            self.finish_failover(step, shared);
        }
        match outcome {
            HandshakeOutcome::Full { id, offset } => {
                shared.count("full sync");
                let receiver = self.file_receiver(shared);
                upstream.stage = Stage::File { receiver, id, offset };
            }
            HandshakeOutcome::Continue { id } => {
                shared.count("partial sync");
                if let Some(id) = id
                    && self.data.history.continue_as(id)
                {
                    shared.count("partial sync with a new id");
                    self.changed_history(shared);
                }
                self.retries.handle_sync(shared.net.now_ms);
                upstream.stage = stream_from(self.data.history.offset());
            }
            HandshakeOutcome::FullWithoutOffset => {
                shared.oracle.violate("SYNC between servers that know PSYNC".to_owned());
            }
            HandshakeOutcome::Retry(failure) => return Err(LinkFailure::Handshake(failure)),
        }
        Ok(taken)
    }

    fn file_receiver(&self, shared: &Shared) -> FileReceiver {
        let forgets_reads = shared.has_plant(Plant::MarkSplit);
        match self.index % 2 {
            0 => FileReceiver::Whole(Box::new(BulkReceiver::new(1 << 30)), Vec::new()),
            _ => FileReceiver::Spooling(SpoolingReceiver::new(forgets_reads)),
        }
    }

    fn load(&mut self, file: &[u8], id: ReplicationId, offset: u64, shared: &mut Shared) {
        let (digest, values) = file.split_at(8);
        self.data.digest = u64::from_le_bytes(digest.try_into().unwrap());
        self.data.values = values.to_vec();
        self.data.backlog.clear();
        self.data.history.replace(id, offset);
        self.must_sync_fully = false;
        self.retries.handle_sync(shared.net.now_ms);
        self.changed_history(shared);
    }

    fn read_stream(
        &mut self,
        upstream: &mut Upstream,
        shared: &mut Shared,
    ) -> Result<(), LinkFailure> {
        let Stage::Stream { parser, buffer, parts, values } = &mut upstream.stage else {
            return Ok(());
        };
        loop {
            let step = parser.next_step(buffer).map_err(|error| {
                shared.oracle.violate(format!("server {}: {error}", self.index));
                self.must_sync_fully = true;
                LinkFailure::Stream(error)
            })?;
            let unit = match step {
                StreamStep::Unit(unit) => unit,
                StreamStep::KeepAlive(bytes) => {
                    buffer.drain(..bytes);
                    continue;
                }
                StreamStep::Incomplete => return Ok(()),
            };
            let (kind, len, end) = (unit.kind, unit.bytes.len(), unit.end);
            let sets = unit.commands().filter(|args| args.name() == b"SET");
            values.extend(sets.flat_map(|args| args.text(2).to_vec()));
            parts.extend_from_slice(unit.bytes);
            buffer.drain(..len);
            if matches!(kind, UnitKind::Part { is_last: false, .. }) {
                shared.count("part of a unit");
                continue;
            }
            let before = self.data.history.offset();
            self.append(&std::mem::take(parts), shared);
            self.data.values.append(values);
            if (self.data.history.offset(), parser.offset()) != (end, end) {
                shared.oracle.violate(format!("server {} miscounts its offset", self.index));
            }
            if kind == UnitKind::GetAck {
                self.acknowledge(upstream.connection, before, shared);
            }
        }
    }
}
