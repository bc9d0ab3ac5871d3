//! Sockets, TLS, and the bytes that clients send and get.

pub(crate) mod accept;
pub(crate) mod connection;
pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod query_buffer;
pub(crate) mod read_batch;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod transport;
