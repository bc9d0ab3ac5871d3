//! Sockets, TLS, and the bytes that clients send and get. Nothing here knows a client's state.

pub(crate) mod listener;
pub(crate) mod output;
pub(crate) mod query_buffer;
pub(crate) mod tls;
pub(crate) mod transport;
