//! Metrics over HTTP, for monitoring systems and browsers: `/metrics`, `/healthz`, and a page.
//!
//! One thread serves all connections. It takes no shard and never enters the gate, and reads the
//! same counts as INFO. Clients may be slow or hostile, so connections, the bytes of a request, the
//! time of an exchange and the exchanges of a second all have limits, and only GET and HEAD are
//! answered. Each connection is for one exchange.
//!
//! A request names the host that it is for. Names that are not this server's are refused: a page
//! from elsewhere could have its own name point here, and then read the answers.
//!
//! There is no password and no TLS: where the port is bound to more than this host, something in
//! front of it has to see to that. Without a port there is no thread.

mod answer;
mod connections;
mod exchange;
mod host;
mod service;
mod source;

pub(crate) use connections::FILES_MAX;
pub(crate) use service::MetricsService;
