//! INFO and CONFIG RESETSTAT.

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn sections_can_be_selected() {
    check(
        r##"
> INFO nosuch -> ""
> INFO CLUSTER
"# Cluster\r\ncluster_enabled:0\r\n"
> INFO keyspace nosuch cluster
"# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n"
> INFO modules
"# Modules\r\n"
> INFO
~~ "# Server\\r\\n*\\r\\n\\r\\n# Clients*# Memory*# Persistence*# Threads*# Stats*# Replication*# CP
  U*# Modules*# Errorstats*# Cluster*# Keyspace\\r\\n\\r\\n# Keysizes\\r\\n"
> INFO default commandstats -> ~~ "# Server*# Modules\\r\\n\\r\\n# Commandstats*# Keyspace*
> INFO all -> ~~ "# Server*# Commandstats*# Errorstats*# Latencystats*# Cluster*# Keyspace*
> INFO Everything -> ~~ "# Server*# Commandstats*# Errorstats*# Latencystats*# Cluster*# Keyspace*
> HELLO 3 -> ~~ {*
> INFO cluster -> =txt:# Cluster\r\ncluster_enabled:0\r\n
"##,
    );
}

#[test]
fn keys_are_counted_by_size() {
    check(
        r##"
> SET e "" -> OK
> SET i 12345 -> OK
> SETRANGE big 5000000 x -> 5000001
> SELECT 3 -> OK
> RPUSH l a b c -> 3
> INFO keysizes
"# Keysizes\r\ndb0_distrib_strings_sizes:0=1,4=1,4M=1\r\ndb3_distrib_lists_items:2=1\r\n"
> RPUSH l d -> 4
> COPY l m -> 1
> LPOP m 2 -> ["a", "b"]
> SELECT 0 -> OK
> APPEND i 678 -> 8
> DEL big e -> 2
> INFO keysizes
"# Keysizes\r\ndb0_distrib_strings_sizes:8=1\r\ndb3_distrib_lists_items:2=1,4=1\r\n"
> SET i 1 PX 5 -> OK
> RENAME i j -> OK
> INFO keysizes
"# Keysizes\r\ndb0_distrib_strings_sizes:1=1\r\ndb3_distrib_lists_items:2=1,4=1\r\n"
@advance 10
> EXISTS j -> 0
> SWAPDB 0 3 -> OK
> INFO keysizes
"# Keysizes\r\ndb0_distrib_lists_items:2=1,4=1\r\n"
> FLUSHDB -> OK
> INFO keysizes
"# Keysizes\r\n"
"##,
    );
}

#[test]
fn the_server_section_describes_the_server() {
    check(
        r##"
> SET a 1 -> OK
> SELECT 3 -> OK
> SET b 1 -> OK
> SET c 1 -> OK
> INFO keyspace
"# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0,subexpiry=0\r\ndb3:keys=2,expires=0,avg_ttl=0,subexpir
  y=0\r\n"
> INFO server
~~ "# Server\\r\\nredis_version:8.0.6\\r\\nweft_version:*\\r\\nredis_git_sha1:????????*redis_git_dir
  ty:*redis_build_id:????????????????\\r\\nredis_mode:standalone\\r\\n*process_id:4321\\r\\n*tcp_por
  t:6379\\r\\nserver_time_usec:1700000000000000\\r\\nuptime_in_seconds:90061\\r\\nuptime_in_days:1\\
  r\\nhz:10\\r\\n*io_threads_active:0\\r\\nlistener0:name=tcp,bind=\*,bind=-::\*,port=6379\\r\\n"
> INFO clients
~~ "# Clients\\r\\nconnected_clients:1\\r\\n*maxclients:10000\\r\\n*blocked_clients:0\\r\\n*
> INFO memory
~~ "# Memory\\r\\nused_memory:3145728\\r\\nused_memory_human:3.00M\\r\\n*used_memory_peak:4194304\\r
  \\n*used_memory_peak_perc:75.00%\\r\\n*allocator_muzzy:8192\\r\\n*mem_allocator:fake-1.0\\r\\n*
> INFO persistence
~~ "# Persistence\\r\\nloading:0\\r\\n*rdb_changes_since_last_save:3\\r\\nrdb_bgsave_in_progress:0
  \\r\\nrdb_last_save_time:0\\r\\n*aof_enabled:0\\r\\n*
> INFO replication
~~ "# Replication\\r\\nrole:master\\r\\nconnected_slaves:0\\r\\n*master_repl_offset:0\\r\\nsecond_re
  pl_offset:-1\\r\\n*
> INFO cpu
~~ "# CPU\\r\\nused_cpu_sys:0.000000\\r\\nused_cpu_user:0.000000\\r\\n*used_cpu_user_main_thread:0.0
  00000\\r\\n"
> INFO threads
~~ "# Threads\\r\\nio_thread_0:clients=0,reads=0,writes=0\\r\\nweft_thread_0:commands=*
"##,
    );
}

#[test]
fn info_does_not_wait_for_a_shard_in_use() {
    let mut server = TestServer::new(1);
    run(
        &mut server,
        r##"
> SET a 1 -> OK
> SET b 2 EX 100 -> OK
> HSET h f v -> 1
> HEXPIRE h 100 FIELDS 1 f -> [1]
b> BLPOP l m 0
> INFO keyspace
"# Keyspace\r\ndb0:keys=3,expires=1,avg_ttl=0,subexpiry=1\r\n"
> EXPIRE a 100 -> 1
> DEL h -> 1
c> BLPOP n 0
"##,
    );
    server.set_busy(Some(0));
    run(
        &mut server,
        r##"
# Keys are counted without the shard; other figures are from an earlier look.
> INFO keyspace
"# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=0,subexpiry=1\r\n"
> INFO keysizes
"# Keysizes\r\ndb0_distrib_strings_sizes:1=2\r\ndb0_distrib_hashes_items:1=1\r\n"
> INFO clients -> ~~ *total_blocking_keys:2\\r\\n*
> MEMORY STATS -> ~~ *"keys.count", 2, *
> MEMORY DOCTOR -> ~~ "The server holds *
"##,
    );
    server.set_busy(None);
    run(
        &mut server,
        r##"
> INFO keyspace
"# Keyspace\r\ndb0:keys=2,expires=2,avg_ttl=0,subexpiry=0\r\n"
> INFO clients -> ~~ *total_blocking_keys:3\\r\\n*
> RPUSH l x -> 1
> RPUSH n x -> 1
"##,
    );
    server.set_busy(Some(0));
    run(
        &mut server,
        r##"
> INFO clients -> ~~ *total_blocking_keys:0\\r\\n*
"##,
    );
}

#[test]
fn turns_of_event_loops_are_counted() {
    let mut server = TestServer::new(1);
    server.host.ticks.set(7);
    server.node.sample(0);
    run(&mut server, "> PING\nPONG\n> PING\nPONG\n");
    let threads = server.node.threads.read().clone();
    let other = server.node.thread_counters(1, 0);
    threads[0].turns.add(40);
    threads[0].busy_tsc.add(700);
    other.turns.add(8);
    other.busy_tsc.add(20);
    server.node.sample(100);
    let fields = "*eventloop_cycles:48\\\\r\\\\neventloop_duration_sum:720\\\\r\\\\n\
        eventloop_duration_cmd_sum:14\\\\r\\\\ninstantaneous_eventloop_cycles_per_sec:30\\\\r\\\\n\
        instantaneous_eventloop_duration_usec:15\\\\r\\\\n*";
    run(&mut server, &format!("> INFO stats\n~~ {fields}\n> CONFIG RESETSTAT\nOK\n"));
    let fields = "*eventloop_cycles:0\\\\r\\\\neventloop_duration_sum:0\\\\r\\\\n\
        eventloop_duration_cmd_sum:7\\\\r\\\\n*";
    run(&mut server, &format!("> INFO stats\n~~ {fields}\n"));
}

#[test]
fn work_is_counted_until_a_reset() {
    let mut server = TestServer::new(4);
    server.host.ticks.set(7);
    run(
        &mut server,
        r##"
> GET a -> nil
> SET a 1 -> OK
> GET a -> "1"
> GET -> -ERR wrong number of arguments for 'get' command
> NOSUCH -> ~~ -ERR unknown command 'NOSUCH', with args beginning with: *
> CONFIG SET hz x -> ~~ -ERR *
> AUTH wrong x -> -WRONGPASS invalid username-password pair or user is disabled.
> INFO commandstats
~~ *cmdstat_get:calls=2,usec=14,usec_per_call=7.00,rejected_calls=1,failed_calls=0\\r\\n*cmdstat_set
  :calls=1,*cmdstat_auth:calls=1,usec=7,usec_per_call=7.00,rejected_calls=0,failed_calls=1\\r\\n*cmd
  stat_config|set:calls=1,*failed_calls=1\\r\\n*
> INFO errorstats
"# Errorstats\r\nerrorstat_ERR:count=3\r\nerrorstat_WRONGPASS:count=1\r\n"
> INFO stats
~~ *total_commands_processed:7\\r\\n*keyspace_hits:1\\r\\nkeyspace_misses:1\\r\\n*total_error_replie
  s:4\\r\\n*
> CONFIG RESETSTAT -> OK
> CONFIG NOSUCH -> ~~ -ERR unknown subcommand *
> INFO commandstats
"# Commandstats\r\ncmdstat_config|resetstat:calls=1,usec=7,usec_per_call=7.00,rejected_calls=0,faile
  d_calls=0\r\n"
> INFO errorstats
"# Errorstats\r\nerrorstat_ERR:count=1\r\n"
> INFO stats
~~ *total_commands_processed:3\\r\\n*keyspace_hits:0\\r\\nkeyspace_misses:0\\r\\n*total_error_replie
  s:1\\r\\n*
> XGROUP CREATE s g $ MKSTREAM -> OK
> XREADGROUP GROUP g c STREAMS s > -> nil-array
> XREAD STREAMS s t 0 0 -> nil-array
> XACK s g 1-1 -> 0
> XCLAIM t g c 0 1-1 -> ~~ -NOGROUP *
> INFO stats -> ~~ *keyspace_hits:5\\r\\nkeyspace_misses:3\\r\\n*
> INFO persistence -> ~~ *rdb_changes_since_last_save:3\\r\\n*
> CONFIG RESETSTAT x -> -ERR wrong number of arguments for 'config|resetstat' command
"##,
    );
}

/// As in Redis, a command that a script or transaction may not run counts as rejected.
#[test]
fn commands_refused_in_scripts_and_transactions_are_counted() {
    let scripts = [
        ("redis.pcall('get')", "get"),
        ("redis.pcall('object', 'encoding')", "object|encoding"),
        ("redis.pcall('watch', 'k')", "watch"),
        ("redis.pcall('set', 'k', 'v')", "set"),
        ("redis.pcall('get', 'other')", "get"),
        ("redis.pcall('incr', 'k')", "incr"),
    ];
    for (script, name) in scripts {
        let eval = if name == "incr" { "EVAL_RO" } else { "EVAL" };
        check(&format!(
            r#"
> ACL SETUSER u on nopass ~k +@all -set -> OK
> AUTH u x -> OK
> {eval} "{script} return 1" 0 -> 1
> MULTI -> OK
> {eval} "{script} return 1" 0 -> QUEUED
> EXEC -> [1]
> INFO commandstats -> ~~ *cmdstat_{name}:calls=0,*,rejected_calls=2,failed_calls=0\\r\\n*
> INFO commandstats -> ~~ *cmdstat_exec:calls=1,*,rejected_calls=0,failed_calls=0\\r\\n*
"#
        ));
    }
    // Failed calls and unknown commands do not count as rejected.
    check(
        r##"
> SET k text -> OK
> EVAL "redis.pcall('incr', 'k') redis.pcall('nosuch') redis.pcall('config', 'nosuch')" 0 -> nil
> INFO commandstats -> ~~ *cmdstat_incr:calls=1,*,rejected_calls=0,failed_calls=1\\r\\n*
> INFO commandstats -> ~~ *cmdstat_eval:calls=1,*,rejected_calls=0,failed_calls=0\\r\\n*
> ACL SETUSER u on nopass ~k +@all -> OK
> AUTH u x -> OK
> MULTI -> OK
> ACL SETUSER u -get -> QUEUED
> GET k -> QUEUED
> EXEC -> ~~ ?OK, -NOPERM *
> INFO commandstats -> ~~ *cmdstat_exec:calls=1,*,rejected_calls=0,failed_calls=1\\r\\n*
> INFO errorstats
"# Errorstats\r\nerrorstat_ERR:count=3\r\nerrorstat_NOPERM:count=1\r\n"
"##,
    );
}
