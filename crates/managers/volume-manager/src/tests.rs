mod fake;
mod life;
mod set_up;
mod tables;
mod tear_down;
