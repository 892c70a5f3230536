//! A whole node beside the recording of a kubelet 1.36.2 (`tests/golden`): same pod, same mutating CRI requests, field by field,
//! same statuses, same events.
//!
//! Left out: ids, times, and what a static pod changes by rule (see `normal`). Differences that stay are listed with
//! their reasons in `docs/compat.md`.

mod comparison;
mod fake;
mod listed;
mod node;
mod normal;
mod replay;
mod script;
mod whole;
