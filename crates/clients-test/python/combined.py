"""The cases that every language has: cases/combined.txt says what they assert."""

import check
import scripts
import shared
import transactions
import users

CASES = {**transactions.CASES, **scripts.CASES, **users.CASES}


def run(r, connect):
    """`r` has one connection; `connect(**options)` makes clients of the same protocol."""
    names = shared.names("combined.txt")
    check.equal("the cases of the list", sorted(CASES), sorted(names))
    for name in names:
        r.flushall()
        CASES[name](r, connect)
        print("ok case", name, flush=True)
    r.flushall()
