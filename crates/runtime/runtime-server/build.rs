//! Makes the CRI server stubs over the messages of `cri-api`, and a client's for tests.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.join("cri").display());
    let descriptors = protox::compile(["cri/v1/api.proto"], [&root])?;
    tonic_prost_build::configure()
        .build_client(true)
        .extern_path(".runtime.v1", "::cri_api::v1")
        .compile_fds(descriptors)?;
    Ok(())
}
