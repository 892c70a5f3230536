//! Volumes that servers share.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use crate::source::{Resolved, Source};

/// What is mounted for a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// As `mount -t` has it.
    pub kind: &'static str,
    /// Server and path.
    pub source: String,
    /// As `mount -o` has them.
    pub options: Vec<String>,
}

/// What is mounted for a volume; `None`: no server shares it.
#[must_use]
pub fn share(volume: &Resolved) -> Option<Share> {
    let Source::Nfs { server, path } = &volume.source else { return None };
    let server = if server.parse::<Ipv6Addr>().is_ok() { format!("[{server}]") } else { server.clone() };
    let mut options: BTreeSet<String> = volume.mount_options.iter().filter(|o| !o.is_empty()).cloned().collect();
    options.extend(volume.read_only.then(|| "ro".to_owned()));
    Some(Share { kind: "nfs", source: format!("{server}:{path}"), options: options.into_iter().collect() })
}
