//! Server: what the node tells about itself. Owns nothing: reads boards, streams files.
//!
//! `front` is the HTTPS server of the node and its read-only sibling;
//! `local` answers the CLI over a unix socket that only root may open; `healthz` says on a plain port that the node lives;
//! `listener` is what their sockets have in common.

#![forbid(unsafe_code)]

pub mod front;
pub mod healthz;
pub mod listener;
pub mod local;
