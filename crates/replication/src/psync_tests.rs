//! Tests of the answers to SYNC and PSYNC; the borders are those that Redis 8 and Valkey 9 showed.

use super::*;
use crate::test_ids::id;

const PRIMARY: SyncConditions = SyncConditions {
    role: ReplicationRole::Primary,
    failing_over: false,
    is_replica: false,
    pending_output: false,
    filtered_without_eof: false,
    backlog: Some(BacklogRange { first: 100, bytes: 101 }),
};

/// A promoted replica at offset 200 whose second id ends at 159.
fn promoted() -> ReplicationHistory {
    let second = Some(SecondId { id: id(1), offset: 159 });
    ReplicationHistory::restored(id(2), second, 200)
}

fn ask(
    id: &[u8],
    offset: &str,
    failover: bool,
    conditions: &SyncConditions,
) -> Result<SyncAnswer, SyncRefusal> {
    let request = SyncRequest::Psync { id, offset: offset.as_bytes(), failover };
    answer_sync(&promoted(), request, conditions)
}

fn check(id: ReplicationId, offset: i64, wanted: Result<u64, FullSyncReason>) {
    let wanted = match wanted {
        Ok(from) => SyncAnswer::Partial { from },
        Err(reason) => SyncAnswer::Full(reason),
    };
    for text in [id.to_string(), id.to_string().to_uppercase()] {
        let answer = ask(text.as_bytes(), &offset.to_string(), false, &PRIMARY);
        assert_eq!(answer, Ok(wanted), "{text} {offset}");
    }
}

#[test]
fn the_second_id_continues_up_to_its_offset() {
    check(id(1), 158, Ok(158));
    check(id(1), 159, Ok(159));
    check(id(1), 160, Err(FullSyncReason::SecondIdEnded { offset: 160, end: 159 }));
    check(id(3), 159, Err(FullSyncReason::UnknownId));
}

#[test]
fn the_own_id_continues_up_to_the_next_byte() {
    let no_backlog = |offset, is_ahead| Err(FullSyncReason::NoBacklog { offset, is_ahead });
    check(id(2), 200, Ok(200));
    check(id(2), 201, Ok(201));
    check(id(2), 202, no_backlog(202, true));
    check(id(2), 100, Ok(100));
    check(id(2), 99, no_backlog(99, false));
    check(id(1), 99, no_backlog(99, false));
    for offset in [0, -1, i64::MIN] {
        check(id(2), offset, no_backlog(offset, false));
    }
    check(id(2), i64::MAX, no_backlog(i64::MAX, true));
    // A backlog that claims bytes beyond the history is not believed.
    let longer = Some(BacklogRange { first: 100, bytes: 900 });
    let answer =
        ask(id(2).as_bytes(), "202", false, &SyncConditions { backlog: longer, ..PRIMARY });
    let reason = FullSyncReason::NoBacklog { offset: 202, is_ahead: true };
    assert_eq!(answer, Ok(SyncAnswer::Full(reason)));
    let without = SyncConditions { backlog: None, ..PRIMARY };
    let answer = ask(id(2).as_bytes(), "201", false, &without);
    let reason = FullSyncReason::NoBacklog { offset: 201, is_ahead: false };
    assert_eq!(answer, Ok(SyncAnswer::Full(reason)));
}

#[test]
fn a_full_synchronization_that_was_asked_for_is_no_failure() {
    let asked = Ok(SyncAnswer::Full(FullSyncReason::Asked));
    assert_eq!(ask(b"?", "-1", false, &PRIMARY), asked);
    assert_eq!(answer_sync(&promoted(), SyncRequest::Sync, &PRIMARY), asked);
    assert!(!FullSyncReason::Asked.is_failed_partial());
    assert!(FullSyncReason::UnknownId.is_failed_partial());
    assert_eq!(ask(b"?", "x", false, &PRIMARY), Err(SyncRefusal::OffsetNotInteger));
}

#[test]
fn refusals_come_in_the_order_of_the_peers() {
    let own = id(2);
    let link_down = ReplicationRole::Replica { link_up: false };
    let link_up = ReplicationRole::Replica { link_up: true };
    let mut all = SyncConditions {
        role: link_down,
        failing_over: true,
        is_replica: true,
        pending_output: true,
        filtered_without_eof: true,
        backlog: None,
    };
    let ask = |conditions: &SyncConditions| ask(own.as_bytes(), "", false, conditions);
    assert_eq!(ask(&all), Ok(SyncAnswer::Ignored));
    all.is_replica = false;
    assert_eq!(ask(&all), Err(SyncRefusal::FailingOver));
    all.failing_over = false;
    assert_eq!(ask(&all), Err(SyncRefusal::LinkDown));
    all.role = link_up;
    assert_eq!(ask(&all), Err(SyncRefusal::PendingOutput));
    all.pending_output = false;
    assert_eq!(ask(&all), Err(SyncRefusal::FilteredWithoutEof));
    all.filtered_without_eof = false;
    assert_eq!(ask(&all), Err(SyncRefusal::OffsetNotInteger));
}

#[test]
fn a_planned_failover_promotes_a_replica_with_the_same_id() {
    let own = id(2);
    let down = SyncConditions { role: ReplicationRole::Replica { link_up: false }, ..PRIMARY };
    assert_eq!(ask(own.as_bytes(), "201", true, &down), Ok(SyncAnswer::Promote));
    let other = id(1);
    let mismatch = Err(SyncRefusal::FailoverIdMismatch);
    assert_eq!(ask(other.as_bytes(), "159", true, &down), mismatch);
    assert_eq!(ask(own.as_bytes(), "201", true, &PRIMARY), Err(SyncRefusal::FailoverAtPrimary));
    // The former primary continues with the id that it had.
    let mut history = promoted();
    history.begin_new(id(4));
    let request = SyncRequest::Psync { id: own.as_bytes(), offset: b"201", failover: true };
    let answer = answer_sync(&history, request.after_promotion(), &PRIMARY);
    assert_eq!(answer, Ok(SyncAnswer::Partial { from: 201 }));
}

#[test]
fn requests_are_read_from_commands() {
    let words = "foo ? -1 failover".split(' ').map(str::as_bytes).collect::<Vec<_>>();
    let command = resp::CopiedArgs::of(words.into_iter());
    let wanted = SyncRequest::Psync { id: b"?", offset: b"-1", failover: true };
    assert_eq!(SyncRequest::psync(&command.args()), wanted);
}

#[test]
fn reasons_are_logged_in_the_words_of_redis() {
    let ids = [id(1), id(2), id(3)].map(|id| id.to_string());
    let request = SyncRequest::Psync { id: ids[2].as_bytes(), offset: b"7", failover: false };
    let line = |reason: FullSyncReason| reason.log_line("10.0.0.1:6380", request, &promoted());
    assert_eq!(line(FullSyncReason::Asked), "Full resync requested by replica 10.0.0.1:6380");
    let mismatch = format!(
        "Partial resynchronization not accepted: Replication ID mismatch (Replica asked for '{}', \
         my replication IDs are '{}' and '{}')",
        ids[2], ids[1], ids[0]
    );
    assert_eq!(line(FullSyncReason::UnknownId), mismatch);
    let ended = "Partial resynchronization not accepted: Requested offset for second ID was 160, \
                 but I can reply up to 159";
    assert_eq!(line(FullSyncReason::SecondIdEnded { offset: 160, end: 159 }), ended);
    let lack = "Unable to partial resync with replica 10.0.0.1:6380 for lack of backlog (Replica \
                request was: 9).";
    assert_eq!(line(FullSyncReason::NoBacklog { offset: 9, is_ahead: false }), lack);
    let new = ReplicationHistory::new(id(1));
    let unknown = FullSyncReason::UnknownId.log_line("a:1", request, &new);
    assert!(unknown.ends_with(&format!("and '{}')", "0".repeat(40))), "{unknown}");
}

#[test]
fn lines_have_the_form_of_the_peers() {
    let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
    let digits = id(0xab);
    assert_eq!(text(continue_line(digits, true)), format!("+CONTINUE {digits}\r\n"));
    assert_eq!(text(continue_line(digits, false)), "+CONTINUE\r\n");
    assert_eq!(text(full_resync_line(digits, 7)), format!("+FULLRESYNC {digits} 7\r\n"));
}
