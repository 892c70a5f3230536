mod collecting;
mod credentials;
mod plugins;
mod requests;
mod rig;
