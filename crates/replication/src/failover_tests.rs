//! Tests of FAILOVER's options, errors and states.

use resp::CopiedArgs;

use super::*;
use crate::replconf::ReplicaOptions;

fn parse(line: &str) -> Result<FailoverCommand, FailoverError> {
    let words = std::iter::once("FAILOVER").chain(line.split_whitespace());
    let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
    FailoverCommand::parse(&CopiedArgs::of(words.into_iter()).args())
}

fn options(line: &str) -> FailoverOptions {
    match parse(line) {
        Ok(FailoverCommand::Start(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn replica(port: i64, applied: u64) -> ReplicaLink {
    let options = ReplicaOptions { listening_port: port, ..ReplicaOptions::default() };
    let mut link = ReplicaLink::partial(options, b"host".to_vec(), 0);
    link.handle_ack(applied, None, 0);
    link
}

fn switch(port: u16, is_forced: bool) -> Option<FailoverStep> {
    Some(FailoverStep::Switch { host: b"host".to_vec(), port, is_forced })
}

fn aborted(reason: &'static str, was_switching: bool) -> FailoverStep {
    FailoverStep::Aborted { reason, was_switching }
}

#[test]
fn options_come_in_any_order_and_once() {
    let target = Some((b"host".to_vec(), 6380));
    let all = FailoverOptions { target, force: true, timeout_ms: Some(5) };
    assert_eq!(options("TO host 6380 FORCE TIMEOUT 5"), all);
    assert_eq!(options("timeout 5 force to host 6380"), all);
    assert_eq!(options(""), FailoverOptions::default());
    assert_eq!(parse("abort"), Ok(FailoverCommand::Abort));
    for (line, error) in [
        ("ABORT FORCE", FailoverError::Syntax),
        ("FORCE FORCE", FailoverError::Syntax),
        ("TO host", FailoverError::Syntax),
        ("TIMEOUT", FailoverError::Syntax),
        ("TIMEOUT 1 TIMEOUT 1", FailoverError::Syntax),
        ("TO a 1 TO b 2", FailoverError::Syntax),
        ("TO host x", FailoverError::NotInteger),
        ("TIMEOUT x", FailoverError::NotInteger),
        ("TIMEOUT 0", FailoverError::Timeout),
        ("TIMEOUT -1", FailoverError::Timeout),
    ] {
        assert_eq!(parse(line), Err(error), "{line}");
    }
}

#[test]
fn a_failover_that_cannot_begin_is_refused() {
    let loading = || {
        let options = ReplicaOptions { listening_port: 2, ..ReplicaOptions::default() };
        ReplicaLink::full(options, b"host".to_vec(), false, 0)
    };
    for (line, is_replica, links, error) in [
        ("", true, vec![], FailoverError::IsReplica),
        ("FORCE", false, vec![], FailoverError::NoReplicas),
        ("FORCE", false, vec![loading()], FailoverError::ForceIncomplete),
        ("FORCE TIMEOUT 1", false, vec![loading()], FailoverError::ForceIncomplete),
        ("FORCE TO host 2", false, vec![loading()], FailoverError::ForceIncomplete),
        ("TO host 3", false, vec![loading()], FailoverError::NotAReplica),
        ("TO host 2", false, vec![loading()], FailoverError::NotOnline),
        ("TO host 0", false, vec![replica(0, 0)], FailoverError::NotAReplica),
        ("TO host 70000", false, vec![replica(70_000, 0)], FailoverError::NotAReplica),
    ] {
        let mut failover = Failover::default();
        assert_eq!(failover.start(options(line), is_replica, &links, 0), Err(error), "{line}");
        assert_eq!(failover.state().name(), "no-failover");
        assert_eq!(failover.abort(), Err(FailoverError::NotInProgress));
    }
    let text = FailoverError::NotAReplica.to_string();
    assert_eq!(text, "ERR FAILOVER target HOST and PORT is not a replica.");
}

#[test]
fn the_role_goes_to_a_replica_that_has_every_byte() {
    let links = [replica(1, 99), replica(0, 100), replica(2, 100)];
    let mut failover = Failover::default();
    failover.start(options(""), false, &links, 0).unwrap();
    assert_eq!(failover.state().name(), "waiting-for-sync");
    assert!(failover.pauses_writes());
    let again = failover.start(options(""), false, &links, 0);
    assert_eq!(again, Err(FailoverError::InProgress));
    assert_eq!(failover.poll(&links, 101, u64::MAX), None, "it waits without a timeout");
    assert_eq!(failover.poll(&links, 100, 0), switch(2, false));
    assert_eq!(failover.state().name(), "failover-in-progress");
    assert_eq!(failover.poll(&links, 100, 0), None);
    assert_eq!(failover.handle_psync_answer(true), Some(FailoverStep::Done));
    assert!(!failover.pauses_writes());
    // A replica that loads a file does not count, whatever it acknowledged before.
    let mut loading = ReplicaLink::full(links[2].options().clone(), b"host".to_vec(), false, 0);
    loading.handle_ack(100, None, 0);
    failover.start(options(""), false, [&loading], 0).unwrap();
    assert_eq!(failover.poll([&loading], 100, 0), None);
    failover.abort().unwrap();
    // With TO, only that one counts.
    failover.start(options("TO host 1"), false, &links, 0).unwrap();
    assert_eq!(failover.poll(&links, 100, 0), None);
    assert_eq!(failover.poll(&links, 98, 0), None, "no replica can be ahead");
    assert_eq!(failover.poll(&links, 99, 0), switch(1, false));
}

#[test]
fn a_timeout_aborts_or_forces() {
    let links = [replica(1, 99)];
    let mut failover = Failover::default();
    failover.start(options("TIMEOUT 50"), false, &links, 1_000).unwrap();
    assert_eq!(failover.poll(&links, 100, 1_049), None);
    let never = aborted("Replica never caught up before timeout", false);
    assert_eq!(failover.poll(&links, 100, 1_050), Some(never));
    assert_eq!(failover.state(), FailoverState::NoFailover);
    failover.start(options("TO host 1 FORCE TIMEOUT 50"), false, &links, 1_000).unwrap();
    assert_eq!(failover.poll(&links, 100, 1_050), switch(1, true));
}

#[test]
fn a_rejected_failover_makes_a_primary_again() {
    let links = [replica(1, 100)];
    let mut failover = Failover::default();
    assert_eq!(failover.handle_psync_answer(false), None);
    let mut begin = || {
        failover.start(options(""), false, &links, 0).unwrap();
        failover.poll(&links, 100, 0);
        std::mem::take(&mut failover)
    };
    let rejected = aborted("Failover target rejected psync request", true);
    assert_eq!(begin().handle_psync_answer(false), Some(rejected));
    assert_eq!(begin().abort(), Ok(aborted("Failover manually aborted", true)));
    failover.start(options(""), false, &links, 0).unwrap();
    assert_eq!(failover.abort(), Ok(aborted("Failover manually aborted", false)));
}
