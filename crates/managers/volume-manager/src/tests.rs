mod class;
mod life;
mod live_updates;
mod projected;
mod rig;
mod set_up;
mod tables;
mod tear_down;
