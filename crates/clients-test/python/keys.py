"""The key commands: life, expiry, names, databases, iteration, inspection."""

import time

import check


def run(r):
    """`r` decodes replies and has one connection; its database 0 is empty before and after."""
    life(r)
    expiry(r)
    expiry_conditions(r)
    names(r)
    databases(r)
    iteration(r)
    inspection(r)
    r.flushall()


def life(r):
    r.mset({"a": "1", "b": "2", "c": "3"})
    check.equal("EXISTS counts each mention", r.exists("a", "b", "none", "a"), 3)
    check.equal("TOUCH", r.touch("a", "none"), 1)
    check.equal("TYPE", (r.type("a"), r.type("none")), ("string", "none"))
    check.equal("DEL", r.delete("a", "none"), 1)
    check.equal("UNLINK", r.unlink("b", "c", "none"), 2)
    check.equal("DBSIZE after that", r.dbsize(), 0)
    check.equal("RANDOMKEY of nothing", r.randomkey(), None)
    r.set("only", "1")
    check.equal("RANDOMKEY", r.randomkey(), "only")
    r.delete("only")


def expiry(r):
    now = int(time.time())
    r.set("k", "v")
    check.equal("TTL without expiry", (r.ttl("k"), r.pttl("k")), (-1, -1))
    check.equal("TTL of nothing", (r.ttl("none"), r.pttl("none")), (-2, -2))
    check.equal("EXPIRETIME without expiry", (r.expiretime("k"), r.pexpiretime("k")), (-1, -1))
    check.equal("EXPIRETIME of nothing", r.expiretime("none"), -2)
    check.equal("EXPIRE of nothing", r.expire("none", 10), False)
    check.equal("EXPIRE", r.expire("k", 100), True)
    check.between("TTL after EXPIRE", r.ttl("k"), 90, 100)
    check.equal("PEXPIRE", r.pexpire("k", 30_000), True)
    check.between("PTTL after PEXPIRE", r.pttl("k"), 25_000, 30_000)
    check.equal("EXPIREAT", r.expireat("k", now + 70), True)
    check.equal("EXPIRETIME", r.expiretime("k"), now + 70)
    check.equal("PEXPIREAT", r.pexpireat("k", now * 1000 + 80_003), True)
    check.equal("PEXPIRETIME", r.pexpiretime("k"), now * 1000 + 80_003)
    check.equal("PERSIST", (r.persist("k"), r.persist("k"), r.ttl("k")), (True, False, -1))
    check.equal("EXPIRE in the past", (r.expire("k", -1), r.exists("k")), (True, 0))
    r.set("soon", "v")
    r.pexpire("soon", 1)
    check.eventually("a key with PEXPIRE 1 is gone", lambda: not r.exists("soon"))


def expiry_conditions(r):
    r.set("k", "v")
    check.equal("EXPIRE XX without expiry", r.expire("k", 100, xx=True), False)
    check.equal("EXPIRE GT without expiry", r.expire("k", 100, gt=True), False)
    check.equal("EXPIRE NX without expiry", r.expire("k", 100, nx=True), True)
    check.equal("EXPIRE NX with expiry", r.expire("k", 200, nx=True), False)
    check.equal("EXPIRE GT of less", r.expire("k", 50, gt=True), False)
    check.equal("EXPIRE GT of more", r.expire("k", 200, gt=True), True)
    check.equal("EXPIRE LT of more", r.expire("k", 300, lt=True), False)
    check.equal("EXPIRE LT of less", r.expire("k", 60, lt=True), True)
    check.equal("EXPIRE XX with expiry", r.expire("k", 70, xx=True), True)
    check.between("TTL after all", r.ttl("k"), 60, 70)
    r.persist("k")
    check.equal("EXPIRE LT without expiry", r.expire("k", 10, lt=True), True)
    r.delete("k")


def names(r):
    r.set("a", "1", ex=100)
    check.equal("RENAME", r.rename("a", "b"), True)
    check.between("TTL of a renamed key", r.ttl("b"), 90, 100)
    check.error("RENAME of nothing", "no such key", lambda: r.rename("none", "x"))
    r.set("c", "3")
    check.equal("RENAMENX onto a key", r.renamenx("b", "c"), False)
    check.equal("RENAMENX", r.renamenx("b", "d"), True)
    check.equal("COPY", (r.copy("d", "e"), r.get("e")), (True, "1"))
    check.between("TTL of a copy", r.ttl("e"), 90, 100)
    check.equal("COPY onto a key", r.copy("c", "e"), False)
    check.equal("COPY REPLACE", (r.copy("c", "e", replace=True), r.get("e")), (True, "3"))
    check.equal("COPY of nothing", r.copy("none", "x"), False)
    check.equal("COPY DB", r.copy("c", "c", destination_db=1), True)
    same = "source and destination objects are the same"
    check.error("COPY onto itself", same, lambda: r.copy("c", "c"))
    r.flushall()


def databases(r):
    run = r.execute_command
    r.set("k", "zero")
    check.equal("MOVE", (r.move("k", 3), r.exists("k")), (True, 0))
    check.equal("MOVE of nothing", r.move("k", 3), False)
    check.equal("SELECT", run("SELECT", 3), True)
    check.equal("GET in database 3", r.get("k"), "zero")
    run("SELECT", 0)
    r.set("k", "other")
    check.equal("MOVE onto a key", r.move("k", 3), False)
    check.equal("SWAPDB", r.swapdb(0, 3), True)
    check.equal("GET after SWAPDB", r.get("k"), "zero")
    check.equal("FLUSHDB", (r.flushdb(), r.dbsize()), (True, 0))
    run("SELECT", 3)
    check.equal("FLUSHDB left database 3", r.get("k"), "other")
    run("SELECT", 0)
    check.equal("FLUSHALL", r.flushall(), True)
    check.equal("FLUSHDB ASYNC", r.flushdb(asynchronous=True), True)
    check.equal("FLUSHALL ASYNC", r.flushall(asynchronous=True), True)
    run("SELECT", 3)
    check.equal("FLUSHALL emptied database 3", r.dbsize(), 0)
    run("SELECT", 0)
    check.error("SELECT of no database", "DB index is out of range", lambda: run("SELECT", 99))


def iteration(r):
    keys = [f"user:{i}" for i in range(1000)]
    r.mset({key: "x" for key in keys})
    r.set("other", "y")
    check.equal("KEYS", sorted(r.keys("user:99?")), sorted(f"user:99{i}" for i in range(10)))
    check.equal("KEYS of a class", sorted(r.keys("user:[1-2]")), ["user:1", "user:2"])
    check.equal("KEYS of nothing", r.keys("none*"), [])
    cursor, page = r.scan(0, count=10)
    check.holds("SCAN COUNT gives a part", cursor != 0 and 1 <= len(page) < 200, (cursor, page))
    check.equal("SCAN sees every key", set(r.scan_iter(count=100)), {*keys, "other"})
    check.equal("SCAN MATCH", set(r.scan_iter(match="oth*")), {"other"})
    check.equal("SCAN TYPE string", len(set(r.scan_iter(_type="string", count=500))), 1001)
    check.equal("SCAN TYPE list", list(r.scan_iter(_type="list", count=500)), [])
    check.equal("DBSIZE", r.dbsize(), 1001)
    r.flushdb()


def inspection(r):
    r.mset({"int": "12345", "embstr": "short", "raw": "x" * 100})
    encodings = [r.object("ENCODING", key) for key in ("int", "embstr", "raw", "none")]
    check.equal("OBJECT ENCODING", encodings, ["int", "embstr", "raw", None])
    check.equal("OBJECT REFCOUNT", r.object("REFCOUNT", "raw"), 1)
    check.between("OBJECT IDLETIME", r.object("IDLETIME", "raw"), 0, 5)
    check.between("MEMORY USAGE", r.memory_usage("raw"), 100, 400)
    check.equal("MEMORY USAGE of nothing", r.memory_usage("none"), None)
    r.flushdb()
