//! The node's configuration: a KubeletConfiguration v1beta1 file to plain typed values (interfaces 1).
//!
//! Owns: defaults, types, ranges, cross-field rules, and honest answers about fields that bosun does not use yet. Every field
//! of v1beta1 is known by name and checked for its type. All mistakes are reported together. Also owns the command line of a
//! kubelet ([`flags`]), as most flags stand for fields, and the layers between defaults and flags ([`configure`]).

#![forbid(unsafe_code)]

mod config;
mod configz;
mod document;
mod error;
pub mod feature_gates;
mod fields;
mod findings;
pub mod flags;
mod flagz;
mod labels;
mod layers;
mod managers;
mod nearest;
mod read;
mod reader;
mod tls_names;

#[cfg(test)]
mod tests;

pub use config::{
    ApiAccess, Authentication, Authorization, AuthorizationMode, Cgroups, ChangeDetection, ContainerLogs, Dns,
    EMBEDDED, EmbeddedRuntime, Enforce, Eviction, FileVerbosity, Healthz, Host, Images, LogFormat, Logging, MemoryQos,
    NodeAllocatable, NodeConfig, NodeObject, NodeShutdown, PodLimits, PodSources, Pods, PullVerification, Reserved,
    Runtime, Server, ServerTls, ShutdownPeriod, SoftThreshold, Threshold, TlsVersion, Tracing, TracingEndpoint,
};
pub use configz::configz;
pub use error::{ConfigError, ConfigErrors, Warning};
pub use flags::{AfterBoot, Flags, KUBERNETES_VERSION};
pub use flagz::flagz;
pub use layers::{Configured, configure};
pub use managers::{REMOTE_MANAGERS, RemoteManager, RemoteManagers, WhenAway, chosen};

use std::path::Path;

/// Reads and checks one configuration file, as [`configure`] with nothing but `--config`.
///
/// # Errors
/// Everything that is wrong with the file, together: unreadable, empty, not YAML or JSON, another kind, wrong types, values
/// that are not allowed, fields that contradict each other.
pub fn load(path: &Path) -> Result<(NodeConfig, Vec<Warning>), ConfigErrors> {
    let flags = Flags { config: Some(path.to_owned()), ..Flags::default() };
    configure(&flags).map(|c| (c.config, c.warnings))
}

/// As [`load`], for text that is in memory already. `folder` is where relative paths start.
///
/// # Errors
/// As [`load`], without the file's name.
pub fn parse(text: &str, folder: &Path) -> Result<(NodeConfig, Vec<Warning>), Vec<ConfigError>> {
    let mut warnings = Vec::new();
    let mut document = document::parse(text, &mut warnings).map_err(|e| vec![e])?;
    document::resolve_paths(&mut document, folder);
    read::default_thresholds(&mut document);
    read::read(document, warnings).map_err(|found| found.errors)
}
