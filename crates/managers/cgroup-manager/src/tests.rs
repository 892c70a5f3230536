mod life;
mod memory_qos;
mod rig;
mod system;
mod tables;
mod usage;
