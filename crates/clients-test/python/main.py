"""Runs the cases with one library.

Usage: main.py redis-py|valkey-py, with the server's addresses in WEFT_* variables.
"""

import sys

import clients
import redis
import valkey

clients.run({"redis-py": redis, "valkey-py": valkey}[sys.argv[1]])
