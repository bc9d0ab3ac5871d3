"""The string commands, through redis-py's methods for them."""

import time

import check


def run(r):
    """`r` decodes replies; its database is empty before and after."""
    set_and_get(r)
    set_expiring(r)
    getex(r)
    many(r)
    counters(r)
    ranges(r)
    lcs(r)
    r.flushdb()


def set_and_get(r):
    check.equal("GET of nothing", r.get("none"), None)
    check.equal("SET", r.set("k", "v"), True)
    check.equal("GET", r.get("k"), "v")
    check.equal("SET NX on a key", r.set("k", "w", nx=True), None)
    check.equal("SET NX on nothing", r.set("n", "1", nx=True), True)
    check.equal("SET XX on nothing", r.set("none", "1", xx=True), None)
    check.equal("SET XX on a key", r.set("k", "x", xx=True), True)
    check.equal("SET GET", r.set("k", "y", get=True), "x")
    check.equal("SET GET on nothing", r.set("fresh", "1", get=True), None)
    check.equal("SET NX GET", r.set("k", "z", nx=True, get=True), "y")
    check.equal("what SET NX GET left", r.get("k"), "y")
    check.equal("GETSET", r.execute_command("GETSET", "k", "g"), "y")
    check.equal("GETDEL", r.getdel("k"), "g")
    check.equal("GETDEL of nothing", r.getdel("k"), None)
    check.equal("SETNX", r.setnx("s", "1"), True)
    check.equal("SETNX on a key", r.setnx("s", "2"), False)
    check.equal("GET of an empty value", (r.set("e", ""), r.get("e")), (True, ""))


def set_expiring(r):
    now = int(time.time())
    check.equal("SET EX", r.set("k", "v", ex=100), True)
    check.between("TTL after EX", r.ttl("k"), 90, 100)
    check.equal("SET PX", r.set("k", "v", px=50_000), True)
    check.between("PTTL after PX", r.pttl("k"), 45_000, 50_000)
    check.equal("SET EXAT", r.set("k", "v", exat=now + 200), True)
    check.equal("EXPIRETIME after EXAT", r.expiretime("k"), now + 200)
    check.equal("SET PXAT", r.set("k", "v", pxat=now * 1000 + 300_001), True)
    check.equal("PEXPIRETIME after PXAT", r.pexpiretime("k"), now * 1000 + 300_001)
    check.equal("SET KEEPTTL", r.set("k", "w", keepttl=True), True)
    check.equal("PEXPIRETIME after KEEPTTL", r.pexpiretime("k"), now * 1000 + 300_001)
    check.equal("SET drops the expiry", (r.set("k", "w"), r.ttl("k")), (True, -1))
    check.equal("SETEX", r.setex("k", 100, "v"), True)
    check.between("TTL after SETEX", r.ttl("k"), 90, 100)
    check.equal("PSETEX", r.psetex("k", 90_000, "v"), True)
    check.between("PTTL after PSETEX", r.pttl("k"), 85_000, 90_000)
    r.set("gone", "v", px=1)
    check.eventually("a key with PX 1 is gone", lambda: r.get("gone") is None)
    check.equal("SET EXAT in the past", r.set("k", "v", exat=1), True)
    check.equal("GET after EXAT in the past", r.get("k"), None)


def getex(r):
    now = int(time.time())
    r.set("k", "v")
    check.equal("GETEX", (r.getex("k"), r.ttl("k")), ("v", -1))
    check.equal("GETEX EX", r.getex("k", ex=100), "v")
    check.between("TTL after GETEX EX", r.ttl("k"), 90, 100)
    check.equal("GETEX PX", r.getex("k", px=70_000), "v")
    check.between("PTTL after GETEX PX", r.pttl("k"), 65_000, 70_000)
    r.getex("k", exat=now + 50)
    check.equal("GETEX EXAT", r.expiretime("k"), now + 50)
    r.getex("k", pxat=now * 1000 + 60_007)
    check.equal("GETEX PXAT", r.pexpiretime("k"), now * 1000 + 60_007)
    check.equal("GETEX PERSIST", (r.getex("k", persist=True), r.ttl("k")), ("v", -1))
    check.equal("GETEX of nothing", r.getex("none", ex=5), None)


def many(r):
    check.equal("MSET", r.mset({"m1": "1", "m2": "2"}), True)
    check.equal("MGET", r.mget("m1", "none", "m2"), ["1", None, "2"])
    check.equal("MSETNX with a taken key", r.msetnx({"m2": "x", "m3": "x"}), False)
    check.equal("what MSETNX left", r.mget("m2", "m3"), ["2", None])
    check.equal("MSETNX", r.msetnx({"m3": "3", "m4": "4"}), True)
    pairs = {f"many:{i}": str(i) for i in range(1000)}
    check.equal("MSET of 1000", r.mset(pairs), True)
    check.equal("MGET of 1000", r.mget(list(pairs)), list(pairs.values()))


def counters(r):
    check.equal("INCR", r.incr("c"), 1)
    check.equal("INCRBY", r.incrby("c", 41), 42)
    check.equal("DECR", r.execute_command("DECR", "c"), 41)
    check.equal("DECRBY", r.decrby("c", 50), -9)
    check.equal("INCRBY to the largest", r.incrby("big", 2**63 - 1), 2**63 - 1)
    overflow = "increment or decrement would overflow"
    check.error("INCR past the largest", overflow, lambda: r.incr("big"))
    check.equal("INCRBYFLOAT", r.incrbyfloat("f", 10.5), 10.5)
    check.equal("INCRBYFLOAT of 0.1", r.incrbyfloat("f", 0.1), 10.6)
    check.equal("the text INCRBYFLOAT left", r.get("f"), "10.6")
    r.set("f", "3.0e3")
    check.equal("INCRBYFLOAT on an exponent", r.incrbyfloat("f", 200), 3200.0)
    check.equal("the text without an exponent", r.get("f"), "3200")


def ranges(r):
    check.equal("APPEND to nothing", r.append("a", "Hello"), 5)
    check.equal("APPEND", r.append("a", " World"), 11)
    check.equal("STRLEN", (r.strlen("a"), r.strlen("none")), (11, 0))
    check.equal("GETRANGE", r.getrange("a", 0, 4), "Hello")
    check.equal("GETRANGE from the end", r.getrange("a", -5, -1), "World")
    check.equal("GETRANGE past the end", r.getrange("a", 6, 100), "World")
    check.equal("GETRANGE of an empty range", r.getrange("a", 5, 3), "")
    check.equal("SUBSTR", r.substr("a", 0, 4), "Hello")
    check.equal("SETRANGE", (r.setrange("a", 6, "Redis"), r.get("a")), (11, "Hello Redis"))
    check.equal("SETRANGE past the end", r.setrange("p", 3, "x"), 4)
    check.equal("the zeros before it", r.get("p"), "\0\0\0x")


def lcs(r):
    r.mset({"l1": "ohmytext", "l2": "mynewtext"})
    check.equal("LCS", r.lcs("l1", "l2"), "mytext")
    check.equal("LCS LEN", r.lcs("l1", "l2", len=True), 6)
    found = matches(r.lcs("l1", "l2", idx=True))
    check.equal("LCS IDX", found, ([[[4, 7], [5, 8]], [[2, 3], [0, 1]]], 6))
    found = matches(r.lcs("l1", "l2", idx=True, minmatchlen=4))
    check.equal("LCS IDX MINMATCHLEN", found, ([[[4, 7], [5, 8]]], 6))
    found = matches(r.lcs("l1", "l2", idx=True, minmatchlen=4, withmatchlen=True))
    check.equal("LCS IDX WITHMATCHLEN", found, ([[[4, 7], [5, 8], 4]], 6))


def matches(reply):
    """RESP2 has a flat list where RESP3 has a map."""
    if isinstance(reply, list):
        reply = dict(zip(reply[::2], reply[1::2]))
    return reply["matches"], reply["len"]
