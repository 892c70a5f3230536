//! From the bytes of one static pod manifest to the pod that the node runs, or to everything that is wrong with it.
//!
//! Owns: decoding (YAML or JSON, [`yaml`]), the defaults that an API server would have set, the kubelet's own defaults for static
//! pods, create-validation, and the refusal of references to API objects (pod-lifecycle 1.8, interfaces 11.1).
//! Never reads a file, a clock or the network, and never panics on any input.

#![forbid(unsafe_code)]

mod decode;
mod defaults;
mod error;
mod identity;
mod origin;
mod references;
mod set;
mod validate;
pub mod yaml;

#[cfg(test)]
mod tests;

pub use error::{Fault, FieldError, MAX_MANIFEST_BYTES, ManifestError, Warning};
pub use origin::{Origin, Source};
pub use set::{Shadowed, collapse, first_of_each};

use model::core::Pod;

/// A manifest that may run.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// The pod with all defaults set: name with the node's suffix, UID, namespace, node name, phase Pending.
    pub pod: Pod,
    /// What was found odd and ignored, such as unknown fields.
    pub warnings: Vec<Warning>,
}

/// Reads one manifest: decode, API defaults, kubelet defaults, create-validation, reference restrictions - in this order,
/// so that the UID depends on the decoded content alone and not on comments or white space.
///
/// # Errors
/// Says what is wrong, with the path of each field concerned. All faults of one stage are reported together.
pub fn read_manifest(bytes: &[u8], origin: &Origin<'_>) -> Result<Manifest, ManifestError> {
    let decode::Decoded { mut pod, warnings } = decode::decode(bytes)?;
    defaults::api_defaults(&mut pod);
    identity::kubelet_defaults(&mut pod, origin)?;
    let mut faults = validate::validate(&pod);
    faults.extend(references::api_references(&pod));
    if faults.is_empty() { Ok(Manifest { pod, warnings }) } else { Err(ManifestError::Invalid(faults)) }
}
