//! The actor on a machine that is not there.

mod alarms;
mod faults;
mod life;
mod local;
mod rig;
mod unseen;
