mod life;
mod rig;
mod tables;
