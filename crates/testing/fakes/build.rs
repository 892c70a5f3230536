//! Makes the server stubs: CRI over the messages of `cri-api`, and containerd's event service.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    for part in ["cri", "containerd"] {
        println!("cargo:rerun-if-changed={}", root.join(part).display());
    }
    let descriptors = protox::compile(["cri/v1/api.proto", "containerd/events.proto"], [&root])?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".runtime.v1", "::cri_api::v1")
        .compile_fds(descriptors)?;
    Ok(())
}
