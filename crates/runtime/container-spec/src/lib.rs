//! What a container is in CRI words, said in words of the OCI runtime specification.
//!
//! A pure function from a container's config, its pod's, its image's and facts of the node to a `config.json`. Whatever has to be
//! looked at first (files of the image, devices, where a path of the node leads) is looked at by the caller and passed in. The
//! rules are those of containerd 2.x (`internal/cri/opts`, `internal/cri/server/container_create*.go`), so that a pod is the same
//! behind either runtime; where this differs, the function says so.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod brought;
mod capabilities;
pub mod cdi;
mod cgroup;
mod context;
mod devices;
mod error;
mod facts;
mod filter;
mod mappings;
mod mounts;
mod namespaces;
mod plain;
mod process;
mod profile;
mod resources;
mod security;
mod spec;
mod users;

#[cfg(test)]
mod tests;

pub use capabilities::CapabilityNames;
pub use cgroup::{cgroup_of, cgroup_path, slice_of};
pub use error::SpecError;
pub use facts::{
    AppArmor, Brought, DeviceKind, DeviceNode, ImageProcess, MountSource, NodeFacts, PodFiles, PodNamespaces, Request,
    SourcePropagation, UserFiles,
};
pub use filter::profile_filter;
pub use mounts::is_image;
pub use namespaces::pod_namespace_options;
pub use plain::{has_profile, is_plain_command, is_plain_container};
pub use resources::linux_resources;
pub use security::{SeccompChoice, seccomp_choice};
pub use spec::container_spec;
pub use users::{ContainerUser, container_user};
