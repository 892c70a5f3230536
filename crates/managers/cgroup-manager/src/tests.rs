mod life;
mod memory_qos;
mod rig;
mod tables;
