//! SAVE, BGSAVE, LASTSAVE, WEFT BACKUP, DEBUG RELOAD, and commands that are refused while keys are
//! loaded or cannot be saved. Other tests check the content of the files.

use node::config::{Config, Permit};
use node::host::SaveError;
use node::state::refusals::Cause;
use node::state::snapshots::EndedBackup;

use crate::check::{check, run};
use crate::fake::TestServer;

fn with_debug() -> TestServer {
    TestServer::with_config(1, Config { enable_debug_command: Permit::Yes, ..Config::default() })
}

#[test]
fn save_bgsave_and_lastsave() {
    check(
        r#"
> SAVE -> OK
> SAVE x -> -ERR wrong number of arguments for 'save' command
> BGSAVE -> Background saving started
> BGSAVE schedule -> Background saving started
> BGSAVE NOW -> -ERR syntax error
> LASTSAVE -> 0
> LASTSAVE x -> -ERR wrong number of arguments for 'lastsave' command
> MULTI -> OK
> SAVE -> -ERR Command not allowed inside a transaction
> DISCARD -> OK
> MULTI -> OK
> BGSAVE -> QUEUED
> LASTSAVE -> QUEUED
> EXEC -> [Background saving scheduled, 0]
> EVAL "return redis.pcall('save').err" 0 -> "ERR This Redis command is not allowed from script"
"#,
    );
}

#[test]
fn errors_of_saves() {
    for (error, command, reply) in [
        (SaveError::Saving, "SAVE", "-ERR Background save already in progress"),
        (SaveError::Saving, "BGSAVE", "-ERR Background save already in progress"),
        (SaveError::Failed, "SAVE", "-ERR"),
        (SaveError::Failed, "BGSAVE", "-ERR"),
        (
            SaveError::SnapshotTaken,
            "BGSAVE",
            "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
             SCHEDULE in order to schedule a BGSAVE whenever possible.",
        ),
        (SaveError::SnapshotTaken, "BGSAVE SCHEDULE", "Background saving scheduled"),
        (SaveError::Failed, "WEFT BACKUP x", "-ERR The backup cannot begin: 'x' is there"),
        (
            SaveError::Saving,
            "WEFT BACKUP x",
            "-ERR Another snapshot is being written. Try again later.",
        ),
        (SaveError::Failed, "DEBUG RELOAD", "-ERR Error saving the RDB dump, check server logs"),
    ] {
        let mut server = with_debug();
        server.host.saves.set(Some(error));
        run(&mut server, &format!("> {command}\n{reply}\n"));
    }
}

#[test]
fn backups_stay_in_their_folder() {
    check(
        r#"
> WEFT BACKUP copy.rdb -> Backup started
> WEFT BACKUP copy.rdb REPLACE -> Backup started
> WEFT BACKUP copy.rdb REPLACE REPLACE -> -ERR syntax error
> WEFT BACKUP copy.rdb NOW -> -ERR syntax error
> MULTI -> OK
> WEFT BACKUP copy.rdb WAIT -> -ERR Command not allowed inside a transaction
> DISCARD -> OK
> WEFT BACKUP -> -ERR wrong number of arguments for 'weft|backup' command
> WEFT BACKUP "" -> -ERR The backup cannot begin: no such path
> WEFT BACKUP "\xff" -> -ERR The backup cannot begin: no such path
> WEFT BACKUP /tmp/copy.rdb
-ERR The backup cannot begin: a path outside 'dir' needs 'enable-protected-configs'
"#,
    );
}

#[test]
fn clients_wait_for_a_backup_that_succeeds_or_fails() {
    let mut server = with_debug();
    // The test's backup has the number 5.
    let end = |server: &mut TestServer, number, failure: Option<&str>| {
        let ended = EndedBackup { number, failure: failure.map(str::to_owned) };
        server.node.snapshots.figures.lock().ended_backup = Some(ended.clone());
        server.node.waits.end_backup(&ended).len()
    };
    run(&mut server, "> WEFT BACKUP copy.rdb WAIT\nb> WEFT BACKUP copy.rdb wait replace\n");
    assert_eq!(end(&mut server, 4, None), 0);
    assert_eq!(end(&mut server, 5, Some("the disk is full")), 2);
    let failed = "-ERR The backup failed: the disk is full";
    run(&mut server, &format!("c> PING\nc< PONG\na< {failed}\nb< {failed}\n"));
    // It ends before the client begins to wait.
    assert_eq!(end(&mut server, 5, None), 0);
    run(&mut server, "> WEFT BACKUP copy.rdb WAIT\na< Backup saved\n");
    assert_eq!(end(&mut server, 6, None), 0);
    run(&mut server, "> WEFT BACKUP x WAIT\na< -ERR The backup failed: see the server's log\n");
}

#[test]
fn debug_reload() {
    run(
        &mut with_debug(),
        r#"
> SET k v -> OK
> DEBUG RELOAD NOFLUSH -> OK
> GET k -> "v"
> DEBUG RELOAD NOSAVE -> OK
> DBSIZE -> 0
> DEBUG RELOAD MERGE -> -ERR Error trying to load the RDB dump, check server logs
> DEBUG RELOAD x -> -ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.
"#,
    );
}

#[test]
fn commands_while_keys_are_loaded() {
    let mut server = TestServer::new(1);
    server.node.set_loading(true);
    run(
        &mut server,
        r#"
> GET k -> -LOADING Redis is loading the dataset in memory
> PING -> -LOADING Redis is loading the dataset in memory
> SAVE -> -LOADING Redis is loading the dataset in memory
> EVAL "return 1" 0 -> -LOADING Redis is loading the dataset in memory
> SUBSCRIBE c -> ["subscribe", "c", 1]
> UNSUBSCRIBE c -> ["unsubscribe", "c", 0]
> LASTSAVE -> 0
> INFO persistence -> ~~ *loading:1\\r\\n*loading_start_time:0\\r\\nloading_total_bytes:0\\r\\n*
> MULTI -> OK
> INCR k -> -LOADING Redis is loading the dataset in memory
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
> MULTI -> OK
> LASTSAVE -> QUEUED
> EXEC -> [0]
"#,
    );
    server.node.set_loading(false);
    run(&mut server, "> MULTI\nOK\n> INCR k\nQUEUED\n");
    server.node.set_loading(true);
    let aborted = "> EXEC\n-EXECABORT Transaction discarded because of: LOADING Redis is loading \
                   the dataset in memory\n";
    run(&mut server, aborted);
    server.node.set_loading(false);
    run(&mut server, "> PING\nPONG\n> GET k\nnil\n");
}

#[test]
fn writes_are_refused_while_saves_fail() {
    let mut server = TestServer::new(1);
    let text = "MISCONF the disk is full";
    server.node.refuse_writes(Cause::Snapshot, Some(text.to_owned()));
    run(
        &mut server,
        r#"
> SET k v -> -MISCONF the disk is full
> PING -> -MISCONF the disk is full
> GET k -> nil
> MULTI -> OK
> SET k v -> -MISCONF the disk is full
> EXEC -> -EXECABORT Transaction discarded because of previous errors.
"#,
    );
    server.node.refuse_writes(Cause::Snapshot, None);
    run(&mut server, "> SET k v\nOK\n");
}
