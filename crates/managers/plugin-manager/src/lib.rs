//! PluginManager: plugins that register themselves in the folder `plugins_registry`.
//!
//! **Owns** the boards of registered CSI drivers and of the sockets in that folder. It does not look at the folder yet: no
//! plugin is registered, and both boards are empty.

#![forbid(unsafe_code)]

mod actor;

pub use crate::actor::PluginManager;
