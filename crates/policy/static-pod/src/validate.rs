//! Create-validation as an API server does it for the fields that a node uses. Every check notes what it finds and goes on,
//! so that one answer holds all faults.

mod containers;
mod env;
mod faults;
mod metadata;
mod mounts;
mod names;
mod network;
mod paths;
mod probes;
mod resources;
mod scheduling;
mod security;
mod spec;
mod volumes;

use model::core::Pod;

use crate::error::FieldError;

use faults::Faults;
pub(crate) use volumes::volume_sources;

/// All faults of a defaulted pod, in the order of its fields.
pub(crate) fn validate(pod: &Pod) -> Vec<FieldError> {
    let mut faults = Faults::default();
    metadata::validate(pod, &mut faults);
    match &pod.spec {
        Some(spec) => spec::validate(pod, spec, &mut faults),
        None => faults.required("spec", "a pod needs a specification"),
    }
    faults.into_all()
}
