//! Makes the server stub of a manager's service, over the messages of `seam`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.join("bosun").display());
    let descriptors = protox::compile(["bosun/manager/v1/manager.proto"], [&root])?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".bosun.manager.v1", "::seam::v1")
        .compile_fds(descriptors)?;
    Ok(())
}
