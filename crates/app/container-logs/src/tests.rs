mod answers;
mod crowd;
mod follow;
mod rig;
mod slow;
