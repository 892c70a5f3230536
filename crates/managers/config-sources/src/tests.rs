mod examples;
mod faults;
mod inotify;
mod rig;
mod rules;
mod single;
