//! Makes the Rust types from `proto/csi` and `proto/pluginregistration`: messages only, so that base needs no tonic.

use std::path::Path;

/// Messages that can hold secrets: what is printed of them is written by hand.
const SECRET: [&str; 3] =
    [".csi.v1.NodeStageVolumeRequest", ".csi.v1.NodePublishVolumeRequest", ".csi.v1.NodeExpandVolumeRequest"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    for part in ["csi", "pluginregistration"] {
        println!("cargo:rerun-if-changed={}", root.join(part).display());
    }
    let descriptors = protox::compile(["csi/v1/csi.proto", "pluginregistration/v1/api.proto"], [&root])?;
    prost_build::Config::new().btree_map(["."]).skip_debug(SECRET).compile_fds(descriptors)?;
    Ok(())
}
