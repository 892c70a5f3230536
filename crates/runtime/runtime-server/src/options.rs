//! Where things are and by what they are started.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::error::{At, Done, RuntimeError};

/// Bytes of a socket's path, less its end (`unix(7)`).
const MAX_SOCKET_PATH: usize = 107;
/// `/<64 hex digits>/pod.sock`.
const SOCKET_BELOW: usize = 1 + 64 + 1 + 8;

/// Name of the file that the process that serves a folder has locked.
const LOCK: &str = "lock";
/// How long a process that has been killed may seem to have its lock.
const HANDED_OVER: Duration = Duration::from_secs(2);
/// Mode of folders.
const PRIVATE: u32 = 0o700;

/// How containers get the files of their images (containerd's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Snapshotter {
    /// overlayfs shows the layers; where the kernel has none, each container has a copy.
    #[default]
    Overlayfs,
    /// Each container has a copy.
    Native,
}

impl FromStr for Snapshotter {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::deserialize(StrDeserializer::<ValueError>::new(name)).map_err(|e| e.to_string())
    }
}

/// What a runtime is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// What must outlive a reboot: records, writable layers, exit codes (`/var/lib/bosun/runtime`).
    pub root: PathBuf,
    /// What must not: sockets, mounts, namespaces (`/run/bosun/runtime`).
    pub run: PathBuf,
    /// The CRI's socket.
    pub listen: PathBuf,
    /// The program of the OCI runtime of pods that ask for none.
    pub oci_runtime: PathBuf,
    /// It starts all containers and commands; else supervisors start those themselves that are plain ([`container_spec::is_plain_container`]).
    pub oci_runtime_only: bool,
    /// Programs of OCI runtimes that pods may ask for, by name ([`crate::RuntimeFile::handlers`]).
    pub handlers: BTreeMap<String, PathBuf>,
    /// The program `bosun-pod`.
    pub supervisor: PathBuf,
    /// Folders of the Container Device Interface's files; what a later one says goes before what those before it do.
    pub cdi_spec_dirs: Vec<PathBuf>,
    /// How containers get the files of their images.
    pub snapshotter: Snapshotter,
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
        for program in [&self.oci_runtime, &self.supervisor].into_iter().chain(self.handlers.values()) {
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

    /// Whether the pod's supervisor started a container itself, and no OCI runtime knows of it.
    pub(crate) fn is_own_start(&self, pod: &str, container: &str) -> bool {
        self.bundle(pod, container).join(pod_supervisor::OWN).exists()
    }

    /// Whether a pod's supervisor loads filters of seccomp profiles and takes AppArmor profiles on.
    pub(crate) fn confines(&self, pod: &str) -> bool {
        self.pod_run(pod).join(pod_supervisor::CONFINES).exists()
    }

    /// `--root` of an OCI runtime: each has its own form of state.
    pub(crate) fn oci_root(&self, handler: &str) -> PathBuf {
        self.run.join(if handler.is_empty() { "oci".to_owned() } else { format!("oci-{handler}") })
    }
}

/// As [`lock`]. A child that a killed server was about to start has the lock as well, until it is another program.
pub(crate) async fn lock_soon(root: &Path) -> Done<fs::File> {
    let since = Instant::now();
    loop {
        match lock(root) {
            Err(RuntimeError::HeldHere { .. } | RuntimeError::Refused(_)) if since.elapsed() < HANDED_OVER => {
                tokio::time::sleep(HANDED_OVER / 50).await;
            }
            done => return done,
        }
    }
}

/// Takes a folder for this process alone, until what is answered is dropped. Who has it is in the file.
pub(crate) fn lock(root: &Path) -> Done<fs::File> {
    let path = root.join(LOCK);
    let open = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = open.at("open", &path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            file.set_len(0).and_then(|()| file.write_all(own_words().as_bytes())).at("write", &path)?;
            Ok(file)
        }
        Err(rustix::io::Errno::AGAIN) => {
            let mut words = String::new();
            file.read_to_string(&mut words).at("read", &path)?;
            Err(held(path, &words))
        }
        Err(e) => Err(e).at("lock", &path),
    }
}

fn held(path: PathBuf, words: &str) -> RuntimeError {
    if words == own_words() {
        return RuntimeError::HeldHere { path };
    }
    let who = words.split(' ').next().and_then(|pid| pid.parse::<u32>().ok());
    let who = who.map_or_else(String::new, |pid| format!(" (process {pid})"));
    RuntimeError::Refused(format!(
        "{}: another `bosun runtime`, or a bosun with `containerRuntimeEndpoint: embedded://`, serves this folder and holds its lock{who}",
        path.display()
    ))
}

/// Number of this process, and what tells it from one with the same number in another PID namespace.
fn own_words() -> &'static str {
    static WORDS: OnceLock<String> = OnceLock::new();
    WORDS.get_or_init(|| format!("{} {:016x}\n", std::process::id(), fastrand::u64(..)))
}

/// Makes a folder and those above it, for root alone: below are files of images and of containers, some of which run as root
/// whoever starts them.
pub(crate) fn private_dir(path: &Path) -> Done<()> {
    fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(path).at("mkdir", path)
}

/// As [`private_dir`], also where the folder is there and was for others.
pub(crate) fn make_private(path: &Path) -> Done<()> {
    private_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE)).at("chmod", path)
}

/// Writes a file for root alone.
pub(crate) fn private_file(path: &Path, content: &[u8]) -> Done<()> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut f| f.write_all(content)).at("write", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_served_by_one_process() {
        let dir = tempfile::tempdir().expect("folder");
        let held = lock(dir.path()).expect("locked");
        let path = dir.path().join(LOCK);
        let refused = lock(dir.path()).expect_err("locked already");
        assert!(matches!(&refused, RuntimeError::HeldHere { path: held } if *held == path), "{refused}");
        let refused = refused.to_string();
        assert!(refused.contains("/lock: an earlier server in this process"), "{refused}");
        // Same number, another PID namespace.
        fs::write(&path, format!("{} 0\n", std::process::id())).expect("written");
        let refused = lock(dir.path()).expect_err("locked already").to_string();
        let who = format!("{}: another `bosun runtime`", path.display());
        let pid = format!("holds its lock (process {})", std::process::id());
        assert!(refused.starts_with(&who) && refused.ends_with(&pid), "{refused}");
        drop(held);
        lock(dir.path()).expect("free again");
    }

    #[tokio::test]
    async fn a_lock_that_is_let_go_of_soon_is_waited_for() {
        let dir = tempfile::tempdir().expect("folder");
        let held = lock(dir.path()).expect("locked");
        let mut waiting = std::pin::pin!(lock_soon(dir.path()));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        drop(held);
        let _held = waiting.await.expect("free by then");
        assert!(lock_soon(dir.path()).await.is_err());
    }

    #[test]
    fn folders_and_files_are_for_root_alone_also_those_of_before() {
        let dir = tempfile::tempdir().expect("folder");
        let (old, new, file) = (dir.path().join("old"), dir.path().join("old/a/b"), dir.path().join("file"));
        fs::create_dir(&old).expect("folder");
        fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).expect("mode");
        make_private(&old).expect("private");
        private_dir(&new).expect("made");
        private_file(&file, b"x").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!([&old, &old.join("a"), &new, &file].map(|p| mode(p)), [0o700, 0o700, 0o700, 0o600]);
    }
}
