//! bosun's own ImageManager in a process of its own. `IMAGE_SERVICE_ENDPOINT` says where the runtime's image service is,
//! `BOSUN_ROOT_DIR` which folder is the root directory of the node. Its settings are those that a node has by default.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use across::variable;
use conform::ours::image_manager;
use cri_client::{CriClient, Deadlines, Endpoint, Options};
use host_linux::LinuxFs;

fn main() -> ExitCode {
    let (endpoint, root_dir) = match (endpoint(), variable("BOSUN_ROOT_DIR")) {
        (Ok(endpoint), Ok(root_dir)) => (endpoint, PathBuf::from(root_dir)),
        (Err(why), _) | (_, Err(why)) => {
            eprintln!("Error: {why}");
            return ExitCode::FAILURE;
        }
    };
    // What outlives the actor. A client is made within the runtime that the factory is called in.
    let made = OnceLock::new();
    bosun_manager_sdk::main(move |crew, _outside| {
        let made = made.get_or_init(|| {
            let plugins = credential_exec::ExecPlugins::new(PathBuf::new());
            image_manager(Arc::new(client(&endpoint)), Arc::new(LinuxFs), Arc::new(plugins), root_dir.clone())
        });
        made(crew)
    })
}

fn endpoint() -> Result<Endpoint, String> {
    let name = "IMAGE_SERVICE_ENDPOINT";
    Endpoint::parse(&variable(name)?).map_err(|e| format!("{name}: {e}"))
}

fn client(endpoint: &Endpoint) -> CriClient {
    let (runtime, deadlines) = (endpoint.clone(), Deadlines::default());
    CriClient::new(&Options { runtime, images: None, deadlines, seed: fastrand::u64(..) })
}
