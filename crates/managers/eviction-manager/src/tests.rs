//! The actor on a machine that is not there.

mod alarms;
mod faults;
mod lanes;
mod life;
mod local;
mod rig;
mod unseen;
