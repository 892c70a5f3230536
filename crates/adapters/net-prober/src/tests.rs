//! Against real sockets on the loopback.

mod server;
mod tls;
mod wire;
