//! bosun's own ImageManager in a process of its own. `IMAGE_SERVICE_ENDPOINT` says where the runtime's image service is,
//! `BOSUN_ROOT_DIR` which folder is the root directory of the node. Its settings are those that a node has by default.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use across::variable;
use cri_client::{CriClient, Deadlines, Endpoint, Options};
use image_manager::{Config, CredentialCache, Deps, ImageAges, ImageManager, PullRecords, Slots};
use image_pull::gc::Thresholds;
use pull_credentials::verification::Policy;

fn main() -> ExitCode {
    let (endpoint, root_dir) = match (endpoint(), variable("BOSUN_ROOT_DIR")) {
        (Ok(endpoint), Ok(root_dir)) => (endpoint, PathBuf::from(root_dir)),
        (Err(why), _) | (_, Err(why)) => {
            eprintln!("Error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let config = Arc::new(Config {
        registry_qps: 5,
        registry_burst: 10,
        working_dir: root_dir.clone(),
        root_dir,
        home: None,
        providers: Vec::new(),
        verification: Some(Policy::default()),
        gc: Thresholds::default(),
    });
    // What outlives the actor. A client is made within the runtime that the factory is called in.
    let deps = OnceLock::new();
    bosun_manager_sdk::main(move |crew, _outside| {
        let deps: &Arc<Deps> = deps.get_or_init(|| Arc::new(deps_of(&endpoint)));
        ImageManager::new(crew, config.clone(), deps.clone())
    })
}

fn endpoint() -> Result<Endpoint, String> {
    let name = "IMAGE_SERVICE_ENDPOINT";
    Endpoint::parse(&variable(name)?).map_err(|e| format!("{name}: {e}"))
}

fn deps_of(endpoint: &Endpoint) -> Deps {
    let options =
        Options { runtime: endpoint.clone(), images: None, deadlines: Deadlines::default(), seed: fastrand::u64(..) };
    Deps {
        images: Arc::new(CriClient::new(&options)),
        slots: Slots::new(true, None),
        fs: Arc::new(host_linux::LinuxFs),
        plugin: Arc::new(credential_exec::ExecPlugins::new(PathBuf::new())),
        credential_cache: CredentialCache::default(),
        pull_records: PullRecords::default(),
        ages: ImageAges::default(),
    }
}
