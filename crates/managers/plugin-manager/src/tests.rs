mod life;
mod rig;
mod trouble;
