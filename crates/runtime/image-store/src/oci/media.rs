//! Types of documents and layers: OCI's and Docker's names for the same.

/// An image of several machines, by OCI.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The same, by Docker.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// One image, by OCI.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The same, by Docker.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// All that may stand for an image, as the `Accept` header of a registry has it.
pub const ACCEPT: [&str; 4] = [OCI_INDEX, DOCKER_LIST, OCI_MANIFEST, DOCKER_MANIFEST];

/// Whether a type is an index (`true`) or a manifest; `None`: it says neither.
#[must_use]
pub fn kind(media_type: &str) -> Option<bool> {
    // A registry may add parameters, such as a charset.
    match media_type.split(';').next().unwrap_or_default().trim() {
        OCI_INDEX | DOCKER_LIST => Some(true),
        OCI_MANIFEST | DOCKER_MANIFEST => Some(false),
        _ => None,
    }
}

/// Whether a manifest with such a configuration is a container's. Some builders name no type.
#[must_use]
pub fn is_image_config(media_type: &str) -> bool {
    matches!(media_type, OCI_CONFIG | DOCKER_CONFIG | "application/octet-stream" | "")
}

/// Whether a layer is a tar that this machine's files can come from. How it is compressed its first bytes say.
#[must_use]
pub fn is_layer(media_type: &str) -> bool {
    let oci = media_type.strip_prefix("application/vnd.oci.image.layer.");
    let oci = oci.map(|l| l.strip_prefix("nondistributable.").unwrap_or(l));
    let docker = media_type.strip_prefix("application/vnd.docker.image.rootfs.");
    match (oci, docker) {
        (Some(kind), _) => matches!(kind, "v1.tar" | "v1.tar+gzip" | "v1.tar+zstd"),
        (_, Some(kind)) => matches!(kind, "diff.tar" | "diff.tar.gzip" | "diff.tar.zstd" | "foreign.diff.tar.gzip"),
        _ => false,
    }
}
