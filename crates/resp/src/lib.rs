//! Floor 1: bytes to requests and replies to bytes, in RESP2 and RESP3.
