//! A manager in another process, seen from bosun: the actor that stands in for it, and the connection to it.
//!
//! **Owns** one connection at a time, made again with back-off; what the other side may do and how much of it; whether it is there.
//! **Never** believes it: it posts only rows that its role posts, of pods that are here, and only while this is the newest actor of
//! the role; it asks only what its role asks; it sees only the journal tables that its role keeps. Everything else is refused,
//! counted ([`Status`]) and logged.
//! **Read next** `judge.rs` (what is decided), then `remote.rs`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod connect;
mod judge;
mod keep;
mod link;
mod live;
mod remote;

pub use connect::{ConnectError, check, describe};
pub use judge::{Admitted, Owners, Unfit, admit};
pub use link::{Counted, Life, Link, Status};
pub use remote::{Remote, To, WhenAway};

/// The service of a manager.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stub {
    include!(concat!(env!("OUT_DIR"), "/bosun.manager.v1.rs"));
}
