mod fake;
mod life;
mod live_updates;
mod projected;
mod set_up;
mod tables;
mod tear_down;
