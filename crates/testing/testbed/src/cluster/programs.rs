//! Where the programs of the control plane are, and which version they have.

use std::path::{Path, PathBuf};

use crate::{BedError, command};

/// Folder in which `cargo xtask setup --cluster` keeps what it built.
pub const CONTROL_PLANE: &str = "/var/cache/bosun-testbed/kubernetes";
/// Debian's etcd.
pub const ETCD: &str = "/usr/bin/etcd";

/// The programs of a control plane.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    /// `$KUBE_APISERVER`, or the one that setup built.
    pub apiserver: PathBuf,
    /// `$KUBE_CONTROLLER_MANAGER`, or the one that setup built.
    pub controller_manager: PathBuf,
    /// `$KUBECTL`, or the one that setup built.
    pub kubectl: PathBuf,
    /// Debian's.
    pub etcd: PathBuf,
}

impl ControlPlane {
    /// Environment variable and file name of each program that is not Debian's.
    pub const BUILT: &[(&str, &str)] = &[
        ("KUBE_APISERVER", "kube-apiserver"),
        ("KUBE_CONTROLLER_MANAGER", "kube-controller-manager"),
        ("KUBECTL", "kubectl"),
    ];

    /// Finds all programs.
    ///
    /// # Errors
    /// [`BedError::Machine`] naming each one that is not there.
    pub fn find() -> Result<Self, BedError> {
        let missing = Self::missing();
        if !missing.is_empty() {
            let list = missing.iter().map(|p| format!("\n  - {} is not there", p.display())).collect::<String>();
            return Err(BedError::Machine(format!("{list}\n  `cargo xtask setup --cluster` brings them")));
        }
        let [apiserver, controller_manager, kubectl] = Self::BUILT else { unreachable!("three programs") };
        Ok(ControlPlane {
            apiserver: path(apiserver),
            controller_manager: path(controller_manager),
            kubectl: path(kubectl),
            etcd: ETCD.into(),
        })
    }

    /// Programs that are not there.
    #[must_use]
    pub fn missing() -> Vec<PathBuf> {
        let all = Self::BUILT.iter().map(path).chain([PathBuf::from(ETCD)]);
        all.filter(|p| !p.is_file()).collect()
    }

    /// Version of the API server, as it prints it: `v1.20.2`.
    #[must_use]
    pub fn version(&self) -> String {
        version(&self.apiserver)
    }

    /// Minor version of the API server; 0 when it does not tell one.
    #[must_use]
    pub fn minor(&self) -> u32 {
        minor(&self.version())
    }

    /// Minor version of the controllers, which may be another's.
    #[must_use]
    pub fn controllers_minor(&self) -> u32 {
        minor(&version(&self.controller_manager))
    }
}

fn version(program: &Path) -> String {
    let text = command::run(&program.to_string_lossy(), ["--version"]).unwrap_or_default();
    text.trim().trim_start_matches("Kubernetes ").to_owned()
}

fn minor(version: &str) -> u32 {
    version.split('.').nth(1).and_then(|m| m.parse().ok()).unwrap_or(0)
}

fn path((variable, name): &(&str, &str)) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| Path::new(CONTROL_PLANE).join(name), PathBuf::from)
}
