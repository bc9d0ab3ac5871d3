"""Scripts and functions: redis-py's `register_script` and its methods for FUNCTION and FCALL."""

import check
import redis
import shared

TRANSFER = shared.text("transfer.lua")
LIBRARY = shared.text("library.lua")


def falls_back(r, connect):
    r.mset({"a": 100, "b": 1})
    transfer = r.register_script(TRANSFER)
    check.equal("the first run", transfer(keys=["a", "b"], args=[10]), [90, 11])
    check.equal("SCRIPT EXISTS", r.script_exists(transfer.sha, "0" * 40), [True, False])
    check.equal("EVALSHA", r.evalsha(transfer.sha, 2, "a", "b", 1), [89, 12])
    check.equal("SCRIPT FLUSH", r.script_flush(), True)
    check.equal("SCRIPT EXISTS after it", r.script_exists(transfer.sha), [False])
    check.equal("the run after it", transfer(keys=["b", "a"], args=[2]), [10, 91])
    check.equal("SCRIPT LOAD", r.script_load(TRANSFER), transfer.sha)


def types(r, connect):
    want = [42, 2, -7, "text", "FINE", [1, ["nested", "k"]], None, 1, '{"a":[1,2]}', "2"]
    check.equal("replies", r.eval(shared.text("replies.lua"), 1, "k", "x", "y"), want)


def errors(r, connect):
    r.mset({"text": "abc", "a": 3})
    increment = r.register_script("return redis.call('INCR', KEYS[1])")
    where = f"script: {increment.sha}, on @user_script:1."
    text = f"value is not an integer or out of range {where}"
    check.error("of a command", text, lambda: increment(keys=["text"]), redis.ResponseError)
    transfer = r.register_script(TRANSFER)
    poor = lambda: transfer(keys=["a", "b"], args=[4])
    check.error("of the script", "POOR a has 3", poor, redis.ResponseError)
    missing = "No matching script. Please use EVAL."
    check.error("NOSCRIPT", missing, lambda: r.evalsha("0" * 40, 0), redis.exceptions.NoScriptError)
    try:
        r.eval("return (", 0)
    except redis.ResponseError as raised:
        compiling = str(raised).startswith("Error compiling script (new function): user_script:1: ")
        check.holds("of the compiler", compiling, raised)
    else:
        check.fail("of the compiler", "the script ran")


def read_only(r, connect):
    r.set("k", "v")
    check.equal("EVAL_RO", r.eval_ro("return redis.call('GET', KEYS[1])", 1, "k"), "v")
    source = "return redis.call('SET', KEYS[1], 'w')"
    sha = r.register_script(source).sha
    text = "Write commands are not allowed from read-only scripts. " \
        f"script: {sha}, on @user_script:1."
    check.error("a write", text, lambda: r.eval_ro(source, 1, "k"), redis.ResponseError)
    check.equal("nothing was written", r.get("k"), "v")


def in_transaction(r, connect):
    r.script_flush()
    pipe = r.pipeline().set("a", 5)
    r.register_script(TRANSFER)(keys=["a", "b"], args=[2], client=pipe)
    check.equal("EXEC", pipe.get("a").execute(), [True, [3, 2], "3"])


def seen_whole(r, connect):
    r.mset({"a": 1000, "b": 1000})
    working = [0, 1, 2, 3]
    wrong = []

    def work(number):
        own = connect()
        if number in working:
            transfer = own.register_script(TRANSFER)
            keys = ["a", "b"] if number % 2 == 0 else ["b", "a"]
            for _ in range(100):
                transfer(keys=keys, args=[number // 2 + 1])
            working.remove(number)
        while working:
            seen = own.mget("a", "b")
            if sum(map(int, seen)) != 2000:
                wrong.append(seen)

    shared.in_threads(5, work)
    check.equal("wrong sums", wrong, [])
    check.equal("what is left", r.mget("a", "b"), ["1000", "1000"])


def loaded(r, connect):
    r.function_flush()
    check.equal("FUNCTION LOAD", r.function_load(LIBRARY), "accounts")
    again = lambda: r.function_load(LIBRARY)
    check.error("FUNCTION LOAD again", "Library 'accounts' already exists", again)
    check.equal("FUNCTION LOAD REPLACE", r.function_load(LIBRARY, replace=True), "accounts")
    listed = r.function_list("acc*")[0]
    if isinstance(listed, list):
        listed = dict(zip(listed[::2], listed[1::2]))
        listed["functions"] = [dict(zip(f[::2], f[1::2])) for f in listed["functions"]]
    seen = (listed["library_name"], sorted(f["name"] for f in listed["functions"]))
    check.equal("FUNCTION LIST", seen, ("accounts", ["balance", "transfer"]))
    r.set("a", 10)
    check.equal("FCALL", r.fcall("transfer", 2, "a", "b", 3), 3)
    check.equal("what FCALL left", r.mget("a", "b"), ["7", "3"])
    check.equal("FUNCTION DELETE", r.function_delete("accounts"), True)
    gone = lambda: r.fcall("transfer", 2, "a", "b", 3)
    check.error("FCALL after it", "Function not found", gone)
    check.error("FUNCTION DELETE again", "Library not found", lambda: r.function_delete("accounts"))


def dumped(r, connect):
    plain = connect(decode_responses=False)
    r.function_load(LIBRARY, replace=True)
    dump = plain.function_dump()
    check.equal("FUNCTION FLUSH", r.function_flush("SYNC"), True)
    check.equal("FUNCTION LIST after it", r.function_list(), [])
    check.equal("FUNCTION RESTORE", r.function_restore(dump), True)
    r.set("a", "7")
    check.equal("FCALL", r.fcall("balance", 1, "a"), "7")
    again = lambda: r.function_restore(dump)
    check.error("FUNCTION RESTORE again", "Library accounts already exists", again)
    bad = lambda: r.function_restore(dump[:-1] + b"?", "REPLACE")
    check.error("FUNCTION RESTORE of another", "DUMP payload version or checksum are wrong", bad)
    r.function_flush()


def function_read_only(r, connect):
    r.function_load(LIBRARY, replace=True)
    r.set("a", "7")
    check.equal("FCALL_RO", r.fcall_ro("balance", 1, "a"), "7")
    text = "Can not execute a script with write flag using *_ro command."
    check.error("FCALL_RO that writes", text, lambda: r.fcall_ro("transfer", 2, "a", "b", 1))
    r.function_flush()


CASES = {
    "script: EVALSHA falls back to EVAL": falls_back,
    "script: types of replies": types,
    "script: errors": errors,
    "script: read only": read_only,
    "script: in a transaction": in_transaction,
    "script: seen whole": seen_whole,
    "function: loaded and called": loaded,
    "function: dumped and restored": dumped,
    "function: read only": function_read_only,
}
