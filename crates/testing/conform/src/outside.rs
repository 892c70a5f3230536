//! What lies outside of a node and is reached by managers themselves: the runtime's image service, and files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fakes::{FakeRuntime, LinuxFs, MemFs};
use ports::host::HostFs;
use ports::runtime::ImageService;
use tempfile::TempDir;

use crate::chosen;
use crate::outcome::{Broken, Outcome};

/// Root directory of the node on the disk in memory.
pub(crate) const ROOT: &str = "/kubelet";

/// The runtime and the disk of a case. Clones are the same.
#[derive(Clone)]
pub struct Outside(Arc<Inner>);

struct Inner {
    runtime: FakeRuntime,
    files: MemFs,
    served: Mutex<Option<Served>>,
}

/// Where a process finds it.
struct Served {
    socket: PathBuf,
    root: PathBuf,
    _folder: TempDir,
}

/// The root directory of the node as the manager has it.
pub(crate) struct Disk {
    pub(crate) fs: Arc<dyn HostFs>,
    pub(crate) root: PathBuf,
}

/// Where a process of its own finds the runtime and the root directory of the node.
pub(crate) struct Ground {
    pub(crate) endpoint: String,
    pub(crate) root: PathBuf,
}

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside")
    }
}

impl Outside {
    /// A runtime without images, and an empty disk.
    pub(crate) fn new() -> Self {
        let (runtime, files) = (FakeRuntime::default(), MemFs::with_dirs([ROOT]));
        Self(Arc::new(Inner { runtime, files, served: Mutex::default() }))
    }

    /// The runtime's image service, for a manager in this process.
    #[must_use]
    pub fn image_service(&self) -> Arc<dyn ImageService> {
        self.0.runtime.client()
    }

    /// The disk, for a manager in this process. Its root directory is [`Outside::root_dir`].
    #[must_use]
    pub fn files(&self) -> Arc<MemFs> {
        Arc::new(self.0.files.clone())
    }

    /// Root directory of the node on that disk.
    #[must_use]
    pub fn root_dir(&self) -> PathBuf {
        ROOT.into()
    }

    pub(crate) fn runtime(&self) -> &FakeRuntime {
        &self.0.runtime
    }

    fn served(&self) -> MutexGuard<'_, Option<Served>> {
        self.0.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the manager works: on the disk in memory, or, where it is a process, in a folder.
    pub(crate) fn disk(&self) -> Disk {
        match &*self.served() {
            Some(served) => Disk { fs: Arc::new(LinuxFs), root: served.root.clone() },
            None => Disk { fs: self.files(), root: self.root_dir() },
        }
    }

    /// Serves the runtime on a socket, once: this one, or one of its own. The same with the root directory.
    pub(crate) fn serve(&self, at: Option<&Path>, root: Option<&Path>) -> Outcome<Ground> {
        let mut served = self.served();
        if served.is_none() {
            *served = Some(self.make(at, root)?);
        }
        let Served { socket, root, .. } = served.as_ref().ok_or_else(|| Broken("nothing is served".to_owned()))?;
        Ok(Ground { endpoint: format!("unix://{}", socket.display()), root: root.clone() })
    }

    fn make(&self, at: Option<&Path>, root_dir: Option<&Path>) -> Outcome<Served> {
        check(at, root_dir)?;
        let folder = tempfile::tempdir().map_err(|e| Broken(format!("a folder for the suite's runtime: {e}")))?;
        let failed = |what: &str, path: &Path, e: std::io::Error| Broken(format!("{what} {}: {e}", path.display()));
        let socket = at.map_or_else(|| folder.path().join("runtime.sock"), Path::to_owned);
        self.0.runtime.serve_unix(&socket).map_err(|e| failed("--runtime-at", &socket, e))?;
        let root = root_dir.map_or_else(|| folder.path().join("root"), Path::to_owned);
        std::fs::create_dir_all(&root).map_err(|e| failed("--root-dir", &root, e))?;
        at.into_iter().chain(root_dir).for_each(chosen::take);
        Ok(Served { socket, root, _folder: folder })
    }
}

/// Nothing of others is in the way at places that were named.
pub(crate) fn check(at: Option<&Path>, root: Option<&Path>) -> Outcome {
    at.map_or(Ok(()), chosen::free_socket)?;
    root.map_or(Ok(()), chosen::root_without_pods)
}
