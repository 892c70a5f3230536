//! PluginManager: plugins that register themselves by a socket in the folder `plugins_registry`.
//!
//! **Owns** what each socket there is registered as, the boards of sockets and of CSI drivers, and the CSINode object.
//! **Answers** VolumeManager, which has a driver asked again for what it says of this node.
//! **Asks** plugins and drivers through their ports, NodeManager to put a driver's words onto the Node; reads NodeManager's
//! view, as a CSINode belongs to its Node, and follows the CSIDriver objects.
//! **Never** writes the Node, calls a driver for a volume, or waits for one plugin with another.
//! **Lost on restart** is nothing of what is registered: the board has it, the folder says what is there. A daemon that starts
//! asks every plugin anew.
//! **Read next** `world.rs` (what is done about a socket), then `actor.rs`, `register.rs`; a type of plugins is a `PluginHandler`: `csi_handler.rs`
//! has that of CSI drivers, `check.rs` which of them may be registered, `csi_node.rs` the object, `refresh.rs` what they are asked again.

#![forbid(unsafe_code)]

mod absent;
mod actor;
mod check;
mod csi_handler;
mod csi_node;
mod deps;
mod periods;
mod refresh;
mod register;
mod requests;
mod scan;
mod watches;
mod world;

#[cfg(test)]
mod tests;

pub use crate::actor::PluginManager;
pub use crate::deps::{Config, Deps};

/// How words of plugins and drivers are read; open to fuzzing, as these are not ours.
pub mod reading {
    pub use crate::check::csi_driver;
    pub use crate::csi_node::told;
}
