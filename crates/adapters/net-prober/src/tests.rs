//! Against real sockets on the loopback.

mod server;
mod silent;
mod tls;
mod wire;
