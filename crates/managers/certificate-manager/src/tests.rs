//! The actor against an API server in memory and real files; the test plays approver and signer.

mod faults;
mod keeping;
mod rig;
mod serving;
mod storing;
