//! The actor in simulated time, on real files, beside a fake runtime.

mod life;
mod rig;
mod trouble;
