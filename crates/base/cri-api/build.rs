//! Makes the Rust types from `proto/cri/v1/api.proto`: messages only, so that base needs no tonic.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../../proto");
    println!("cargo:rerun-if-changed={}", root.join("cri").display());
    let descriptors = protox::compile(["cri/v1/api.proto"], [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    prost_build::Config::new().btree_map(["."]).compile_fds(descriptors.clone())?;
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    Ok(())
}
