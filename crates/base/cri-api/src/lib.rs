//! The CRI v1 messages of Kubernetes 1.36 as plain data, made from `proto/cri/v1/api.proto`.
//!
//! Messages only: who speaks gRPC (adapters, fakes) makes its own stubs over these types. Maps are ordered.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// Package `runtime.v1`.
#[allow(missing_docs, clippy::pedantic, clippy::doc_markdown)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/runtime.v1.rs"));
}

/// The file descriptor set that [`v1`] was made from, encoded.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
