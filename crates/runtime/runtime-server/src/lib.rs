//! A container runtime of our own behind the CRI: pods without containerd.
//!
//! [`serve`] answers CRI v1 on a unix socket. Containers are started by an OCI runtime and held by one `bosun-pod` per pod
//! (`pod-supervisor`): this server may die at any moment and finds everything again, by records on the disk ([`records`]) and by
//! asking the supervisors ([`recover`]). What a pod is made of is made in steps, each of which can be undone twice
//! ([`sandbox`]); what a container's process is made of is decided by `container-spec`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod apparmor;
mod blocking;
mod broken;
mod bundle;
mod cdi;
mod cgroups;
mod container;
mod ends;
mod error;
mod events;
mod exec;
mod file;
mod follow;
mod handlers;
mod images;
mod joining;
mod network;
mod node;
mod options;
mod pod_files;
mod process;
mod records;
mod recover;
mod runtime;
mod sandbox;
mod serve;
mod service;
mod sessions;
mod starts;
mod stats;
mod status;
mod streams;
mod supervisor;
mod sysctls;
mod users;

/// The CRI's services.
#[allow(missing_docs, clippy::pedantic, clippy::doc_markdown, clippy::default_trait_access)]
pub mod cri {
    include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
}

pub use error::RuntimeError;
pub use file::RuntimeFile;
pub use images::{DirectoryImages, ImageError, ImageView, Images, StoreImages};
pub use network::{CniNetworks, NetworkError, NoNetwork, PodNetwork, PodNetworks};
pub use options::{Options, Snapshotter};
pub use serve::{Server, serve};
