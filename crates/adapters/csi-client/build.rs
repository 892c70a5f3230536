//! Makes the client stubs: the Node service of CSI and the registration of plugins, over the messages of `csi-api`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    for part in ["csi", "pluginregistration"] {
        println!("cargo:rerun-if-changed={}", root.join(part).display());
    }
    let descriptors = protox::compile(["csi/v1/csi.proto", "pluginregistration/v1/api.proto"], [&root])?;
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".csi.v1", "::csi_api::v1")
        .extern_path(".pluginregistration", "::csi_api::registration")
        .compile_fds(descriptors)?;
    Ok(())
}
