//! What a node does, beside what a kubelet 1.36.2 did with the same pods (`tests/golden`).
//!
//! Owns: reading the recordings, the common form of calls, statuses, events and the Node object, what differs, and which
//! differences `docs/compat.md` lists. The program `golden` runs all cases on a real test bed; `tests/it` runs a whole node
//! on fakes and checks the comparison itself.
//! Never: says that a difference is fine without a row and a reason.

#![forbid(unsafe_code)]

pub mod align;
pub mod bed;
pub mod calls;
pub mod cri;
pub mod documented;
pub mod life;
pub mod node_object;
pub mod normal;
pub mod recorder;
pub mod recording;
pub mod report;
pub mod server;
pub mod status;
