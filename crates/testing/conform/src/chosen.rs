//! Places that whoever starts the suite names: what others have there stays.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::outcome::{Broken, Outcome};

/// Those that this process has made its own: a case finds there what the one before left.
static OURS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn ours() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is there from now on is the suite's.
pub(crate) fn take(path: &Path) {
    ours().insert(path.to_owned());
}

/// A socket can be made at this `--runtime-at`: one that nobody serves is removed.
///
/// # Errors
/// Somebody serves there, or may.
pub(crate) fn free_socket(path: &Path) -> Outcome {
    remove_dead(path).map_err(|why| Broken(format!("--runtime-at unix://{}: {why}", path.display())))
}

fn remove_dead(path: &Path) -> Result<(), String> {
    let kind = match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|e| e.to_string())?.file_type(),
    };
    if !kind.is_socket() {
        return Err("there is something else than a socket".to_owned());
    }
    if !ours().contains(path) {
        match UnixStream::connect(path) {
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
            Err(e) => return Err(format!("somebody may serve there: {e}")),
            Ok(_) => return Err("somebody serves there: stop it, or name another socket".to_owned()),
        }
    }
    std::fs::remove_file(path).map_err(|e| format!("a socket that nobody serves is not to be removed: {e}"))
}

/// This `--root-dir` has no pods but those of the suite.
///
/// # Errors
/// It has others, or may.
pub(crate) fn root_without_pods(path: &Path) -> Outcome {
    let refused = |why: String| Err(Broken(format!("--root-dir {}: {why}", path.display())));
    if ours().contains(path) {
        return Ok(());
    }
    match std::fs::read_dir(path.join("pods")).map(|mut entries| entries.next().is_some()) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        Err(e) => refused(format!("pods: {e}")),
        Ok(true) => {
            refused("pods is not empty, and the suite would delete in it: name a folder without pods".to_owned())
        }
        Ok(false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_somebody_serves_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runtime.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let Broken(why) = free_socket(&path).unwrap_err();
        assert_eq!(
            why,
            format!("--runtime-at unix://{}: somebody serves there: stop it, or name another socket", path.display())
        );
        assert!(path.exists());
        drop(listener);
        free_socket(&path).unwrap();
        assert!(!path.exists());
        free_socket(&path).unwrap();
    }

    #[test]
    fn what_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "content").unwrap();
        assert!(free_socket(&path).unwrap_err().0.ends_with("file: there is something else than a socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "content");
    }

    #[test]
    fn what_the_suite_made_may_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runtime.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        take(&path);
        free_socket(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_root_with_pods_of_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        root_without_pods(root).unwrap();
        std::fs::create_dir(root.join("pods")).unwrap();
        root_without_pods(root).unwrap();
        std::fs::create_dir(root.join("pods/u1")).unwrap();
        let Broken(why) = root_without_pods(root).unwrap_err();
        assert!(why.starts_with(&format!("--root-dir {}: pods is not empty", root.display())), "{why}");
        take(root);
        root_without_pods(root).unwrap();
    }
}
