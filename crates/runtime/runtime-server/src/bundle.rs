//! What a container is started with: the folder that an OCI runtime, or the supervisor, is given.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use oci_spec::runtime::Spec;

use crate::error::{At, Done};

/// Name of the spec.
pub(crate) const CONFIG: &str = "config.json";
/// Bytes of it.
const MAX_SPEC: u64 = 16 << 20;

/// What a container was made with.
pub(crate) fn spec(bundle: &Path) -> Done<Spec> {
    let path = bundle.join(CONFIG);
    let mut text = Vec::new();
    let file = File::open(&path).at("open", &path)?;
    file.take(MAX_SPEC).read_to_end(&mut text).at("read", &path)?;
    serde_json::from_slice(&text).map_err(io::Error::from).at("read", &path)
}
