//! The store: where things are, who writes, and what is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::check::{self, Checked};
use crate::digest::{ChainId, Digest};
use crate::error::StoreError;
use crate::files;
use crate::folder::{Folder, locked};
use crate::lock::Gate;

/// The images of a node. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct ImageStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) folder: Folder,
    gate: Gate,
    pub(crate) catalogue: Mutex<Catalogue>,
    /// What is being put in: no garbage, though no record has it yet. How many need it.
    under_way: Mutex<BTreeMap<Digest, usize>>,
    checked: Checked,
}

/// Folders of a store. Others than root have no business in them: programs with set-user-id lie there.
const FOLDERS: [&str; 7] = ["", "blobs/sha256", "ingest", "images", "layers", "leases", "l"];

impl ImageStore {
    /// Opens the store in a folder, which is made where it is missing, and checks it: half-written things go, nothing else does.
    /// While another process writes it is not checked: what is half-written may be that one's.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        for folder in FOLDERS {
            let path = root.join(folder);
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(StoreError::disk("make", &path))?;
        }
        let closed = fs::set_permissions(root, fs::Permissions::from_mode(0o700));
        closed.map_err(StoreError::disk("close", root))?;
        let gate = Gate::new(root.join("lock"));
        let mut checked = Checked::default();
        match gate.enter("check", Duration::ZERO, || check::check(root).map(|found| checked = found)) {
            Ok(()) => gate.leave(),
            Err(StoreError::Held(held)) => checked.left_to = Some(held),
            Err(e) => return Err(e),
        }
        let inner = Inner {
            folder: Folder::new(root.to_owned()),
            gate,
            catalogue: Mutex::default(),
            under_way: Mutex::default(),
            checked,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What opening found and mended.
    #[must_use]
    pub fn checked(&self) -> &Checked {
        &self.inner.checked
    }

    /// The folder of the store.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.inner.folder.root
    }

    /// Begins to change something. `what` is what others read who wait meanwhile; `wait` is how long this one waits for other
    /// processes.
    ///
    /// # Errors
    /// Another process writes for longer than that.
    pub fn writing(&self, what: &str, wait: Duration) -> Result<Writing, StoreError> {
        // Nobody else writes yet: what is unfinished is of writers that died.
        self.inner.gate.enter(what, wait, || check::sweep(self.root()).map(drop))?;
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let own_parts = Mutex::default();
        Ok(Writing { store: self.clone(), number, own_parts, kept: Mutex::default(), unsynced: AtomicBool::new(false) })
    }

    /// A document, if it is here and is what its name says.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn document(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.folder.document(digest)
    }

    /// Whether a layer is unpacked.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn has_layer(&self, chain_id: &ChainId) -> Result<bool, StoreError> {
        Ok(self.inner.folder.layer_info(chain_id)?.is_some())
    }

    pub(crate) fn under_way(&self) -> MutexGuard<'_, BTreeMap<Digest, usize>> {
        locked(&self.inner.under_way)
    }

    /// Bytes that the store's disk has left for root.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn room(&self) -> Result<u64, StoreError> {
        let root = self.root();
        let disk = rustix::fs::statvfs(root).map_err(|e| StoreError::disk("measure", root)(e.into()))?;
        Ok(disk.f_bfree.saturating_mul(disk.f_frsize))
    }
}

/// Writers of this process so far.
static WRITERS: AtomicU64 = AtomicU64::new(0);

/// Leave to change the store; other processes wait until the last one of this process is dropped.
#[derive(Debug)]
pub struct Writing {
    pub(crate) store: ImageStore,
    number: u64,
    /// Parts of layers that nobody else goes on with.
    own_parts: Mutex<BTreeSet<PathBuf>>,
    /// What this writer holds back from the garbage.
    kept: Mutex<Vec<Digest>>,
    /// It has written documents that need not be on disk yet.
    pub(crate) unsynced: AtomicBool,
}

impl Writing {
    /// The store that is written to.
    #[must_use]
    pub fn store(&self) -> &ImageStore {
        &self.store
    }

    /// Holds content and layers back from the garbage until this writer is dropped, from before they are looked for.
    pub fn keep(&self, what: impl IntoIterator<Item = Digest>) {
        let mut under_way = self.store.under_way();
        let mut kept = locked(&self.kept);
        for digest in what {
            *under_way.entry(digest).or_default() += 1;
            kept.push(digest);
        }
    }

    /// A name for a part of this writer's own. Should this process die, the next one takes it away as unfinished.
    pub(crate) fn own_part(&self, digest: &Digest) -> PathBuf {
        let name = format!("{}{}-{}-{}.part", files::NEW, digest.hex(), std::process::id(), self.number);
        let path = self.store.root().join("ingest").join(name);
        locked(&self.own_parts).insert(path.clone());
        path
    }

    /// Puts a document in. It is on disk with the image that needs it.
    ///
    /// # Errors
    /// It is not what its name says, or the disk refuses.
    pub fn put_document(&self, digest: &Digest, text: &[u8]) -> Result<(), StoreError> {
        let found = Digest::of(text);
        if found != *digest {
            return Err(StoreError::Digest { promised: *digest, found });
        }
        self.keep([*digest]);
        match self.store.document(digest)? {
            Some(_) => Ok(()),
            None => {
                self.unsynced.store(true, Ordering::Relaxed);
                files::write_unsynced(&self.store.inner.folder.blob_path(digest), text)
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        for part in locked(&self.own_parts).iter() {
            if let Err(e) = files::remove_file(part) {
                tracing::warn!(error = %e, "a part of a layer that is of no use stays until the store is opened again");
            }
        }
        {
            let mut under_way = self.store.under_way();
            for digest in locked(&self.kept).drain(..) {
                if let Some(count) = under_way.get_mut(&digest) {
                    *count -= 1;
                    if *count == 0 {
                        under_way.remove(&digest);
                    }
                }
            }
        }
        self.store.inner.gate.leave();
    }
}
