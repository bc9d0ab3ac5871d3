"""The connection and server commands: what clients and tools ask a server about itself."""

import time

import check


def run(r, connect, protocol):
    """`r` has one connection; `connect(**options)` makes further clients of the same protocol."""
    connection(r, protocol)
    own_record(r, protocol)
    other_clients(r, connect)
    commands(r)
    configuration(r)
    information(r)
    slow_log(r)


def connection(r, protocol):
    check.equal("PING", r.ping(), True)
    check.equal("ECHO", r.echo("héllo"), "héllo")
    hello = r.execute_command("HELLO", protocol)
    if isinstance(hello, list):
        hello = dict(zip(hello[::2], hello[1::2]))
    check.equal("HELLO has the protocol", int(hello["proto"]), protocol)
    check.equal("HELLO has the server", hello["server"], "redis")
    check.holds("HELLO has the version", hello["version"].startswith("8.0."), hello)
    seen = (hello["mode"], hello["role"])
    check.equal("HELLO has mode and role", seen, ("standalone", "master"))
    check.equal("HELLO has the id", int(hello["id"]), r.client_id())
    seconds, microseconds = r.time()
    check.between("TIME less our own", seconds + microseconds / 1e6 - time.time(), -5, 5)


def own_record(r, protocol):
    check.equal("CLIENT GETNAME of none", r.client_getname() or None, None)
    seen = (r.client_setname("subject"), r.client_getname())
    check.equal("CLIENT SETNAME", seen, (True, "subject"))
    check.equal("CLIENT SETINFO", r.client_setinfo("LIB-VER", "9.9"), True)
    info = r.client_info()
    seen = (info["name"], info["lib-ver"], int(info["resp"]), int(info["db"]))
    check.equal("CLIENT INFO", seen, ("subject", "9.9", protocol, 0))
    check.equal("CLIENT INFO has the id", int(info["id"]), r.client_id())
    addresses = ":" in info["addr"] and ":" in info["laddr"]
    check.holds("CLIENT INFO has the addresses", addresses, info)
    check.holds("the client's own SETINFO arrived", info["lib-name"].startswith("redis-py"), info)
    listed = [client for client in r.client_list() if int(client["id"]) == info["id"]]
    check.equal("CLIENT LIST has this client", [c["name"] for c in listed], ["subject"])
    check.holds("CLIENT LIST ends with the thread", "io-thread" in listed[0], listed)
    check.equal("CLIENT NO-EVICT", r.client_no_evict("OFF"), "OK")
    check.equal("CLIENT NO-TOUCH", r.client_no_touch("OFF"), "OK")
    check.equal("CLIENT GETREDIR", r.client_getredir(), -1)


def other_clients(r, connect):
    other = connect(client_name="victim", single_connection_client=True)
    number = other.client_id()
    listed = r.client_list(client_id=[number])
    check.equal("CLIENT LIST ID", [c["name"] for c in listed], ["victim"])
    normal = [c["name"] for c in r.client_list(_type="normal")]
    check.holds("CLIENT LIST TYPE", {"subject", "victim"} <= set(normal), normal)
    check.equal("CLIENT KILL ID", r.client_kill_filter(_id=number), 1)
    names = lambda: [c["name"] for c in r.client_list()]
    check.eventually("the killed client is gone", lambda: "victim" not in names())
    check.equal("CLIENT KILL of nobody", r.client_kill_filter(_id=number), 0)
    check.error("CLIENT KILL by address", "No such client", lambda: r.client_kill("1.2.3.4:5"))
    check.equal("CLIENT UNBLOCK of nobody", r.client_unblock(number), False)
    check.equal("CLIENT PAUSE and UNPAUSE", (r.client_pause(1), r.client_unpause()), (True, "OK"))
    other.close()


def commands(r):
    count = r.command_count()
    check.holds("COMMAND COUNT", count > 60, count)
    table = r.command()
    check.equal("COMMAND lists as many", len(table), count)
    get = table["get"]
    keys = (get["arity"], get["first_key_pos"], get["last_key_pos"], get["step_count"])
    check.equal("COMMAND has GET's keys", keys, (2, 1, 1, 1))
    flags = set(get["flags"])
    check.holds("COMMAND has GET's flags", {"readonly", "fast"} <= flags, flags)
    rows = r.execute_command("COMMAND INFO", "mset", "nosuch")
    rows = list(rows.values()) if isinstance(rows, dict) else rows
    check.holds("COMMAND INFO", "mset" in str(rows[0]), rows)
    docs = r.execute_command("COMMAND DOCS", "set")
    if isinstance(docs, list):
        docs = {docs[0]: dict(zip(docs[1][::2], docs[1][1::2]))}
    seen = (docs["set"]["group"], docs["set"]["since"])
    check.equal("COMMAND DOCS", seen, ("string", "1.0.0"))
    check.holds("COMMAND DOCS has a summary of SET", len(docs["set"]["summary"]) > 10, docs["set"])
    keys = r.command_getkeys("MSET", "a", "1", "b", "2")
    check.equal("COMMAND GETKEYS", keys, ["a", "b"])


def configuration(r):
    old = r.config_get("active-expire-effort")
    check.equal("CONFIG GET", old, {"active-expire-effort": "1"})
    check.equal("CONFIG SET", r.config_set("active-expire-effort", 7), True)
    now = r.config_get("active-expire-effort")
    check.equal("CONFIG GET after SET", now, {"active-expire-effort": "7"})
    r.config_set("active-expire-effort", 1)
    both = r.config_get("port", "databas*")
    check.equal("CONFIG GET of two patterns", sorted(both), ["databases", "port"])
    check.equal("CONFIG GET of nothing", r.config_get("no-such-thing"), {})
    check.equal("CONFIG RESETSTAT", r.config_resetstat(), True)


def information(r):
    info = r.info()
    check.holds("INFO has the version", info["redis_version"].startswith("8.0."), info)
    for name in ("process_id", "tcp_port", "uptime_in_seconds", "connected_clients", "used_memory"):
        check.holds(f"INFO has {name} as a number", isinstance(info[name], int), info.get(name))
    for name in ("total_commands_processed", "keyspace_hits", "expired_keys", "evicted_keys"):
        check.holds(f"INFO has {name} as a number", isinstance(info[name], int), info.get(name))
    check.equal("INFO has the role", info["role"], "master")
    r.set("k", "v", ex=100)
    check.equal("INFO keyspace", r.info("keyspace")["db0"]["keys"], 1)
    check.equal("INFO of one section only", set(r.info("keyspace")), {"db0"})
    stats = r.info("commandstats")
    check.holds("INFO commandstats", stats["cmdstat_set"]["calls"] >= 1, stats)
    before = r.info("stats")["keyspace_misses"]
    r.get("none")
    check.equal("INFO counts misses", r.info("stats")["keyspace_misses"], before + 1)
    r.flushdb()


def slow_log(r):
    r.config_set("slowlog-log-slower-than", 0)
    r.set("slow", "log")
    r.config_set("slowlog-log-slower-than", 10_000)
    entries = r.slowlog_get(10)
    found = [e for e in entries if e["command"] in (b"SET slow log", "SET slow log")]
    check.equal("SLOWLOG GET", len(found), 1)
    check.between("SLOWLOG has the start", found[0]["start_time"] - time.time(), -10, 5)
    check.holds("SLOWLOG LEN", r.slowlog_len() >= 1)
    check.equal("SLOWLOG RESET", (r.slowlog_reset(), r.slowlog_len()), (True, 0))
    r.delete("slow")
