//! Tests of a primary's view of one replica.

use super::*;

fn waiting(options: ReplicaOptions) -> ReplicaLink {
    ReplicaLink::full(options, b"10.0.0.1".to_vec(), false, 1_000)
}

fn online(has_mark: bool, by_sync: bool) -> ReplicaLink {
    let options = ReplicaOptions::default();
    let mut link = ReplicaLink::full(options, b"10.0.0.1".to_vec(), by_sync, 1_000);
    link.begin_bulk(1_000);
    link.end_bulk(has_mark, 2_000);
    link
}

#[test]
fn nothing_follows_a_mark_before_the_first_ack() {
    let mut link = waiting(ReplicaOptions::default());
    assert_eq!((link.state().name(), link.may_send_stream()), ("wait_bgsave", false));
    link.begin_bulk(1_000);
    assert_eq!((link.state().name(), link.may_send_stream()), ("send_bulk", false));
    // An ACK of an earlier connection's offset during the transfer begins nothing.
    assert!(!link.handle_ack(5, None, 1_000));
    link.end_bulk(true, 1_000);
    assert_eq!((link.state().name(), link.may_send_stream()), ("online", false));
    assert!(link.handle_ack(5, None, 1_000));
    assert!(link.may_send_stream());
    assert!(!link.handle_ack(6, None, 1_000));
}

#[test]
fn the_stream_follows_a_file_of_known_length_and_a_partial_synchronization_at_once() {
    assert!(online(false, false).may_send_stream());
    let link = ReplicaLink::partial(ReplicaOptions::default(), Vec::new(), 0);
    assert_eq!((link.state(), link.may_send_stream()), (ReplicaState::Online, true));
}

#[test]
fn a_client_that_wants_only_the_file_gets_no_stream() {
    let mut link = waiting(ReplicaOptions { rdb_only: true, ..ReplicaOptions::default() });
    link.begin_bulk(0);
    link.end_bulk(true, 0);
    assert!(!link.handle_ack(0, None, 0));
    assert_eq!((link.state(), link.may_send_stream()), (ReplicaState::RdbTransmitted, false));
}

#[test]
fn acknowledged_offsets_only_grow() {
    let mut link = online(false, false);
    for (applied, durable, wanted) in
        [(10, None, (10, 0)), (8, Some(7), (10, 7)), (12, Some(3), (12, 7)), (0, None, (12, 7))]
    {
        link.handle_ack(applied, durable, 0);
        assert_eq!((link.applied(), link.durable()), wanted);
    }
}

#[test]
fn lag_is_the_time_since_the_last_sign_of_life() {
    let mut link = waiting(ReplicaOptions::default());
    assert_eq!(link.lag_seconds(60_000), 0);
    link.begin_bulk(1_000);
    link.end_bulk(true, 2_000);
    assert_eq!(link.lag_seconds(4_999), 2);
    link.handle_ack(1, None, 5_000);
    assert_eq!(link.lag_seconds(5_999), 0);
    link.handle_newline(9_000);
    assert_eq!(link.lag_seconds(8_000), 0, "a clock that is behind is no lag");
}

#[test]
fn a_waiting_replica_gets_a_newline_each_second() {
    let mut link = waiting(ReplicaOptions::default());
    let due: Vec<u64> =
        (1_000..4_500).step_by(100).filter(|now| link.poll_keep_alive(*now)).collect();
    assert_eq!(due, [2_000, 3_000, 4_000]);
    link.begin_bulk(4_500);
    assert!(!link.poll_keep_alive(9_000));
}

#[test]
fn silent_replicas_time_out() {
    const TIMEOUT_MS: u64 = 60_000;
    let timeout = |link: &ReplicaLink, now_ms| link.timeout(now_ms, TIMEOUT_MS);
    let mut link = waiting(ReplicaOptions::default());
    assert_eq!(timeout(&link, 1_000_000), None, "it waits for this server");
    link.begin_bulk(1_000_000);
    link.handle_bulk_progress(1_005_000);
    assert_eq!(timeout(&link, 1_065_000), None);
    assert_eq!(timeout(&link, 1_065_001), Some(ReplicaTimeout::FullSync));
    let link = online(true, false);
    assert_eq!(timeout(&link, 62_000), None);
    assert_eq!(timeout(&link, 62_001), Some(ReplicaTimeout::Streaming));
    // SYNC has no ACKs.
    assert_eq!(timeout(&online(false, true), u64::MAX), None);
}

#[test]
fn rdb_versions_are_those_that_the_replica_reads() {
    let told = |version| Some(PeerVersion(version));
    for (has_field_ttls, version, number) in [
        (false, None, 11),
        (false, told([9, 1, 2]), 11),
        (true, None, 12),
        (true, told([8, 255, 255]), 12),
        (true, told([9, 0, 0]), 80),
        (true, told([10, 0, 0]), 80),
    ] {
        assert_eq!(WireRdbVersion::of(has_field_ttls, version).number(), number, "{version:?}");
    }
}

#[test]
fn addresses_are_announced_or_those_of_the_connection() {
    let mut link = waiting(ReplicaOptions { listening_port: 6380, ..ReplicaOptions::default() });
    assert!(link.has_address(b"10.0.0.1", 6380));
    link.options_mut().ip_address = Some(b"Replica-1".to_vec());
    assert!(link.has_address(b"replica-1", 6380));
    assert!(!link.has_address(b"10.0.0.1", 6380) && !link.has_address(b"replica-1", 6381));
}
