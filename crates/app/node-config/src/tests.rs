mod accepted;
mod broken;
mod configz;
mod durations;
mod files;
mod flags;
mod flagz;
mod gates;
mod layers;
mod managers;

use std::path::Path;

use crate::{ConfigError, NodeConfig, Warning};

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/// Reads a configuration of which only the interesting lines are given.
fn read(lines: &str) -> Result<(NodeConfig, Vec<Warning>), Vec<ConfigError>> {
    crate::parse(&format!("{HEAD}{lines}\n"), Path::new("/etc/bosun"))
}

fn good(lines: &str) -> NodeConfig {
    read(lines).unwrap_or_else(|errors| panic!("{lines}: {errors:?}")).0
}

fn warnings(lines: &str) -> Vec<String> {
    read(lines).unwrap().1.iter().map(ToString::to_string).collect()
}
