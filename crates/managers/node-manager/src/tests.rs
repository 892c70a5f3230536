mod faults;
mod lease;
mod life;
mod outage;
mod rig;
mod volumes;
