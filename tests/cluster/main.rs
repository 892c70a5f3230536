//! bosun as the node of a real control plane. Run by `cargo xtask e2e cluster`.

mod away;
mod bed;
mod beside;
mod certificates_in_pods;
mod claims;
mod elsewhere;
mod evicts;
mod face;
mod grows;
mod hangs;
mod identity;
mod kills;
mod local;
mod logind;
mod many;
mod mirror;
mod node;
mod objects;
mod plugins;
mod pods;
mod register;
mod resizes;
mod shuts_down;
mod site;
mod transcript;
mod volumes;
