//! bosun's own VolumeManager in a process of its own, for nodes without a cluster: without claims and CSI drivers.
//! `BOSUN_ROOT_DIR` says which folder is the root directory of the node.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use host_linux::{LinuxFs, LinuxMounts};

fn main() -> ExitCode {
    let root_dir = match across::variable("BOSUN_ROOT_DIR") {
        Ok(root_dir) => PathBuf::from(root_dir),
        Err(why) => {
            eprintln!("Error: {why}");
            return ExitCode::FAILURE;
        }
    };
    // What outlives the actor.
    let made = conform::ours::volume_manager(Arc::new(LinuxFs), Arc::new(LinuxMounts), root_dir);
    bosun_manager_sdk::main(move |crew, _outside| made(crew))
}
