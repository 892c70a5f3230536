mod api;
mod examples;
mod faults;
mod http;
mod inotify;
mod rig;
mod rules;
mod single;
