//! A CSI driver for tests, on real mounts: it registers itself in the folder `plugins_registry` as drivers do, keeps volumes
//! below one folder, and has trouble when it is told to.
//!
//! Volumes need no provisioning: one is made when it is first used, as its volume context says. `kind: dir` (also without a
//! word) is a directory that is bind mounted; `kind: ext4` an image with a file system on a loop device; a volume that is
//! asked for as a block device is an image on a loop device. `size` is that of an image, in bytes. A volume with
//! `csi.storage.k8s.io/ephemeral: "true"` goes when it is unpublished.
//!
//! The log has one line of JSON per call, with all fields of the request and what was answered. Mounts need root.

#![forbid(unsafe_code)]

mod config;
mod faults;
mod journal;
mod mounts;
mod service;
mod volumes;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use faults::{Effect, Rule};
pub use service::{Driver, NotRegistered};

/// Generated server stubs.
#[allow(unreachable_pub, missing_docs, clippy::all, clippy::pedantic)]
mod stubs {
    pub mod csi {
        include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
    }
    pub mod registration {
        include!(concat!(env!("OUT_DIR"), "/pluginregistration.rs"));
    }
}
