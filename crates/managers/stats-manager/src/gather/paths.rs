//! Directories of pods.

use std::path::{Component, Path, PathBuf};

/// Directory of a pod below the root directory.
pub(crate) fn pod_dir(root: &Path, uid: &str) -> PathBuf {
    root.join("pods").join(uid)
}

/// Names come from labels of the runtime: one that leads elsewhere is nobody's.
pub(crate) fn single_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) && !name.contains('\0')
}
