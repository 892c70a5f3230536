//! Makes the Rust types from `proto/cri/v1/api.proto`: messages only, so that base needs no tonic.

use std::path::{Path, PathBuf};

/// Messages of which configs of pods and containers consist.
const KEPT: &[&str] = &[
    "CDIDevice",
    "Capability",
    "ContainerConfig",
    "ContainerMetadata",
    "DNSConfig",
    "Device",
    "HugepageLimit",
    "IDMapping",
    "ImageSpec",
    "Int64Value",
    "KeyValue",
    "LinuxContainerConfig",
    "LinuxContainerResources",
    "LinuxContainerSecurityContext",
    "LinuxPodSandboxConfig",
    "LinuxSandboxSecurityContext",
    "Mount",
    "NamespaceOption",
    "PodSandboxConfig",
    "PodSandboxMetadata",
    "PortMapping",
    "SELinuxOption",
    "SecurityProfile",
    "UserNamespace",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.join("cri").display());
    let descriptors = protox::compile(["cri/v1/api.proto"], [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    if std::env::var_os("CARGO_FEATURE_SERDE").is_some() {
        for message in KEPT {
            let path = format!(".runtime.v1.{message}");
            config.message_attribute(&path, "#[derive(::serde::Serialize, ::serde::Deserialize)]\n#[serde(default)]");
        }
    }
    config.compile_fds(descriptors.clone())?;
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    Ok(())
}
