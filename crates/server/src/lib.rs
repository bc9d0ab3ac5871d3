//! Floor 6: all input and output: event loops, threads, router, TLS.
