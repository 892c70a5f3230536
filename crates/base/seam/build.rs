//! Makes the Rust types from `proto/bosun/manager`: messages only, so that base needs no tonic.

use std::path::Path;

/// Frames whose bodies hold pods and secrets: none of it is printed.
const SECRET: [&str; 9] = ["ToManager", "FromManager", "Rows", "Row", "Call", "Answer", "Keep", "Line", "Kept"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.join("bosun").display());
    let descriptors = protox::compile(["bosun/manager/v1/manager.proto"], [&root])?;
    prost_build::Config::new()
        .skip_debug(SECRET.map(|name| format!(".bosun.manager.v1.{name}")))
        .compile_fds(descriptors)?;
    Ok(())
}
