//! What a container is started with: the folder that an OCI runtime, or the supervisor, is given.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use oci_spec::runtime::Spec;
use pod_supervisor::FILTER;
use seccomp_filter::Filter;

use crate::error::{At, Done};
use crate::options::private_file;

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

/// Writes the filter that a supervisor loads into what becomes a process of the container. It is there before the container is started.
pub(crate) fn write_filter(bundle: &Path, filter: &Filter) -> Done<()> {
    let path = bundle.join(FILTER);
    let text = serde_json::to_vec(filter).map_err(io::Error::from).at("write", &path)?;
    private_file(&path, &text)
}

/// The file with that filter, if there is one.
pub(crate) fn filter(bundle: &Path) -> Option<PathBuf> {
    Some(bundle.join(FILTER)).filter(|path| path.exists())
}
