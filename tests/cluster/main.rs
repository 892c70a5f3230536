//! bosun as the node of a real control plane. Run by `cargo xtask e2e cluster`.

mod away;
mod bed;
mod beside;
mod claims;
mod face;
mod identity;
mod kills;
mod mirror;
mod node;
mod objects;
mod plugins;
mod pods;
mod register;
mod transcript;
mod volumes;
