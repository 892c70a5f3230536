//! Where things are and by what they are started.

use std::path::{Path, PathBuf};

use crate::error::{Done, RuntimeError};

/// Bytes of a socket's path, less its end (`unix(7)`).
const MAX_SOCKET_PATH: usize = 107;
/// `/<64 hex digits>/pod.sock`.
const SOCKET_BELOW: usize = 1 + 64 + 1 + 8;

/// What a runtime is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// What must outlive a reboot: records, writable layers, exit codes (`/var/lib/bosun/runtime`).
    pub root: PathBuf,
    /// What must not: sockets, mounts, namespaces (`/run/bosun/runtime`).
    pub run: PathBuf,
    /// The CRI's socket.
    pub listen: PathBuf,
    /// The OCI runtime's program.
    pub oci_runtime: PathBuf,
    /// The program `bosun-pod`.
    pub supervisor: PathBuf,
    /// systemd makes the cgroups.
    pub systemd_cgroup: bool,
}

impl Options {
    /// Checks what would otherwise fail with the first pod.
    ///
    /// # Errors
    /// A program that is not there, a path that is not absolute or too long for sockets.
    pub fn check(&self) -> Result<(), RuntimeError> {
        let refused = |text: String| Err(RuntimeError::Refused(text));
        for path in [&self.root, &self.run, &self.listen] {
            if !path.is_absolute() {
                return refused(format!("{}: not an absolute path", path.display()));
            }
        }
        if self.run.as_os_str().len() + SOCKET_BELOW > MAX_SOCKET_PATH {
            return refused(format!("{}: too long for the sockets of pods below it", self.run.display()));
        }
        for program in [&self.oci_runtime, &self.supervisor] {
            if !program.is_file() {
                return refused(format!("{}: no such program", program.display()));
            }
        }
        Ok(())
    }

    /// Folder of a pod that outlives a reboot.
    pub(crate) fn pod_root(&self, pod: &str) -> PathBuf {
        self.root.join("pods").join(pod)
    }

    /// Folder of all containers of a pod that outlives a reboot.
    pub(crate) fn containers_root(&self, pod: &str) -> PathBuf {
        self.pod_root(pod).join("containers")
    }

    /// Folder of a pod that does not.
    pub(crate) fn pod_run(&self, pod: &str) -> PathBuf {
        self.run.join(pod)
    }

    /// Folder with `config.json` and `rootfs` of a container.
    pub(crate) fn bundle(&self, pod: &str, container: &str) -> PathBuf {
        self.pod_run(pod).join("c").join(container)
    }

    /// `--root` of the OCI runtime.
    pub(crate) fn oci_root(&self) -> PathBuf {
        self.run.join("oci")
    }
}

/// Makes a folder and those above it, for root alone.
pub(crate) fn private_dir(path: &Path) -> Done<()> {
    use crate::error::At;
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(path).at("mkdir", path)
}
