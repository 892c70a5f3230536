//! What a node knows of a mount, and what an answer changes in it (node-and-resources 10.1).

use csi_api::CsiOutcome;

/// What is known of a volume that a driver staged or published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mount {
    /// It is not there.
    #[default]
    Absent,
    /// It may be there: a call is under way, or nobody knows what became of one.
    Uncertain,
    /// It is there.
    Present,
}

/// The state after a call to set up failed. `found`: the mount was found at the start of the daemon, made by a former one.
#[must_use]
pub const fn after_failure(before: Mount, error: CsiOutcome, found: bool) -> Mount {
    match (before, error) {
        (Mount::Present, _) => Mount::Present,
        (Mount::Absent, CsiOutcome::Uncertain) => Mount::Uncertain,
        (Mount::Absent, _) => Mount::Absent,
        (Mount::Uncertain, CsiOutcome::Final) if !found => Mount::Absent,
        (Mount::Uncertain, _) => Mount::Uncertain,
    }
}
