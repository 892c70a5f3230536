//! bosun's own VolumeManager in a process of its own, for nodes without a cluster: without claims and CSI drivers.
//! `BOSUN_ROOT_DIR` says which folder is the root directory of the node.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use host_linux::{LinuxFs, LinuxMounts};
use volume_manager::{Config, Deps, DesiredVolumes, IdRules, Serial, UserIds, VolumeManager, Volumes};

fn main() -> ExitCode {
    let root_dir = match across::variable("BOSUN_ROOT_DIR") {
        Ok(root_dir) => root_dir.into(),
        Err(why) => {
            eprintln!("Error: {why}");
            return ExitCode::FAILURE;
        }
    };
    let config = Arc::new(Config {
        root_dir,
        memory_allocatable_bytes: 8 << 30,
        node_name: "n1".to_owned(),
        controller_attach_detach: true,
        ids: IdRules { per_pod: 65_536, max_pods: 110 },
        ..Config::default()
    });
    // What outlives the actor.
    let deps = Arc::new(Deps {
        fs: Arc::new(LinuxFs),
        mounts: Arc::new(LinuxMounts),
        quotas: None,
        serial: Serial::default(),
        desired: DesiredVolumes::default(),
        persistent: Volumes::default(),
        user_ids: UserIds::default(),
        api: None,
        csi: None,
    });
    bosun_manager_sdk::main(move |crew, _outside| VolumeManager::new(crew, config.clone(), deps.clone()))
}
