//! Where the container runtime is.

use serde_json::Value;

use crate::config::{EMBEDDED, Runtime};
use crate::error::ConfigError;
use crate::reader::{Reader, set};

pub(super) fn runtime(r: &mut Reader<'_>, c: &mut Runtime) {
    const IMAGES: &str = "imageServiceEndpoint";
    set(&mut c.container_runtime_endpoint, endpoint(r, "containerRuntimeEndpoint"));
    let images = endpoint(r, IMAGES);
    if let Some(images) = &images {
        // Its pods run on images of its own store, which nobody else fills.
        let own = [images, &c.container_runtime_endpoint].into_iter().any(|e| e.starts_with(EMBEDDED));
        if own && *images != c.container_runtime_endpoint {
            let error = ConfigError::new(IMAGES, "bosun's own runtime and its images go together");
            let allowed = format!("{}, or leave it out", c.container_runtime_endpoint);
            r.findings.error(error.value(&Value::from(images.as_str())).allowed(allowed));
        }
    }
    c.image_service_endpoint = images.unwrap_or_else(|| c.container_runtime_endpoint.clone());
    set(&mut c.runtime_request_timeout, r.some_duration("runtimeRequestTimeout"));
}

/// A unix socket, or the runtime within the daemon. TCP is refused: CRI has no authentication, whoever reaches the port owns the
/// node.
fn endpoint(r: &mut Reader<'_>, name: &'static str) -> Option<String> {
    const ALLOWED: &str = "unix:///absolute/path, embedded://, embedded:///path/of/its/file";
    let text = r.some_text(name)?;
    let mut refuse = |reason: &str| {
        r.findings.error(ConfigError::new(name, reason).value(&Value::from(text.as_str())).allowed(ALLOWED));
        None
    };
    match text.split_once("://") {
        Some(("unix", path)) if path.starts_with('/') && path.len() > 1 => Some(text),
        Some(("unix", _)) => refuse("must be an absolute path of a socket"),
        Some(("embedded", file)) if file.is_empty() || (file.starts_with('/') && file.len() > 1) => Some(text),
        Some(("embedded", _)) => refuse("must be followed by nothing, or by the absolute path of the runtime's file"),
        Some(("tcp", _)) => refuse("tcp is refused: CRI has no authentication, whoever reaches the port owns the node"),
        Some(_) => refuse("this protocol is not supported on Linux"),
        None if text.starts_with('/') => {
            r.findings.warn(name, "a bare path is deprecated, write unix:// in front of it");
            Some(format!("unix://{text}"))
        }
        None => refuse("must be an absolute path of a socket"),
    }
}
