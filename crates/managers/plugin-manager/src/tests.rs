mod handlers;
mod life;
mod refresh;
mod rig;
mod trouble;
