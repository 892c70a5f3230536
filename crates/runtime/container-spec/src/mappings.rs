//! Ranges of ids.

use cri_api::v1;
use oci_spec::runtime::{LinuxIdMapping, LinuxIdMappingBuilder};

use crate::SpecError;

/// Mappings in words of the specification.
///
/// # Errors
/// [`SpecError::Built`], which the builder never answers with all fields set.
pub(crate) fn mappings(all: &[v1::IdMapping]) -> Result<Vec<LinuxIdMapping>, SpecError> {
    let one = |m: &v1::IdMapping| {
        let mapping = LinuxIdMappingBuilder::default();
        Ok(mapping.host_id(m.host_id).container_id(m.container_id).size(m.length).build()?)
    };
    all.iter().map(one).collect()
}
