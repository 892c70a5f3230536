//! Makes the server stubs, and the descriptors by which calls are logged.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    for part in ["csi", "pluginregistration"] {
        println!("cargo:rerun-if-changed={}", root.join(part).display());
    }
    let descriptors = protox::compile(["csi/v1/csi.proto", "pluginregistration/v1/api.proto"], [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".csi.v1", "::csi_api::v1")
        .extern_path(".pluginregistration", "::csi_api::registration")
        .compile_fds(descriptors)?;
    Ok(())
}
