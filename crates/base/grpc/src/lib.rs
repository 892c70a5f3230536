//! gRPC over a unix socket, straight on h2 (`docs/decisions/0020-cri-straight-on-h2.md`): connections that are made when they
//! are needed, fail fast while the server is away, and come back by themselves; statuses as codes and words of ours. A server of the
//! same process takes calls without HTTP/2 ([`Local`]).
//!
//! Knows no service: adapters bring their stubs, deadlines and limits. Retries no call.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod channel;
mod connect;
mod local;
mod socket;
mod status;
mod traced;

pub use channel::{Answer, Channel};
pub use connect::{Connections, Connector, Gate, Io, Link, unix};
pub use local::Local;
pub use status::read;
