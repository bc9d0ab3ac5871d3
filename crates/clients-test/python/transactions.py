"""Transactions: redis-py's pipelines, which are MULTI and EXEC by default, and their WATCH."""

import check
import redis
import shared

NOT_INTEGER = "value is not an integer or out of range"


def replies(r, connect):
    pipe = r.pipeline()
    pipe.set("n", 41).incr("n").get("n").lpush("l", "a", "b").lrange("l", 0, -1).get("none")
    check.equal("replies", pipe.execute(), [True, 42, "42", 2, ["b", "a"], None])


def error_inside(r, connect):
    pipe = r.pipeline().set("text", "abc").incr("text").append("text", "d")
    answers = pipe.execute(raise_on_error=False)
    check.equal("the error", str(answers[1]), NOT_INTEGER)
    check.equal("its neighbours", (answers[0], answers[2]), (True, 4))
    check.equal("they ran", r.get("text"), "abcd")
    pipe = r.pipeline().incr("text").append("text", "e")
    text = f"Command # 1 (INCRBY text 1) of pipeline caused error: {NOT_INTEGER}"
    check.error("as an exception", text, pipe.execute, redis.ResponseError)
    check.equal("what follows the error ran", r.get("text"), "abcde")


def refused_inside(r, connect):
    r.set("k", "old")
    pipe = r.pipeline().set("k", "new").execute_command("NOSUCH", "a")
    text = "Command # 2 (NOSUCH a) of pipeline caused error: unknown command 'NOSUCH', " \
        "with args beginning with: 'a' "
    check.error("the refused command", text, pipe.execute, redis.ResponseError)
    run = r.execute_command
    run("MULTI")
    check.equal("INCR is queued", run("INCR", "k"), "QUEUED")
    check.error("an arity", "wrong number of arguments for 'get' command", lambda: run("GET"))
    aborted = "Transaction discarded because of previous errors."
    check.error("EXEC", aborted, lambda: run("EXEC"), redis.exceptions.ExecAbortError)
    check.equal("nothing ran", r.get("k"), "old")


def discarded(r, connect):
    run = r.execute_command
    run("MULTI")
    check.equal("INCR is queued", run("INCR", "n"), "QUEUED")
    check.equal("DISCARD", run("DISCARD"), "OK")
    check.error("EXEC after it", "EXEC without MULTI", lambda: run("EXEC"))
    check.equal("nothing ran", r.exists("n"), 0)
    check.equal("the next one", r.pipeline().incr("n").execute(), [1])


def seen_whole(r, connect):
    keys = [f"whole:{i}" for i in range(16)]
    r.mset({key: "0" for key in keys})
    writers = [0, 1, 2]
    torn = []

    def work(number):
        own = connect()
        if number in writers:
            for i in range(100):
                pipe = own.pipeline()
                for key in keys:
                    pipe.set(key, f"{number}:{i}")
                pipe.execute()
            writers.remove(number)
        while writers:
            seen = own.mget(keys)
            if len(set(seen)) != 1:
                torn.append(seen)

    shared.in_threads(5, work)
    check.equal("values of two transactions in one MGET", torn, [])


def change_aborts(r, connect):
    r.set("k", "1")
    with r.pipeline() as pipe:
        pipe.watch("k")
        check.equal("GET while watching", pipe.get("k"), "1")
        connect().set("k", "other")
        pipe.multi()
        pipe.set("k", "mine").set("k2", "mine")
        check.error("EXEC", "Watched variable changed.", pipe.execute, redis.WatchError)
    check.equal("nothing ran", r.mget("k", "k2"), ["other", None])


def unwatched(r, connect):
    with r.pipeline() as pipe:
        pipe.watch("k")
        connect().set("k", "other")
        pipe.unwatch()
        pipe.multi()
        pipe.append("k", "+mine")
        check.equal("EXEC", pipe.execute(), [10])


def retried(r, connect):
    tries = []

    def once(pipe):
        tries.append(pipe.get("n"))
        if len(tries) == 1:
            connect().set("n", "10")
        pipe.multi()
        pipe.set("n", int(pipe_value(tries)) + 1)

    pipe_value = lambda seen: seen[-1] or 0
    check.equal("transaction()", r.transaction(once, "n"), [True])
    check.equal("it ran twice", (tries, r.get("n")), ([None, "10"], "11"))
    r.set("n", 0)

    def count(number):
        own = connect()

        def increment(pipe):
            value = int(pipe.get("n"))
            pipe.multi()
            pipe.set("n", value + 1)

        for _ in range(20):
            own.transaction(increment, "n")

    shared.in_threads(5, count)
    check.equal("5 clients count to 100", r.get("n"), "100")


CASES = {
    "transaction: replies in order": replies,
    "transaction: an error inside": error_inside,
    "transaction: a refused command aborts": refused_inside,
    "transaction: discarded": discarded,
    "transaction: seen whole": seen_whole,
    "watch: a change aborts": change_aborts,
    "watch: unwatched": unwatched,
    "watch: retried until it holds": retried,
}
